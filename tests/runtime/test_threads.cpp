// SPDX-License-Identifier: Apache-2.0
// Several threads on one session, and several sessions on one context, give the bits of one thread.
#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "default_model.hpp"
#include "encoder.hpp"
#include "opencl/device/capabilities.hpp"
#include "opencl/queue.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::runtime {
namespace {

Tensors encoder_inputs() {
  return {{"x", ir::Tensor::of<float>({1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})},
          {"mask", ir::Tensor::of<std::int64_t>({1, 2}, {1, 1})}};
}

void in_another_thread(const std::function<void()>& work) { std::thread(work).join(); }

/// Batches of mixed lengths, and of mixed numbers of texts.
const std::vector<std::vector<std::int64_t>> kBatches = {{16},     {5, 0, 33, 1}, {130, 64}, {1},
                                                         {60, 60}, {16},          {7, 7, 7}};

/// Lengths are divided by this, and rows of padding with them: CLBlast is slow on CPUs.
std::int64_t shorter_by(const SessionOptions& options) { return options.gemm == "clblast" ? 8 : 1; }

Tensors numbered_batch(std::size_t i, std::int64_t shorter = 1) {
  std::vector<std::int64_t> lengths = kBatches[i % kBatches.size()];
  for (std::int64_t& length : lengths) length = (length + shorter - 1) / shorter;
  return batch_of(lengths, 130 / shorter + 1, static_cast<unsigned>(lengths[0]));
}

// 8 threads with `runs` runs; each begins with another batch.
void expect_bits_of_one_thread(const SessionOptions& options, std::size_t runs = 25) {
  Session session = Session::load(model, options);
  const std::int64_t shorter = shorter_by(options);
  std::vector<Tensors> inputs, expected;
  for (std::size_t i = 0; i < kBatches.size(); ++i) {
    inputs.push_back(numbered_batch(i, shorter));
    expected.push_back(session.run(inputs.back()));
  }
  const std::size_t alone = session.context().allocated_bytes();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (std::size_t run = t; run < t + runs; ++run)
        EXPECT_EQ(session.run(inputs[run % inputs.size()]), expected[run % inputs.size()])
            << "thread " << t << ", batch " << run % inputs.size();
    });
  for (std::thread& thread : threads) thread.join();
  // An arena, tables and steps for each run in flight, and no second copy of the weights.
  const ir::Sizes shape{4, 130 / shorter + 1};
  const auto largest = static_cast<std::size_t>(session.arena_bytes(
      {{"input_ids", shape}, {"attention_mask", shape}, {"token_type_ids", shape}}));
  EXPECT_LE(session.context().allocated_bytes(),
            alone + static_cast<std::size_t>(options.requests) * (largest + (1 << 20)));
}

TEST(Threads, ManyOnOneSessionGetTheBitsOfOne) { expect_bits_of_one_thread({}); }

TEST(Threads, ManyOnOneSessionWithALaunchForEachStep) {
  SessionOptions options;
  options.disabled_kernels = "persistent";
  options.requests = 3;
  expect_bits_of_one_thread(options);
}

TEST(Threads, ManyOnOneSessionWithClblast) {
  SessionOptions options;
  options.gemm = "clblast";
  options.drop_padding = false;
  expect_bits_of_one_thread(options, 2);  // the threads still meet all batches
}

TEST(Threads, StartedRunsAreFinishedInAnyOrderByAnyThread) {
  Session session = Session::load(model);
  std::vector<Tensors> expected;
  for (std::size_t i = 0; i < 4; ++i) expected.push_back(session.run(numbered_batch(i)));
  std::vector<Session::Run> runs;
  for (std::size_t i = 0; i < 4; ++i) runs.push_back(session.start(numbered_batch(i)));
  EXPECT_ERROR(HasSubstr("the limit of 4 concurrent runs"), session.start(numbered_batch(4)));
  in_another_thread([&] {
    for (const std::size_t i : {2, 0, 3}) EXPECT_EQ(runs[i].finish(), expected[i]) << i;
  });
  EXPECT_EQ(session.run(numbered_batch(3)), expected[3]);
  EXPECT_ERROR(HasSubstr("finished"), runs[2].finish());
  runs.pop_back();
  EXPECT_EQ(runs[1].finish(), expected[1]);
}

// An error of one run is not told to another.
TEST(Threads, AnIdOutsideTheTableIsAnErrorOfItsRunAlone) {
  Session session = Session::load(model);
  const Tensors inputs = numbered_batch(0), expected = session.run(inputs);
  Tensors outside = inputs;
  std::vector<std::int64_t> ids = outside["input_ids"].to_ints();
  ids[1] = 1 << 20;
  outside["input_ids"] = ir::Tensor::of(inputs.at("input_ids").shape(), ids);
  std::vector<std::thread> threads;
  for (const bool wrong : {true, false, true, false})
    threads.emplace_back([&, wrong] {
      for (int run = 0; run < 20; ++run)
        if (wrong)
          EXPECT_ERROR(HasSubstr("outside its table"), session.run(outside));
        else
          EXPECT_EQ(session.run(inputs), expected);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, ARunThatFailsLeavesItsRequestToOthers) {
  SessionOptions options;
  options.requests = 1;
  Session session = Session::compile(masked_encoder("i64"), options);
  const Tensors inputs = encoder_inputs(), expected = session.run(inputs);
  EXPECT_ERROR(HasSubstr("input"), session.run(Tensors{}));
  in_another_thread([&] { EXPECT_EQ(session.run(inputs), expected); });
}

/// What a session of these options gives for batches of mixed lengths, so often one after the
/// other.
std::vector<Tensors> results_of(SessionOptions options, opencl::ContextFuture context,
                                std::size_t times) {
  const std::int64_t shorter = shorter_by(options);
  options.context = std::move(context);
  Session session = Session::load(model, options);
  std::vector<Tensors> results;
  for (std::size_t i = 0; i < kBatches.size(); ++i)
    for (std::size_t run = 0; run < times; ++run)
      results.push_back(session.run(numbered_batch(i, shorter)));
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
    expected.push_back(results_of(each, opencl::Context::create(), 1));

  const tests::ScopedVariable cache("BERTCL_CACHE", (folder / "cache").string());
  const auto context = opencl::Context::create();
  std::vector<std::thread> threads;
  std::atomic<std::size_t> running = options.size();
  for (std::size_t i = 0; i < options.size(); ++i)
    threads.emplace_back([&, i] {
      constexpr std::size_t times = 3;
      const std::vector<Tensors> results = results_of(options[i], context, times);
      EXPECT_EQ(results.size(), times * expected[i].size());
      for (std::size_t run = 0; run < results.size(); ++run)
        EXPECT_EQ(results[run], expected[i][run / times]) << "session " << i << ", run " << run;
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
