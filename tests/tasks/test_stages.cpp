// SPDX-License-Identifier: Apache-2.0
// The threads of an evaluation: where one fails, or cannot be started, all end.
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

constexpr std::size_t kItems = 100, kNever = kItems;
/// Groups that the model runs while one is finished: two in the queue, and one that waits for room.
constexpr std::size_t kAhead = 3;

/// Items that are one group each. finish() fails at one of them, when the model is as far ahead as
/// it gets.
class FailingTask : public Task {
 public:
  explicit FailingTask(std::size_t fails_at) : fails_at_(fails_at) {}
  std::size_t size() const override { return kItems; }
  std::string unit() const override { return "texts"; }
  std::size_t group_size() const override { return 1; }
  const Head& head() const override {
    static const Head head{false, 1, false, "a score"};
    return head;
  }
  std::string main_metric() const override { return "score"; }
  std::vector<Sequence> encode(std::size_t, const text::Tokenizer& tokenizer,
                               const EncodeOptions& options) const override {
    return {encode_text("a", tokenizer, options.max_length)};
  }
  std::unique_ptr<Results> results(std::size_t, const text::Tokenizer&) const override {
    return std::make_unique<FailingResults>(*this);
  }

  std::vector<float> run(const text::Batch& batch) {
    ++groups_run_;
    groups_run_.notify_all();
    return std::vector<float>(batch.rows());
  }
  std::size_t groups_run() const { return groups_run_; }

 private:
  struct FailingResults : Results {
    explicit FailingResults(const FailingTask& of) : task(of) {}
    void add(std::size_t, const Sequence&, std::span<const float>) override {}
    void finish(std::size_t item) override {
      if (item != task.fails_at_) return;
      const std::size_t all = std::min(item + 1 + kAhead, kItems);
      for (std::size_t run; (run = task.groups_run_) < all;) task.groups_run_.wait(run);
      throw std::runtime_error("the item cannot be finished");
    }
    std::vector<Metric> metrics() const override { return {}; }
    nlohmann::ordered_json predictions() const override { return {}; }
    const FailingTask& task;
  };

  std::size_t fails_at_;
  std::atomic<std::size_t> groups_run_ = 0;
};

void evaluate_it(FailingTask& task) {
  evaluate(task, letter_tokenizer(), {}, [&](const text::Batch& batch) { return task.run(batch); });
}

TEST(Stages, AFailureOfTheLastEndsTheOthers) {
  for (const std::size_t fails_at : {0, 1, 30, 98, 99}) {
    FailingTask task(fails_at);
    EXPECT_THAT([&] { evaluate_it(task); },
                testing::ThrowsMessage<std::runtime_error>("the item cannot be finished"));
    EXPECT_EQ(task.groups_run(), std::min(fails_at + 1 + kAhead, kItems));
  }
}

/// While it lives there is memory for one more thread only.
class OneMoreThread {
 public:
  OneMoreThread() {
    constexpr std::size_t kStack = std::size_t{1} << 30;
    pthread_getattr_default_np(&before_);
    pthread_attr_t large;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, kStack);
    pthread_setattr_default_np(&large);
    pthread_attr_destroy(&large);
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &limit_);
    rlimit limit = limit_;
    limit.rlim_cur = pages * static_cast<std::size_t>(getpagesize()) + kStack + kStack / 2;
    setrlimit(RLIMIT_AS, &limit);
  }
  OneMoreThread(const OneMoreThread&) = delete;
  OneMoreThread& operator=(const OneMoreThread&) = delete;
  ~OneMoreThread() {
    setrlimit(RLIMIT_AS, &limit_);
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
  rlimit limit_;
};

TEST(Stages, AThreadThatCannotBeStartedIsAnError) {
  const OneMoreThread one_more;
  FailingTask task(kNever);
  EXPECT_THROW(evaluate_it(task), std::system_error);
}

}  // namespace
}  // namespace bertcl::tasks
