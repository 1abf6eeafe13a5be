// SPDX-License-Identifier: Apache-2.0
// Kernels that a GPU's driver builds and does not launch, as tests/support/other_device.cpp refuses
// them: without it there is no GPU, and these tests are skipped.
#include <string>

#include "runtime/session.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/failing_opencl.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

class RefusedLaunches : public testing::Test {
 protected:
  void SetUp() override {
    if (opencl::Context::create("")->info().is_cpu())
      GTEST_SKIP() << "there is no GPU; runs in test_runtime_gpu";
    expected_ = load("").run(inputs_);
  }

  /// With launches that fail, as OTHER_LAUNCH says.
  static Session load(const std::string& refused, const SessionOptions& options = {}) {
    const tests::ScopedVariable setting("OTHER_LAUNCH", refused);
    return Session::compile(ir::parse(R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 70] = splat 0.25
  %y: f32[batch, 70] = MatMul(%x, %w)
  %z: f32[batch, 70] = Softmax(%y) {axis = -1}
  return %z as z
})"),
                            options);
  }
  static const plan::Step& gemm_of(const Session& session) { return session.plan().steps[0]; }

  const Tensors inputs_{{"x", ir::Tensor::of<float>({2, 4}, {1, 2, 3, 4, 4, 3, 2, 1})}};
  Tensors expected_;
};

TEST_F(RefusedLaunches, TheNextVariantIsTakenWithTheReason) {
  EXPECT_EQ(gemm_of(load("")).variant, "group");
  for (const char* status : {"-5", "-54"}) {
    const std::string refused = std::string(status) + " gemm_f32:256";
    Session session = load(refused);
    EXPECT_EQ(gemm_of(session).variant, "portable") << refused;
    EXPECT_THAT(gemm_of(session).why_not_faster,
                HasSubstr("group: the driver refuses its launch: launch 'y' of kernel 'gemm_f32'"));
    const tests::ScopedVariable setting("OTHER_LAUNCH", refused);
    EXPECT_EQ(session.run(inputs_), expected_);
  }
}

TEST_F(RefusedLaunches, AnAlternativeIsDroppedWithTheReason) {
  const plan::Alternative smaller = gemm_of(load("")).alternatives.at(0);
  const std::string rows = "-DTILE_M=" + std::to_string(smaller.kernel.defines().at("TILE_M"));
  const Session session = load("-5 gemm_f32/" + rows);
  EXPECT_EQ(gemm_of(session).variant, "group");
  EXPECT_THAT(gemm_of(session).alternatives,
              Not(Contains(Field(&plan::Alternative::variant, smaller.variant))));
  EXPECT_THAT(gemm_of(session).why_not_faster,
              HasSubstr(smaller.variant + ": the driver refuses its launch: launch 'y' of kernel"));
}

TEST_F(RefusedLaunches, WithoutAnotherVariantTheErrorNamesTheKernel) {
  EXPECT_ERROR(
      AllOf(HasSubstr("launch 'y' of kernel 'gemm_f32'"), HasSubstr("CL_INVALID_WORK_GROUP_SIZE")),
      load("-54 gemm_f32"));
}

TEST_F(RefusedLaunches, OutOfMemoryIsNotARefusal) {
  EXPECT_ERROR(AllOf(HasSubstr("launch 'y' of kernel 'gemm_f32'"),
                     HasSubstr("CL_MEM_OBJECT_ALLOCATION_FAILURE")),
               load("-4 gemm_f32"));
  Session session = load("");
  EXPECT_EQ(gemm_of(session).variant, "group");
  EXPECT_EQ(session.run(inputs_), expected_);
}

TEST_F(RefusedLaunches, ADeviceThatFailsIsToldAtTheLoad) {
  EXPECT_ERROR(HasSubstr("CL_DEVICE_NOT_AVAILABLE"), load("-2 gemm_f32"));
}

TEST_F(RefusedLaunches, AKernelThatIsNeverBuiltIsARefusal) {
  for (const char* status : {"-5", "-11"}) {
    const tests::ScopedVariable cache("BERTCL_CACHE", "off"),
        setting("OTHER_BUILD", std::string(status) + " copies_b");  // of gemm_f32_group.cl
    Session session = load("");
    EXPECT_EQ(gemm_of(session).variant, "portable") << status;
    EXPECT_THAT(gemm_of(session).why_not_faster,
                HasSubstr("group: the driver refuses its kernel: building 'gemm_f32_group.cl'"));
    EXPECT_EQ(session.run(inputs_), expected_);
  }
}

TEST_F(RefusedLaunches, WantOfMemoryForABuildIsNotARefusal) {
  const tests::ScopedVariable cache("BERTCL_CACHE", "off");
  SessionOptions options;
  options.context = opencl::Context::create("");
  {
    const tests::ScopedVariable setting("OTHER_BUILD", "-6 copies_b");
    EXPECT_ERROR(HasSubstr("CL_OUT_OF_HOST_MEMORY"), load("", options));
  }
  EXPECT_EQ(gemm_of(load("", options)).variant, "group");
}

TEST_F(RefusedLaunches, AShortageThatPassesIsNotARefusal) {
  constexpr const char* function = "clEnqueueNDRangeKernel";
  SessionOptions options;
  options.context = opencl::Context::create("");
  const Session untroubled = load("", options);
  const tests::FailingOpencl none(function, 1, 0);
  load("", options);
  const int launches = tests::opencl_calls(function);
  int loaded = 0;
  for (int launch = 1; launch <= launches; ++launch) {
    const tests::FailingOpencl once(function, launch);
    try {
      const Session session = load("", options);
      EXPECT_EQ(gemm_of(session).variant, gemm_of(untroubled).variant) << "launch " << launch;
      EXPECT_EQ(gemm_of(session).alternatives.size(), gemm_of(untroubled).alternatives.size())
          << "launch " << launch;
      ++loaded;
    } catch (const Error&) {  // of the weights' prepacking
    }
  }
  EXPECT_GE(loaded, 3) << "of " << launches << " launches";
}

}  // namespace
}  // namespace bertcl::runtime
