// SPDX-License-Identifier: Apache-2.0
// Token sequences of many requests, run together in batches.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bertcl/error.hpp"

namespace bertcl::serve {

/// Tokens of a text or a pair, special tokens included.
struct Sequence {
  std::vector<std::int32_t> ids;
  std::size_t second = ids.size();  ///< as text::Row: where the second text begins
};

/// What a model gives for one sequence.
using Values = std::vector<float>;

/// Runs sequences together; gives the values of each, in their order.
using RunFn = std::function<std::vector<Values>(std::span<const Sequence* const>)>;

/// Submitted while the queue is full.
struct QueueFull : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Submitted after drain().
struct Draining : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// True if the error was caused by the request.
bool is_of_request(const Error& error);

/// What metrics count of work that is not made of sequences.
struct WorkSize {
  std::size_t sequences = 1, tokens = 0;
};

/// A batch that has run, for metrics.
struct BatchDone {
  std::size_t requests = 0, sequences = 0, tokens = 0;
  double seconds = 0.0;
  bool failed = false;
  std::vector<double> waited = {};  ///< seconds in the queue, of requests that had no batch before
};

struct BatcherOptions {
  std::size_t max_batch_tokens = 16384;    ///< a longer sequence goes alone
  std::size_t max_batch_sequences = 4096;  ///< of any length
  /// Sequences of several requests do not share a batch: each would change the values of the
  /// others.
  bool one_request = false;
  bool pads = false;  ///< the model pads, so a batch costs its sequences times the longest
  std::chrono::milliseconds max_wait{0};    ///< for more to come; 0: what is there runs at once
  std::size_t max_queue_tokens = 1u << 18;  ///< a request that is larger runs if it is alone
  std::size_t max_queue_requests = 512;
  int executors = 1;                                    ///< batches in flight
  std::function<void(const BatchDone&)> on_batch = {};  ///< called by executors
};

/// A bounded queue of requests and the threads that run it. While they wait for the device, further
/// requests gather: the next batch takes as many sequences as fit, one of each request in turn, so
/// that a short request does not wait for all of a long one.
class Batcher {
  struct Request;

 public:
  /// A request in the queue. Dropping it cancels the request.
  class Ticket {
   public:
    Ticket(Ticket&&) noexcept = default;
    Ticket& operator=(Ticket&&) = delete;
    ~Ticket();
    /// False where the values are not there after `time`.
    bool wait_for(std::chrono::milliseconds time) const;
    bool wait_until(std::chrono::steady_clock::time_point time) const;
    /// Values of all sequences, in their order; once. Throws what the run threw.
    std::vector<Values> get();

   private:
    friend class Batcher;
    Ticket(Batcher& batcher, std::shared_ptr<Request> request);
    Batcher* batcher_;
    std::shared_ptr<Request> request_;
    std::future<std::vector<Values>> values_;
  };

  /// Throws Error if the system does not start as many threads.
  Batcher(RunFn run, BatcherOptions options);
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// Queues sequences, one at least. Throws QueueFull or Draining.
  Ticket submit(std::vector<Sequence> sequences);
  /// Queues work that an executor does between batches; `tokens` is what it counts in the queue,
  /// `size` in metrics. Ticket::get() gives no values.
  Ticket submit(std::function<void()> work, std::size_t tokens, WorkSize size);

  /// Refuses what is submitted from now on, and returns when all else is done.
  void drain();

  struct Depth {
    std::size_t requests = 0, tokens = 0;
  };
  Depth depth() const;
  /// When the oldest of the batches in flight began; time_point::max() if there is none.
  std::chrono::steady_clock::time_point oldest_run() const;
  const BatcherOptions& options() const { return options_; }

 private:
  /// A sequence of a request, or its work.
  struct Item {
    std::shared_ptr<Request> request;
    std::size_t index = 0;

    bool is_work() const;
    const Sequence& sequence() const;
    std::size_t tokens() const;
  };

  Ticket add(std::shared_ptr<Request> request);
  void cancel(const std::shared_ptr<Request>& request);
  /// Ends it with the exception that is being handled; what is left of the request does not run.
  void fail(const std::shared_ptr<Request>& request);
  void remove(const std::shared_ptr<Request>& request);
  void execute();
  /// Waits for work; nothing once the queue is closed and empty.
  std::vector<Item> collect();
  std::vector<Item> take();  // under mutex_; items of a request are adjacent
  void run(std::vector<Item>& items);
  void run_together(std::span<Item> items);
  void perform(std::span<Item> items);
  void report(std::span<const Item> items, double seconds, bool failed) const;

  const RunFn run_;
  const BatcherOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Request>> queue_;  // of those with items left, in their turns
  std::size_t sequences_ = 0;                   // items left
  std::uint64_t requests_ = 0;                  // since the start
  Depth depth_;
  std::multiset<std::chrono::steady_clock::time_point> runs_;  // begins of those in flight
  bool closed_ = false;
  std::vector<std::thread> executors_;
};

}  // namespace bertcl::serve
