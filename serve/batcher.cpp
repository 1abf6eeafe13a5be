// SPDX-License-Identifier: Apache-2.0
// The queue, and the executors that take batches from it.
#include "serve/batcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "support/stopwatch.hpp"

namespace bertcl::serve {

using Clock = std::chrono::steady_clock;

bool is_of_request(const Error& error) {
  return error.code() == ErrorCode::invalid_argument || error.code() == ErrorCode::invalid_file;
}

/// Its values are written by the executors that run its sequences, each its own.
struct Batcher::Request {
  std::vector<Sequence> sequences;
  std::function<void()> work;  // instead of sequences
  WorkSize size = {};          // of the work
  std::size_t tokens = 0;
  std::vector<Values> values;
  std::promise<std::vector<Values>> promise;
  Clock::time_point arrival = Clock::now();
  std::uint64_t serial = 0;           // in the order of arrival
  std::size_t queued = 0;             // items in the queue; under Batcher::mutex_
  std::atomic<std::size_t> left = 0;  // items without a result
  std::atomic<bool> settled = false;  // the promise is kept, or nobody waits for it

  /// The first item in the queue.
  std::size_t next() const { return items() - queued; }
  std::size_t items() const { return work ? 1 : sequences.size(); }
  void finish_one() {
    if (left.fetch_sub(1) == 1 && !settled.exchange(true)) promise.set_value(std::move(values));
  }
};

bool Batcher::Item::is_work() const { return request->work != nullptr; }

const Sequence& Batcher::Item::sequence() const { return request->sequences[index]; }

std::size_t Batcher::Item::tokens() const {
  return is_work() ? request->tokens : sequence().ids.size();
}

Batcher::Ticket::Ticket(Batcher& batcher, std::shared_ptr<Request> request)
    : batcher_(&batcher), request_(std::move(request)), values_(request_->promise.get_future()) {}

Batcher::Ticket::~Ticket() {
  if (request_) batcher_->cancel(request_);
}

bool Batcher::Ticket::wait_for(std::chrono::milliseconds time) const {
  return values_.wait_for(time) == std::future_status::ready;
}

bool Batcher::Ticket::wait_until(Clock::time_point time) const {
  return values_.wait_until(time) == std::future_status::ready;
}

std::vector<Values> Batcher::Ticket::get() { return values_.get(); }

Batcher::Batcher(RunFn run, BatcherOptions options)
    : run_(std::move(run)), options_([&] {
        if (options.one_request) options.max_wait = {};  // nothing can come that runs with it
        return std::move(options);
      }()) {
  const int wanted = std::max(options_.executors, 1);
  try {
    while (std::ssize(executors_) < wanted) executors_.emplace_back([this] { execute(); });
  } catch (const std::exception& error) {  // std::system_error, std::bad_alloc
    drain();
    throw Error(fmt::format("only {} of {} executors can be started: {}", executors_.size(), wanted,
                            error.what()),
                ErrorCode::out_of_memory);
  }
}

Batcher::~Batcher() { drain(); }

void Batcher::drain() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
  for (std::thread& executor : executors_)
    if (executor.joinable()) executor.join();
}

Batcher::Depth Batcher::depth() const {
  const std::lock_guard lock(mutex_);
  return depth_;
}

Clock::time_point Batcher::oldest_run() const {
  const std::lock_guard lock(mutex_);
  return runs_.empty() ? Clock::time_point::max() : *runs_.begin();
}

Batcher::Ticket Batcher::submit(std::vector<Sequence> sequences) {
  if (sequences.empty()) throw std::invalid_argument("a request needs at least one sequence");
  auto request = std::make_shared<Request>();
  for (const Sequence& sequence : sequences) request->tokens += sequence.ids.size();
  request->values.resize(sequences.size());
  request->queued = sequences.size();
  request->sequences = std::move(sequences);
  return add(std::move(request));
}

Batcher::Ticket Batcher::submit(std::function<void()> work, std::size_t tokens, WorkSize size) {
  auto request = std::make_shared<Request>();
  request->work = std::move(work);
  request->size = size;
  request->tokens = tokens;
  request->queued = 1;
  return add(std::move(request));
}

Batcher::Ticket Batcher::add(std::shared_ptr<Request> request) {
  request->left = request->queued;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Draining("the server is shutting down");
    const bool fits = depth_.requests < options_.max_queue_requests &&
                      depth_.tokens + request->tokens <= options_.max_queue_tokens;
    if (!fits && depth_.requests > 0)
      throw QueueFull(fmt::format("the queue is full: {} requests of {} tokens wait",
                                  depth_.requests, depth_.tokens));
    request->serial = ++requests_;
    sequences_ += request->queued;
    queue_.push_back(request);
    ++depth_.requests;
    depth_.tokens += request->tokens;
  }
  changed_.notify_one();
  return Ticket(*this, std::move(request));
}

void Batcher::cancel(const std::shared_ptr<Request>& request) {
  if (!request->settled.exchange(true)) remove(request);
}

void Batcher::fail(const std::shared_ptr<Request>& request) {
  remove(request);
  if (!request->settled.exchange(true)) request->promise.set_exception(std::current_exception());
}

void Batcher::remove(const std::shared_ptr<Request>& request) {
  const std::lock_guard lock(mutex_);
  if (request->queued == 0) return;  // all of it runs already
  for (Item item = {request, request->next()}; item.index < request->items(); ++item.index)
    depth_.tokens -= item.tokens();
  std::erase(queue_, request);
  sequences_ -= request->queued;
  --depth_.requests;
  request->queued = 0;
}

void Batcher::execute() {
  for (;;) {
    std::vector<Item> items = collect();
    if (items.empty()) return;
    run(items);
  }
}

std::vector<Batcher::Item> Batcher::collect() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || !queue_.empty(); });
    if (queue_.empty()) return {};
    if (options_.max_wait.count() > 0) {
      const auto first = std::ranges::min_element(
          queue_, {}, [](const auto& request) { return request->arrival; });
      const auto until = (*first)->arrival + options_.max_wait;
      changed_.wait_until(lock, until, [&] {
        return closed_ || queue_.empty() || depth_.tokens >= options_.max_batch_tokens ||
               sequences_ >= options_.max_batch_sequences;
      });
    }
    if (!queue_.empty()) return take();  // they may have been cancelled, or another took them
  }
}

std::vector<Batcher::Item> Batcher::take() {
  std::vector<Item> taken;
  std::vector<std::shared_ptr<Request>> works;  // the next ones to run, if sequences came first
  std::size_t tokens = 0, longest = 0;
  while (!queue_.empty() && taken.size() < options_.max_batch_sequences) {
    const bool at_end = options_.one_request && !taken.empty();  // where its other items have gone
    const std::shared_ptr<Request> request = at_end ? queue_.back() : queue_.front();
    if (at_end && request != taken.front().request) break;
    const Item next = {request, request->next()};
    if (next.is_work() && !taken.empty()) {
      works.push_back(next.request);
      queue_.pop_front();
      continue;
    }
    const std::size_t length = next.tokens();
    longest = std::max(longest, length);
    tokens += length;
    const std::size_t cost = options_.pads ? longest * (taken.size() + 1) : tokens;
    if (!taken.empty() && cost > options_.max_batch_tokens) break;
    depth_.tokens -= length;
    --sequences_;
    if (at_end)
      queue_.pop_back();
    else
      queue_.pop_front();
    taken.push_back(next);
    if (--next.request->queued == 0)
      --depth_.requests;
    else
      queue_.push_back(next.request);
    if (next.is_work()) break;
  }
  queue_.insert(queue_.begin(), works.begin(), works.end());
  if (!queue_.empty()) changed_.notify_one();
  std::ranges::stable_sort(taken, {}, [](const Item& item) { return item.request->serial; });
  return taken;
}

void Batcher::run(std::vector<Item>& items) {
  try {
    run_together(items);
  } catch (...) {
    if (items.front().request == items.back().request) return fail(items.front().request);
    // One of the requests may be the reason: each again by itself; its items are adjacent.
    for (auto begin = items.begin(); begin != items.end();) {
      const auto end = std::find_if_not(
          begin, items.end(), [&](const Item& item) { return item.request == begin->request; });
      try {
        run_together({begin, end});
      } catch (...) {
        fail(begin->request);
      }
      begin = end;
    }
  }
}

void Batcher::run_together(std::span<Item> items) {
  const Stopwatch clock;
  const auto run = [&] {
    const std::lock_guard lock(mutex_);
    return runs_.insert(Clock::now());
  }();
  const auto ended = [&] {
    const std::lock_guard lock(mutex_);
    runs_.erase(run);
  };
  try {
    perform(items);
    ended();
  } catch (const Error& error) {
    ended();
    // The tensors of a client that the model refuses have not reached the device.
    if (!items.front().is_work() || !is_of_request(error)) report(items, clock.seconds(), true);
    throw;
  } catch (...) {
    ended();
    report(items, clock.seconds(), true);
    throw;
  }
  report(items, clock.seconds(), false);
  for (const Item& item : items) item.request->finish_one();
}

void Batcher::perform(std::span<Item> items) {
  if (items.front().is_work()) {
    items.front().request->work();
    return;
  }
  std::vector<const Sequence*> sequences;
  for (const Item& item : items) sequences.push_back(&item.sequence());
  std::vector<Values> values = run_(sequences);
  if (values.size() != items.size())
    throw std::logic_error(
        fmt::format("the model gave {} results for {} sequences", values.size(), items.size()));
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i].request->values[items[i].index] = std::move(values[i]);
}

void Batcher::report(std::span<const Item> items, double seconds, bool failed) const {
  if (!options_.on_batch) return;
  BatchDone done{0, 0, 0, seconds, failed};
  const auto begin = Clock::now() - std::chrono::duration<double>(seconds);
  const Request* last = nullptr;
  for (const Item& item : items) {
    done.sequences += item.is_work() ? item.request->size.sequences : 1;
    done.tokens += item.is_work() ? item.request->size.tokens : item.tokens();
    if (item.request.get() != last) {
      ++done.requests;
      if (item.index == 0)
        done.waited.push_back(std::chrono::duration<double>(begin - item.request->arrival).count());
    }
    last = item.request.get();
  }
  options_.on_batch(done);
}

}  // namespace bertcl::serve
