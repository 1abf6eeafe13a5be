// SPDX-License-Identifier: Apache-2.0
// Programs of a plan: asked for by all its nodes first, then built, with count and blame.
#include <fmt/format.h>

#include <set>

#include "opencl/base/cl.hpp"
#include "opencl/device/capabilities.hpp"
#include "plan/builder.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/lacks.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::plan {
namespace {

constexpr std::string_view kGraph = R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]
  const %v: f32[4, 4] = [8, 7, 6, 5, 4, 3, 2, 1, 8, 7, 6, 5, 4, 3, 2, 1]
  %r: f32[batch, 4] = Relu(%x)
  %a: f32[batch, 4] = linear(%r, %w)
  %b: f32[batch, 4] = linear(%a, %v)
  %y: f32[batch, 4] = Sigmoid(%b)
  return %y as y
})";

TEST(Programs, EachIsCountedOnceAndAllAreKnownBeforeTheFirst) {
  std::vector<std::pair<std::size_t, std::size_t>> calls;
  Options options;
  options.on_program = [&](std::size_t built, std::size_t programs) {
    calls.emplace_back(built, programs);
  };
  const auto context = opencl::Context::create("cpu");
  const Plan plan = make_plan(ir::parse(kGraph), context, options);
  std::set<std::string> programs{"pack"};  // of the weights, in no step
  for (const Step& step : plan.steps) programs.insert(step.kernel.program_name());
  ASSERT_EQ(programs.size(), 3u) << "one of GEMMs, one for Relu and Sigmoid";
  ASSERT_EQ(calls.size(), programs.size());
  for (std::size_t i = 0; i < calls.size(); ++i)
    EXPECT_EQ(calls[i], std::make_pair(i, programs.size()));
}

TEST(Programs, WhatDoesNotBuildIsToldWithItsNode) {
  const tests::ScratchFolder folder;
  folder.write("elementwise_unary.cl", "__kernel void unary_f32() { undeclared = 1; }");
  const tests::ScopedVariable kernels("BERTCL_KERNELS", folder.path().string());
  EXPECT_ERROR(AllOf(StartsWith("Relu (result 'r'): "), HasSubstr("elementwise_unary.cl"),
                     HasSubstr("undeclared")),
               make_plan(ir::parse(kGraph), opencl::Context::create("cpu"), {}));
}

TEST(Programs, EveryKernelOfAStepTakesItsArguments) {
  const tests::ScratchFolder folder;
  folder.write("one.cl", "__kernel void one(int a) {}");
  folder.write("two.cl", "__kernel void two(int a, int b) {}");
  const tests::ScopedVariable kernels("BERTCL_KERNELS", folder.path().string());
  const auto context = opencl::Context::create("cpu");
  const ir::Graph graph = ir::parse(kGraph);
  const ir::Node& relu = *graph.nodes().front();
  // What a step says that is launched as `kernel`, in small tiles and for small M by the others.
  const auto finish = [&](const char* kernel, const char* small, const char* rows) {
    Plan plan;
    plan.context = context;
    const Options options;
    Builder b(plan, options);
    b.set_node(relu);
    Step& step = b.launch(relu, Arithmetic::fp32, "first", b.kernel(kernel, kernel), {1}, {});
    step.alternatives.push_back({{"second", b.kernel(small, small), {}}, 0});
    step.alternatives.push_back({{"third", b.kernel(rows, rows), {}}, 8});
    return error_of([&] { b.finish(); });
  };
  EXPECT_EQ(finish("one", "one", "one"), kNoError);
  const std::string refusal = "Relu 'r': kernel two takes 2 arguments, got 1";
  EXPECT_EQ(finish("two", "one", "one"), refusal);
  EXPECT_EQ(finish("one", "two", "one"), refusal);
  EXPECT_EQ(finish("one", "one", "two"), refusal);
}

/// Twenty linear layers of one weight; what `between` makes of %x comes first.
std::string layers_after(const std::string& between) {
  std::string text = R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8]
)";
  text += between;
  for (int i = 1; i <= 20; ++i)
    text += fmt::format("  %a{}: f32[batch, 4] = linear(%a{}, %w)\n", i, i - 1);
  return text + "  return %a20 as y\n}";
}

TEST(Programs, ModelsThatDifferInSmallKernelsShareThePersistentKernel) {
  const auto context = opencl::Context::create("cpu");
  const std::string reason = tests::lacks(*context, &opencl::Capabilities::persistent_kernel);
  if (!reason.empty()) GTEST_SKIP() << "the persistent kernel " << reason;
  const auto program_of = [&](const std::string& between) {
    const Plan plan = make_plan(ir::parse(layers_after(between)), context, {});
    EXPECT_TRUE(plan.persistent_kernel) << between;
    cl_program program = nullptr;
    clGetKernelInfo(plan.persistent_kernel.native(), CL_KERNEL_PROGRAM, sizeof(program), &program,
                    nullptr);
    return program;
  };
  const cl_program copies = program_of(R"(
  %t: f32[4, batch] = Transpose(%x) {perm = [1, 0]}
  %a0: f32[batch, 4] = Transpose(%t) {perm = [1, 0]}
)");
  const cl_program relu = program_of("  %a0: f32[batch, 4] = Relu(%x)\n");
  EXPECT_EQ(copies, relu);
}

}  // namespace
}  // namespace bertcl::plan
