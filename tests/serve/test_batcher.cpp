// SPDX-License-Identifier: Apache-2.0
// Batches of a made-up model: what runs together, what is refused, and whom an error reaches.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "serve/batcher.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using std::chrono::milliseconds;

constexpr std::int64_t kBad = -1;  // an id that the model fails for

/// A gate that the model waits at, so that tests choose what is in the queue.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void pass() {
    std::unique_lock lock(mutex_);
    ++arrived_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return open_; });
  }
  void wait_for_arrival() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return arrived_ > 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int arrived_ = 0;
};

/// Gives the sum of the ids of each sequence, and notes the lengths of each batch.
class FakeModel {
 public:
  RunFn run() {
    return [this](std::span<const Sequence* const> sequences) {
      gate.pass();
      std::vector<std::size_t> lengths;
      std::vector<Values> values;
      bool bad = false;
      for (const Sequence* sequence : sequences) {
        lengths.push_back(sequence->ids.size());
        std::int64_t sum = 0;
        for (const std::int64_t id : sequence->ids) {
          sum += id;
          bad = bad || id == kBad;
        }
        values.push_back({static_cast<float>(sum)});
      }
      {
        const std::lock_guard lock(mutex);
        batches.push_back(lengths);
      }
      if (bad) throw std::runtime_error("a bad id");
      return values;
    };
  }
  Gate gate;
  std::mutex mutex;
  std::vector<std::vector<std::size_t>> batches;
};

Sequence sequence(std::size_t length, std::int32_t id = 1) {
  return {std::vector<std::int32_t>(length, id)};
}

/// The executor is held with one request, so that what follows gathers in the queue.
class BatcherTest : public testing::Test {
 protected:
  void start(BatcherOptions options) { batcher_.emplace(model_.run(), std::move(options)); }
  Batcher::Ticket hold() {
    Batcher::Ticket first = batcher_->submit({sequence(1, 100)});
    model_.gate.wait_for_arrival();
    return first;
  }
  FakeModel model_;
  std::optional<Batcher> batcher_;
};

TEST_F(BatcherTest, WhatGathersRunsTogetherUpToTheBudget) {
  start({.max_batch_tokens = 10});
  Batcher::Ticket first = hold();
  Batcher::Ticket a = batcher_->submit({sequence(4), sequence(3)});
  Batcher::Ticket b = batcher_->submit({sequence(3, 2)});
  Batcher::Ticket c = batcher_->submit({sequence(1, 5), sequence(12, 1), sequence(2, 3)});
  EXPECT_EQ(batcher_->depth().requests, 3u);
  EXPECT_EQ(batcher_->depth().tokens, 25u);
  model_.gate.open();
  EXPECT_THAT(first.get(), ElementsAre(Values{100}));
  EXPECT_THAT(a.get(), ElementsAre(Values{4}, Values{3}));
  EXPECT_THAT(b.get(), ElementsAre(Values{6}));
  EXPECT_THAT(c.get(), ElementsAre(Values{5}, Values{12}, Values{6}));
  EXPECT_THAT(model_.batches, ElementsAre(ElementsAre(1), ElementsAre(4, 3, 1), ElementsAre(3),
                                          ElementsAre(12), ElementsAre(2)));
  EXPECT_EQ(batcher_->depth().requests, 0u);
  EXPECT_EQ(batcher_->depth().tokens, 0u);
}

TEST_F(BatcherTest, AShortRequestDoesNotWaitForAllOfLongOnes) {
  start({.max_batch_tokens = 4});
  Batcher::Ticket first = hold();
  std::vector<Batcher::Ticket> tickets;
  for (const std::int32_t id : {1, 2})
    tickets.push_back(batcher_->submit(std::vector<Sequence>(6, sequence(2, id))));
  std::size_t batches_before = 0;
  Batcher::Ticket work = batcher_->submit([&] { batches_before = model_.batches.size(); }, 1, {});
  tickets.push_back(batcher_->submit({sequence(1), sequence(3)}));
  model_.gate.open();
  EXPECT_THAT(tickets[2].get(), ElementsAre(Values{1}, Values{3}));
  work.get();
  EXPECT_EQ(batches_before, 2u);
  EXPECT_THAT(tickets[0].get(), testing::Each(Values{2}));
  EXPECT_THAT(tickets[1].get(), testing::Each(Values{4}));
  const std::vector<std::size_t> longs = {2, 2};
  EXPECT_THAT(model_.batches, ElementsAre(ElementsAre(1), longs, ElementsAre(2, 1), ElementsAre(2),
                                          ElementsAre(3), longs, longs, longs, longs));
  EXPECT_EQ(batcher_->depth().tokens, 0u);
}

TEST_F(BatcherTest, RequestsRunByThemselvesWhereAScaleCoversTheBatch) {
  start({.max_batch_tokens = 4, .one_request = true, .max_wait = std::chrono::hours(1)});
  ASSERT_EQ(batcher_->options().max_wait.count(), 0) << "nothing can come that runs with it";
  Batcher::Ticket first = hold();
  Batcher::Ticket a = batcher_->submit({sequence(1), sequence(2), sequence(3), sequence(1)});
  Batcher::Ticket b = batcher_->submit({sequence(1), sequence(1)});
  Batcher::Ticket work = batcher_->submit([] {}, 1, {});
  Batcher::Ticket c = batcher_->submit({sequence(2)});
  model_.gate.open();
  for (Batcher::Ticket* ticket : {&a, &b, &work, &c}) ticket->get();
  EXPECT_THAT(model_.batches, ElementsAre(ElementsAre(1), ElementsAre(1, 2), ElementsAre(1, 1),
                                          ElementsAre(2), ElementsAre(3, 1)));
  EXPECT_EQ(batcher_->depth().requests, 0u);
  EXPECT_EQ(batcher_->depth().tokens, 0u);
}

TEST_F(BatcherTest, PaddingCountsWhereTheModelPads) {
  start({.max_batch_tokens = 10, .pads = true});
  hold();
  Batcher::Ticket a = batcher_->submit({sequence(5), sequence(1), sequence(1), sequence(2)});
  model_.gate.open();
  a.get();
  EXPECT_THAT(model_.batches, ElementsAre(ElementsAre(1), ElementsAre(5, 1), ElementsAre(1, 2)));
}

TEST_F(BatcherTest, SequencesOfABatchAreBounded) {
  start({.max_batch_sequences = 2});
  hold();
  Batcher::Ticket a = batcher_->submit({sequence(1), sequence(2), sequence(3)});
  model_.gate.open();
  a.get();
  EXPECT_THAT(model_.batches, ElementsAre(ElementsAre(1), ElementsAre(1, 2), ElementsAre(3)));
}

TEST_F(BatcherTest, AWaitGathersWhatComes) {
  start({.max_batch_tokens = 4, .max_wait = std::chrono::hours(1)});
  model_.gate.open();
  Batcher::Ticket a = batcher_->submit({sequence(1)});
  Batcher::Ticket b = batcher_->submit({sequence(2)});
  EXPECT_FALSE(b.wait_for(milliseconds(20)));
  Batcher::Ticket c = batcher_->submit({sequence(1)});  // fills the budget
  EXPECT_THAT(c.get(), ElementsAre(Values{1}));
  a.get();
  EXPECT_THAT(model_.batches, ElementsAre(ElementsAre(1, 2, 1)));
}

TEST_F(BatcherTest, AWaitEnds) {
  start({.max_wait = milliseconds(1)});
  model_.gate.open();
  EXPECT_THAT(batcher_->submit({sequence(3)}).get(), ElementsAre(Values{3}));
}

TEST_F(BatcherTest, AFullQueueRefuses) {
  start({.max_queue_tokens = 10, .max_queue_requests = 3});
  Batcher::Ticket first = hold();
  Batcher::Ticket large = batcher_->submit({sequence(11)});  // an empty queue takes any
  EXPECT_THROW(batcher_->submit({sequence(1)}), QueueFull);
  model_.gate.open();
  large.get();

  FakeModel other;
  Batcher few(other.run(), {.max_queue_tokens = 10, .max_queue_requests = 3});
  Batcher::Ticket held = few.submit({sequence(1)});
  other.gate.wait_for_arrival();
  std::vector<Batcher::Ticket> tickets;
  for (int i = 0; i < 3; ++i) tickets.push_back(few.submit({sequence(1)}));
  EXPECT_THAT([&] { few.submit({sequence(1)}); },
              testing::ThrowsMessage<QueueFull>(HasSubstr("3 requests of 3 tokens wait")));
  other.gate.open();
  for (Batcher::Ticket& ticket : tickets) ticket.get();
  EXPECT_THAT(few.submit({sequence(2)}).get(), ElementsAre(Values{2})) << "there is room again";
}

TEST_F(BatcherTest, AnErrorReachesOnlyItsRequest) {
  std::vector<BatchDone> reports;
  start({.on_batch = [&](const BatchDone& done) { reports.push_back(done); }});
  hold();
  Batcher::Ticket good = batcher_->submit({sequence(2), sequence(3)});
  Batcher::Ticket bad = batcher_->submit({sequence(1), sequence(2, kBad)});
  Batcher::Ticket after = batcher_->submit({sequence(4)});
  model_.gate.open();
  EXPECT_THAT(good.get(), ElementsAre(Values{2}, Values{3}));
  EXPECT_THROW(bad.get(), std::runtime_error);
  EXPECT_THAT(after.get(), ElementsAre(Values{4}));
  EXPECT_THAT(batcher_->submit({sequence(7)}).get(), ElementsAre(Values{7}))
      << "the executor goes on";
  batcher_->drain();
  ASSERT_EQ(reports.size(), 6u);
  EXPECT_TRUE(reports[1].failed);
  EXPECT_EQ(reports[1].requests, 3u);
  EXPECT_EQ(reports[1].sequences, 5u);
  EXPECT_EQ(reports[1].tokens, 12u);
  EXPECT_FALSE(reports[2].failed);
  EXPECT_TRUE(reports[3].failed);
}

TEST_F(BatcherTest, TheRestOfAFailedRequestDoesNotRun) {
  start({.max_batch_tokens = 4});
  hold();
  Batcher::Ticket bad = batcher_->submit({sequence(4, kBad), sequence(4), sequence(3)});
  Batcher::Ticket shared = batcher_->submit({sequence(1), sequence(2, kBad), sequence(4)});
  Batcher::Ticket after = batcher_->submit({sequence(2)});
  model_.gate.open();
  EXPECT_THROW(bad.get(), std::runtime_error);
  EXPECT_THROW(shared.get(), std::runtime_error);
  EXPECT_THAT(after.get(), ElementsAre(Values{2}));
  EXPECT_THAT(model_.batches,
              ElementsAre(ElementsAre(1), ElementsAre(4), ElementsAre(1, 2), ElementsAre(2)));
  EXPECT_EQ(batcher_->depth().requests, 0u);
  EXPECT_EQ(batcher_->depth().tokens, 0u);
}

TEST_F(BatcherTest, WrongResultsOfTheModelAreAnError) {
  Batcher batcher([](std::span<const Sequence* const>) { return std::vector<Values>(); }, {});
  EXPECT_THROW(batcher.submit({sequence(1)}).get(), std::logic_error);
  EXPECT_THROW(batcher.submit(std::vector<Sequence>()), std::invalid_argument);
}

TEST_F(BatcherTest, ADroppedTicketLeavesTheQueue) {
  start({});
  Batcher::Ticket first = hold();
  {
    const Batcher::Ticket dropped = batcher_->submit({sequence(2), sequence(3)});
    EXPECT_EQ(batcher_->depth().tokens, 5u);
  }
  EXPECT_EQ(batcher_->depth().tokens, 0u);
  EXPECT_EQ(batcher_->depth().requests, 0u);
  Batcher::Ticket kept = batcher_->submit({sequence(6)});
  model_.gate.open();
  kept.get();
  EXPECT_THAT(model_.batches, ElementsAre(ElementsAre(1), ElementsAre(6)));
}

TEST_F(BatcherTest, ARunningRequestMayBeDropped) {
  start({});
  { const Batcher::Ticket first = hold(); }
  model_.gate.open();
  EXPECT_THAT(batcher_->submit({sequence(2)}).get(), ElementsAre(Values{2}));
}

TEST_F(BatcherTest, WorkRunsBetweenBatches) {
  std::vector<std::size_t> counted;
  start({.on_batch = [&](const BatchDone& done) {
    if (!done.failed) counted.insert(counted.end(), {done.sequences, done.tokens});
  }});
  hold();
  Batcher::Ticket a = batcher_->submit({sequence(2)});
  std::size_t batches_before = 0;
  Batcher::Ticket work =
      batcher_->submit([&] { batches_before = model_.batches.size(); }, 50, {8, 40});
  Batcher::Ticket failing = batcher_->submit([] { throw std::runtime_error("no"); }, 1, {});
  Batcher::Ticket b = batcher_->submit({sequence(3)});
  EXPECT_EQ(batcher_->depth().tokens, 56u);
  model_.gate.open();
  EXPECT_TRUE(work.get().empty());
  EXPECT_EQ(batches_before, 2u);
  EXPECT_THROW(failing.get(), std::runtime_error);
  b.get();
  EXPECT_THAT(model_.batches, ElementsAre(ElementsAre(1), ElementsAre(2, 3)));
  EXPECT_THAT(counted, ElementsAre(1, 1, 2, 5, 8, 40));
}

TEST_F(BatcherTest, DrainingFinishesWhatIsQueued) {
  start({.max_wait = std::chrono::hours(1)});
  Batcher::Ticket a = batcher_->submit({sequence(2)});
  model_.gate.open();
  batcher_->drain();
  EXPECT_TRUE(a.wait_for(milliseconds(0)));
  EXPECT_THAT(a.get(), ElementsAre(Values{2}));
  EXPECT_THROW(batcher_->submit({sequence(1)}), Draining);
}

// Sanitizers need address space themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(BatcherTest, ThreadsThatCannotStartAreAnError) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto starve = [&] {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (256u << 20);
    const rlimit limit = {most, most};
    setrlimit(RLIMIT_AS, &limit);  // room for the stacks of a few dozen threads
    try {
      const Batcher batcher(model_.run(), {.executors = 100'000});
    } catch (const Error& error) {
      std::cerr << error.what();
      std::_Exit(3);  // not the ends of drivers, whose threads a fork does not have
    }
    std::_Exit(4);
  };
  EXPECT_EXIT(starve(), testing::ExitedWithCode(3),
              "only [0-9]+ of 100000 executors can be started: ");
}
#endif

TEST_F(BatcherTest, ManyThreadsGetTheirOwn) {
  start({.max_batch_tokens = 64, .max_queue_requests = 1000, .executors = 3});
  model_.gate.open();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const std::size_t length = static_cast<std::size_t>(1 + (t * 7 + i) % 13);
        Batcher::Ticket ticket = batcher_->submit({sequence(length, t), sequence(1, i)});
        const std::vector<Values> found = ticket.get();
        const auto sum = static_cast<float>(static_cast<int>(length) * t);
        if (found != std::vector<Values>{{sum}, {static_cast<float>(i)}}) ++wrong;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(batcher_->depth().tokens, 0u);
}

}  // namespace
}  // namespace bertcl::serve::tests
