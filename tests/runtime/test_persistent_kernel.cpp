// SPDX-License-Identifier: Apache-2.0
// Runs in few launches against runs of one launch a step.
#include <string>

#include "bertcl/error.hpp"
#include "default_model.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/queue.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/lacks.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::runtime {
namespace {

class PersistentSession : public testing::Test {
 protected:
  void SetUp() override {
    const std::string reason = tests::lacks(*context_, &opencl::Capabilities::persistent_kernel);
    if (!reason.empty()) GTEST_SKIP() << "the persistent kernel " << reason;
  }

  Session load(std::string disabled, SessionOptions options) const {
    options.context = context_;
    options.disabled_kernels = std::move(disabled);
    return Session::load(model, options);
  }
  Session merged(std::string disabled = "", const SessionOptions& options = {}) const {
    Session session = load(std::move(disabled), options);
    EXPECT_TRUE(session.plan().persistent_kernel);
    return session;
  }
  Session by_step(const std::string& disabled = "", const SessionOptions& options = {}) const {
    Session session = load(disabled.empty() ? "persistent" : disabled + ",persistent", options);
    EXPECT_FALSE(session.plan().persistent_kernel);
    return session;
  }

  std::shared_ptr<opencl::Context> context_ = opencl::Context::create();
};

// PoCL has refused to link in one of many processes that started at once.
TEST_F(PersistentSession, IsLinkedOnceMoreWhereItFailed) {
  const Tensors inputs = batch_of({5, 60, 33}, 64, 2);
  const Tensors expected = by_step().run(inputs);
  const tests::ScopedVariable cache("BERTCL_CACHE", "off");
  context_ = opencl::Context::create();
  const tests::FailingOpencl failing("clLinkProgram");
  EXPECT_EQ(merged().run(inputs), expected);
}

TEST_F(PersistentSession, StepsAsideWhereItCannotBeLinked) {
  const Tensors inputs = batch_of({5, 60, 33}, 64, 2);
  const Tensors expected = by_step().run(inputs);
  const tests::ScopedVariable cache("BERTCL_CACHE", "off");
  context_ = opencl::Context::create();
  const tests::FailingOpencl failing("clLinkProgram", 1, 1000);
  Session session = load("", {});
  EXPECT_FALSE(session.plan().persistent_kernel);
  EXPECT_THAT(session.plan().why_no_persistent_kernel, HasSubstr("CL_"));
  EXPECT_EQ(session.run(inputs), expected);
}

// The second pair has attention kernels that are not mergeable: a launch for the steps of each
// layer.
TEST_F(PersistentSession, GivesTheSameBits) {
  for (const std::string disabled : {"", "x86,group"}) {
    Session persistent = merged(disabled), stepwise = by_step(disabled);
    for (const auto& lengths : std::vector<std::vector<std::int64_t>>{
             {1}, {16}, {16}, {5, 0, 33, 1}, {130, 64}, {16}, {1, 1, 1}}) {
      const Tensors inputs = batch_of(lengths, 131, static_cast<unsigned>(lengths.size()));
      EXPECT_EQ(persistent.run(inputs), stepwise.run(inputs)) << disabled << ", " << lengths.size();
    }
  }
}

TEST_F(PersistentSession, GivesTheSameBitsWithEveryVariant) {
  const Tensors inputs = batch_of({5, 60, 33}, 64, 2);
  for (const std::string disabled : {"x86_avx512_small_m", "x86_avx512", "x86_avx512,x86_avx2",
                                     "x86_avx512,x86_avx2,portable"}) {
    Session persistent = merged(disabled), stepwise = by_step(disabled);
    EXPECT_EQ(persistent.run(inputs), stepwise.run(inputs)) << disabled;
  }
  for (const bool bf16 : {false, true}) {
    SessionOptions options;
    options.precision = bf16 ? ir::DType::bf16 : ir::DType::f16;
    if (bf16 && !context_->capabilities().avx512_bf16) continue;
    Session persistent = merged("", options), stepwise = by_step("", options);
    EXPECT_EQ(persistent.run(inputs), stepwise.run(inputs)) << (bf16 ? "bf16" : "half weights");
  }
}

TEST_F(PersistentSession, GivesTheSameBitsWherePaddingStays) {
  SessionOptions options;
  options.drop_padding = false;
  Session persistent = merged("", options), stepwise = by_step("", options);
  const Tensors inputs = batch_of({7, 19}, 20, 3);
  EXPECT_EQ(persistent.run(inputs), stepwise.run(inputs));
}

TEST_F(PersistentSession, RunsByStepWhileItIsProfiled) {
  Session session = merged();
  const Tensors inputs = batch_of({12, 3}, 12, 4);
  const Tensors expected = session.run(inputs);
  opencl::Queue& queue = context_->queue();
  queue.enable_profiling(true);
  EXPECT_EQ(session.run(inputs), expected);
  std::size_t launches = 0;
  for (const opencl::ProfileEntry& entry : queue.profile()) launches += entry.calls;
  EXPECT_EQ(launches, session.plan().steps.size());
  queue.enable_profiling(false);
  EXPECT_EQ(session.run(inputs), expected);
  const Tensors larger = batch_of({90, 50}, 90, 4);
  EXPECT_EQ(session.run(larger), by_step().run(larger));
}

// Neither recorded launches nor observed tensors go with merged launches.
TEST_F(PersistentSession, IsNotMadeWhereItWouldNotRun) {
  SessionOptions options;
  options.observe = {merged().plan().steps.front().name};
  EXPECT_FALSE(load("", options).plan().persistent_kernel);
  options.observe.clear();
  options.command_buffer = true;
  if (context_->capabilities().command_buffer) {
    EXPECT_FALSE(load("", options).plan().persistent_kernel);
  }
}

// With the capability hidden; this CPU runs the kernels all the same, step by step.
TEST_F(PersistentSession, IsNotMadeWhereKernelsRunElsewhere) {
  const tests::ScopedVariable hidden("BERTCL_DISABLE", "in_process_cpu");
  SessionOptions elsewhere;
  elsewhere.context = opencl::Context::create();
  Session session = Session::load(model, elsewhere);
  EXPECT_FALSE(session.plan().persistent_kernel);
  Session persistent = merged();
  for (const auto& lengths :
       std::vector<std::vector<std::int64_t>>{{21, 4}, {3}, {3}, {100, 64, 9}, {16}}) {
    const Tensors inputs = batch_of(lengths, 100, 9);
    EXPECT_EQ(session.run(inputs), persistent.run(inputs)) << lengths.size();
  }
}

TEST_F(PersistentSession, TellsOfIdsOutsideOfTheirTableAndGoesOn) {
  Session session = merged();
  const Tensors inputs = batch_of({9}, 9, 5);
  const Tensors expected = session.run(inputs);
  for (const char* input : {"input_ids", "token_type_ids"})
    for (const std::int64_t value :
         {std::int64_t{1} << 30, (std::int64_t{1} << 32) + 1, -(std::int64_t{1} << 40)}) {
      Tensors outside = inputs;
      std::vector<std::int64_t> ids = outside[input].to_ints();
      ids[4] = value;
      outside[input] = ir::Tensor::of({1, 9}, ids);
      EXPECT_THROW(session.run(outside), Error) << input << " " << value;
      EXPECT_EQ(session.run(inputs), expected);
    }
}

TEST_F(PersistentSession, MayBeStartedAgainOrLeftBeforeItHasFinished) {
  Session session = merged();  // its run that was left goes on in the request of the next one
  const Tensors inputs = batch_of({40}, 40, 6);
  const Tensors expected = session.run(inputs);
  session.start(batch_of({200, 200}, 200, 7));
  EXPECT_EQ(session.start(inputs).finish(), expected);
  merged().start(batch_of({200, 200}, 200, 8));
  EXPECT_EQ(session.run(inputs), expected);
}

}  // namespace
}  // namespace bertcl::runtime
