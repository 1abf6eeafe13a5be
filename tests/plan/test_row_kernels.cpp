// SPDX-License-Identifier: Apache-2.0
// Launches of row kernels by work-groups.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/text.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {
namespace {

Plan plan_of(std::string_view text) {
  Options options;
  options.disabled = "rows";  // which CPUs prefer
  return make_plan(ir::parse(text), opencl::Context::create("cpu"), options);
}

TEST(RowKernels, RowsAreGroupsOfTheFirstAxis) {
  for (const std::string_view text : {R"(graph g(%x: f32[rows, 1500]) {
  %y: f32[rows, 1500] = Softmax(%x) {axis = -1}
  return %y as y
})",
                                      R"(graph g(%x: f32[rows, 1500]) {
  const %g: f32[1500] = ...
  %y: f32[rows, 1500] = add_norm(%x, %x, %g, %g) {epsilon = 0.5}
  return %y as y
})"}) {
    const Plan plan = plan_of(text);
    ASSERT_EQ(plan.steps.size(), 1u);
    const Step& step = plan.steps[0];
    ASSERT_GT(step.local[0], 1u) << step.implementation;
    const ir::Bindings sizes{{"rows", 70'000}};  // NVIDIA takes 65,535 groups along another axis
    EXPECT_EQ(static_cast<std::size_t>(step.global[0].evaluate(sizes)), 70'000 * step.local[0]);
    EXPECT_EQ(step.global[1].evaluate(sizes), 1);
    EXPECT_EQ(step.global[2].evaluate(sizes), 1);
  }
}

}  // namespace
}  // namespace bertcl::plan
