// SPDX-License-Identifier: Apache-2.0
// Memory is reckoned before it is taken, and a limit holds for all of it.
#include <thread>

#include "default_model.hpp"
#include "opencl/device/capabilities.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/lacks.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

constexpr std::string_view kMatMul = R"(graph g(%x: f32[n, 8192], %w: f32[8192, 8192]) {
  %y: f32[n, 8192] = MatMul(%x, %w)
  return %y as y
})";

TEST(MaxMemory, TheArenaOfABatchIsKnownWithoutARun) {
  for (const auto& [batch, seq] : {std::pair{1, 16}, std::pair{3, 40}, std::pair{2, 200}}) {
    Session session = Session::load(model);  // another batch may leave larger buffers
    const ir::Sizes shape{batch, seq};
    const std::int64_t reckoned = session.arena_bytes(
        {{"input_ids", shape}, {"attention_mask", shape}, {"token_type_ids", shape}});
    const std::size_t before = session.context().allocated_bytes();
    session.run(batch_of(std::vector<std::int64_t>(static_cast<std::size_t>(batch), seq), seq, 1));
    EXPECT_EQ(session.memory().values, reckoned);
    EXPECT_LE(session.context().allocated_bytes(),
              before + static_cast<std::size_t>(reckoned) + 4096);
  }
}

TEST(MaxMemory, ABatchThatNeedsMoreIsRefusedByItsLargestValue) {
  SessionOptions options;
  options.max_memory = 300 << 20;
  Session session = Session::compile(ir::parse(kMatMul), options);
  const std::size_t before = session.context().allocated_bytes();
  EXPECT_ERROR(AllOf(HasSubstr("'w' f32[8192, 8192]"), HasSubstr("exceed the limit of 314572800"),
                     HasSubstr("'max_memory'")),
               session.arena_bytes({{"x", {4096, 8192}}, {"w", {8192, 8192}}}));
  EXPECT_EQ(session.context().allocated_bytes(), before);
  EXPECT_GT(session.arena_bytes({{"x", {16, 8192}}, {"w", {8192, 8192}}}), 256 << 20);
}

TEST(MaxMemory, WhatNoDeviceHasIsRefusedWithoutALimit) {
  Session session = Session::compile(ir::parse(kMatMul));
  for (const std::int64_t rows : {std::int64_t{1} << 30, std::int64_t{1} << 48, INT64_MAX})
    EXPECT_NE(error_of([&] {
                session.arena_bytes({{"x", {rows, 8192}}, {"w", {8192, 8192}}});
              }),
              kNoError)
        << rows;
}

TEST(MaxMemory, ValuesThatExceedTheLargestBufferTogetherHaveSeveral) {
  SessionOptions of_any_size, options;
  of_any_size.context = opencl::Context::create("");
  const tests::ScopedVariable largest("OTHER_LARGEST", "65536");  // tests/support/other_device.cpp
  options.context = opencl::Context::create("");
  if (options.context.get()->info().max_alloc_bytes != 65536)
    GTEST_SKIP() << "the device has larger buffers; runs in test_runtime_gpu, which limits them";
  constexpr std::string_view text = R"(graph g(%x: f32[n, 64]) {
  %a: f32[n, 64] = Softmax(%x) {axis = -1}
  %b: f32[64, n] = Transpose(%a) {perm = [1, 0]}
  %c: f32[n, n] = MatMul(%x, %b)
  %y: f32[n, 64] = MatMul(%c, %a)
  return %y as y
})";
  Session session = Session::compile(ir::parse(text), options);
  Session expected = Session::compile(ir::parse(text), of_any_size);
  for (const std::int64_t n : {100, 10, 90, 128, 1}) {
    std::vector<float> values(static_cast<std::size_t>(64 * n));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
    const Tensors inputs{{"x", ir::Tensor::of<float>({n, 64}, values)}};
    EXPECT_EQ(session.arena_bytes({{"x", {n, 64}}}) > 65536, n >= 90) << n;
    EXPECT_EQ(session.run(inputs), expected.run(inputs)) << n;
  }
  EXPECT_ERROR(HasSubstr("at most 65536 in one buffer"),
               session.run({{"x", ir::Tensor::zeros(ir::DType::f32, {300, 64})}}));
}

TEST(MaxMemory, StepsAreNotMergedWhereTheirArenaExceedsTheLargestBuffer) {
  const tests::ScopedVariable type("OTHER_TYPE", ""), groups("OTHER_ONE_ITEM", "");
  SessionOptions of_any_size, options;
  of_any_size.context = opencl::Context::create("");
  const tests::ScopedVariable largest("OTHER_LARGEST", "3000000");
  options.context = opencl::Context::create("");
  if (options.context.get()->info().max_alloc_bytes != 3000000)
    GTEST_SKIP() << "the device has larger buffers; runs in test_runtime_gpu, which limits them";
  const std::string reason =
      tests::lacks(*options.context.get(), &opencl::Capabilities::persistent_kernel);
  if (!reason.empty()) GTEST_SKIP() << "the persistent kernel " << reason;
  Session session = Session::load(model, options);
  Session expected = Session::load(model, of_any_size);
  EXPECT_TRUE(session.plan().persistent_kernel);
  for (const std::int64_t tokens : {16, 400, 30, 400, 410, 16}) {
    const Tensors inputs = batch_of({tokens}, tokens, 1);
    const ir::Sizes shape{1, tokens};
    const std::int64_t bytes = session.arena_bytes(
        {{"input_ids", shape}, {"attention_mask", shape}, {"token_type_ids", shape}});
    EXPECT_EQ(bytes > 3000000, tokens >= 400) << tokens;
    EXPECT_EQ(session.run(inputs), expected.run(inputs)) << tokens;
  }
}

TEST(MaxMemory, BuffersOfEarlierSizesCount) {
  SessionOptions options;
  options.max_memory = 1020 * 256;
  Session session = Session::compile(ir::parse(R"(graph g(%a: f32[n, 64], %b: f32[m, 64]) {
  %c: f32[n, 64] = Relu(%a)
  %d: f32[m, 64] = Relu(%b)
  return %c as c, %d as d
})"),
                                     options);
  const std::size_t before = session.context().allocated_bytes();
  for (const auto& [n, m] : {std::pair{400, 100}, {250, 250}, {100, 400}}) {
    session.run({{"a", ir::Tensor::zeros(ir::DType::f32, {n, 64})},
                 {"b", ir::Tensor::zeros(ir::DType::f32, {m, 64})}});
    EXPECT_LE(session.context().allocated_bytes(), before + 1020 * 256) << n;
  }
}

// A kernel keeps its arguments: those of earlier sizes would stand beside the larger ones.
TEST(MaxMemory, NoKernelKeepsBuffersOfEarlierSizes) {
  const tests::ScopedVariable disabled("BERTCL_DISABLE", "overlapping_views,persistent_kernel");
  SessionOptions options;
  options.context = opencl::Context::create("");
  Session session = Session::compile(ir::parse(R"(graph g(%x: f32[n, 64]) {
  %y: f32[n, 64] = Relu(%x)
  return %y as y
})"),
                                     options);
  const std::size_t before = session.context().allocated_bytes();
  session.run({{"x", ir::Tensor::zeros(ir::DType::f32, {100, 64})}});
  std::size_t held = 0;
  tests::at_opencl_call("clCreateBuffer", [&] { held = session.context().allocated_bytes(); });
  session.run({{"x", ir::Tensor::zeros(ir::DType::f32, {300, 64})}});
  tests::mend_opencl();
  EXPECT_EQ(held, before + (100 + 300) * 256) << "one buffer is replaced, the other comes next";
}

constexpr std::int64_t kLimit = 1 << 20;

Session relu_with_limit() {
  SessionOptions options;
  options.max_memory = kLimit;
  return Session::compile(ir::parse(R"(graph g(%x: f32[n, 64]) {
  %y: f32[n, 64] = Relu(%x)
  return %y as y
})"),
                          options);
}

/// Of that many bytes, as many as its output has.
Tensors input_of(std::int64_t bytes) {
  return {{"x", ir::Tensor::of<float>({bytes / 256, 64},
                                      std::vector(static_cast<std::size_t>(bytes / 4), 3.0f))}};
}

TEST(MaxMemory, HoldsForThreadsThatAllocateAtTheSameTime) {
  Session session = relu_with_limit();
  const Tensors inputs = input_of(kLimit * 3 / 8);
  bool both = false;
  tests::at_opencl_call("clCreateBuffer", [&] {
    both = true;
    std::thread([&] {
      EXPECT_ERROR(HasSubstr("exceed the limit of 1048576"), session.run(inputs));
    }).join();
  });
  EXPECT_EQ(session.run(inputs).at("y"), inputs.at("x"));
  tests::mend_opencl();
  EXPECT_TRUE(both);
  EXPECT_GE(session.memory().values, kLimit * 3 / 4);
  EXPECT_LE(session.memory().values, kLimit);
}

TEST(MaxMemory, WhatIdleRequestsHoldIsFreedForALargerBatch) {
  Session session = relu_with_limit();
  const Tensors small = input_of(kLimit / 8), large = input_of(kLimit * 3 / 8);
  const std::size_t before = session.context().allocated_bytes();
  {
    Session::Run first = session.start(small), second = session.start(small),
                 third = session.start(small);
    EXPECT_ERROR(HasSubstr("exceed the limit of 1048576"), session.start(large));
    for (Session::Run* run : {&first, &second, &third})
      EXPECT_EQ(run->finish().at("y"), small.at("x"));
  }
  EXPECT_EQ(session.memory().values, kLimit * 3 / 4);
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(session.run(large).at("y"), large.at("x"));
    EXPECT_EQ(session.memory().values, kLimit * 3 / 4);
    EXPECT_LE(session.context().allocated_bytes(), before + kLimit);
  }
  EXPECT_EQ(session.memory().requests, 1);
  Session::Run first = session.start(small), second = session.start(small);
  EXPECT_EQ(first.finish().at("y"), small.at("x"));
  EXPECT_EQ(second.finish().at("y"), small.at("x"));
}

TEST(MaxMemory, WeightsCountAndTheEnvironmentSetsIt) {
  tests::ScopedVariable limit("BERTCL_MAX_MEMORY", "10000000");
  EXPECT_ERROR(HasSubstr("10000000"), Session::load(model));
  limit.set("much");
  EXPECT_ERROR(HasSubstr("BERTCL_MAX_MEMORY: 'much' is not a number of bytes"),
               Session::load(model));
  limit.set("1000000000");
  EXPECT_NO_THROW(Session::load(model).run(batch_of({9}, 9, 1)));
}

}  // namespace
}  // namespace bertcl::runtime
