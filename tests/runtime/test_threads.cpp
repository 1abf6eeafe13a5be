// SPDX-License-Identifier: Apache-2.0
// One session and several threads: a clean refusal. Several sessions on one context: right bits.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "default_model.hpp"
#include "encoder.hpp"
#include "opencl/capabilities.hpp"
#include "opencl/queue.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/error_of.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::runtime {
namespace {

using testing::HasSubstr;
using tests::error_of;

const char* const kElsewhere = "this session is already running in another thread";

Tensors encoder_inputs() {
  return {{"x", ir::Tensor::of<float>({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})},
          {"mask", ir::Tensor::of<std::int64_t>({1, 2}, {1, 1})}};
}

void in_another_thread(const std::function<void()>& work) { std::thread(work).join(); }

TEST(Threads, CallsThatMeetARunOfAnotherThreadAreRefused) {
  SessionOptions options;
  options.observe = {"q"};
  Session session = Session::compile(masked_encoder("i64"), options);
  const Tensors inputs = encoder_inputs(), expected = session.run(inputs);
  int taps = 0;
  session.set_tap([&](const std::string&, const opencl::Buffer&, ir::DType, const ir::Sizes&) {
    ++taps;
    in_another_thread([&] {
      EXPECT_THAT(error_of([&] { session.run(inputs); }), HasSubstr(kElsewhere));
      EXPECT_THAT(error_of([&] { session.start(inputs); }), HasSubstr(kElsewhere));
      EXPECT_THAT(error_of([&] { session.finish(); }), HasSubstr(kElsewhere));
      EXPECT_THAT(error_of([&] { session.set_tap({}); }), HasSubstr(kElsewhere));
      EXPECT_THAT(error_of([&] { session.statistics(); }), HasSubstr(kElsewhere));
      EXPECT_THAT(error_of([&] { session.arena_bytes(); }), HasSubstr(kElsewhere));
    });
    EXPECT_THAT(error_of([&] { session.run(inputs); }), HasSubstr("this session is running"));
    EXPECT_GT(session.arena_bytes(), 0);
  });
  EXPECT_EQ(session.run(inputs), expected);
  EXPECT_EQ(taps, 1);
  session.set_tap({});
  in_another_thread([&] { EXPECT_EQ(session.run(inputs), expected); });
}

TEST(Threads, ManyOnOneSessionGetTheRightBitsOrARefusal) {
  Session session = Session::load(model);
  const Tensors inputs = batch_of({40, 7}, 40, 1), expected = session.run(inputs);
  std::atomic<int> right = 0, refused = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int run = 0; run < 25; ++run) try {
          EXPECT_EQ(session.run(inputs), expected);
          ++right;
        } catch (const Error& error) {
          EXPECT_THAT(error.what(), HasSubstr(kElsewhere));
          ++refused;
        }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right + refused, 100);
  EXPECT_GT(right, 0);
  EXPECT_EQ(session.run(inputs), expected);
}

TEST(Threads, AStartedRunIsFinishedBeforeAnotherThreadStartsOne) {
  Session session = Session::compile(masked_encoder("i64"));
  const Tensors inputs = encoder_inputs(), expected = session.run(inputs);
  session.start(inputs);
  in_another_thread([&] {
    EXPECT_THAT(error_of([&] { session.run(inputs); }), HasSubstr(kElsewhere));
    EXPECT_EQ(session.finish(), expected);
    EXPECT_EQ(session.run(inputs), expected);
  });
}

TEST(Threads, ARunThatFailsEndsItsTurn) {
  Session session = Session::compile(masked_encoder("i64"));
  const Tensors inputs = encoder_inputs(), expected = session.run(inputs);
  EXPECT_THAT(error_of([&] { session.run({}); }), HasSubstr("input"));
  in_another_thread([&] { EXPECT_EQ(session.run(inputs), expected); });
}

/// What a session of these options gives for batches of mixed lengths.
std::vector<Tensors> results_of(SessionOptions options, opencl::ContextFuture context) {
  options.context = std::move(context);
  Session session = Session::load(model, options);
  std::vector<Tensors> results;
  for (const auto& lengths :
       std::vector<std::vector<std::int64_t>>{{16}, {5, 0, 33, 1}, {130, 64}, {1}, {60, 60}, {16}})
    for (int again = 0; again < 3; ++again)
      results.push_back(session.run(batch_of(lengths, 131, static_cast<unsigned>(lengths[0]))));
  return results;
}

// Its capabilities are not known when they begin, and profiling comes and goes.
TEST(Threads, SessionsOnOneContextGiveTheBitsOfOneThread) {
  const tests::ScratchFolder folder;
  std::vector<SessionOptions> options(4);
  options[1].disabled_kernels = "persistent";
  options[2].gemm = "clblast";
  options[3].drop_padding = false;
  std::vector<std::vector<Tensors>> expected;
  for (const SessionOptions& each : options)
    expected.push_back(results_of(each, opencl::Context::create()));

  const tests::ScopedVariable cache("BERTCL_CACHE", (folder / "cache").string());
  const auto context = opencl::Context::create();
  std::vector<std::thread> threads;
  std::atomic<std::size_t> running = options.size();
  for (std::size_t i = 0; i < options.size(); ++i)
    threads.emplace_back([&, i] {
      const std::vector<Tensors> results = results_of(options[i], context);
      for (std::size_t run = 0; run < results.size(); ++run)
        EXPECT_EQ(results[run], expected[i][run]) << "session " << i << ", run " << run;
      --running;
    });
  for (bool on = true; running > 0; on = !on) {
    context->queue().enable_profiling(on);
    context->queue().profile();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace bertcl::runtime
