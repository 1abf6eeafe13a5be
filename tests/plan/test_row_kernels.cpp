// SPDX-License-Identifier: Apache-2.0
// Launches of row kernels by work-groups.
#include <fmt/format.h>

#include "plan/builder.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::plan {
namespace {

Plan plan_without_rows(std::string_view text) {
  Options options;
  options.disabled = {"rows"};  // which CPUs prefer
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
    const Plan plan = plan_without_rows(text);
    ASSERT_EQ(plan.steps.size(), 1u);
    const Step& step = plan.steps[0];
    ASSERT_GT(step.local[0], 1u) << step.variant;
    const ir::Bindings sizes{{"rows", 70'000}};  // NVIDIA takes 65,535 groups along another axis
    EXPECT_EQ(static_cast<std::size_t>(step.global[0].evaluate(sizes)), 70'000 * step.local[0]);
    EXPECT_EQ(step.global[1].evaluate(sizes), 1);
    EXPECT_EQ(step.global[2].evaluate(sizes), 1);
  }
}

// A GPU has the reason in its report. A CPU takes rows without it, and gives it where it may not.
TEST(RowKernels, RowsThatNoWorkGroupKeepsSayWhy) {
  // Of the kernels that keep a row, the one that compiles fastest; and one of float rows.
  const std::string quantize = R"(graph g(%x: f32[batch, {0}]) {{
  %y: i8[batch, {0}], %s: f32[batch, 1] = quantize_rows(%x) {{least = 0.5}}
  return %y as y, %s as s
}})";
  const std::string norm = R"(graph g(%x: f32[batch, {0}]) {{
  const %g: f32[{0}] = ...
  %y: f32[batch, {0}] = add_norm(%x, %x, %g, %g) {{epsilon = 0.5}}
  return %y as y
}})";
  const auto refusal = [](const std::string& graph, const std::string& columns) {
    return error_of([&] { plan_without_rows(fmt::format(fmt::runtime(graph), columns)); });
  };
  EXPECT_EQ(refusal(quantize, "8192"), kNoError);
  for (const std::string& graph : {quantize, norm})
    EXPECT_THAT(refusal(graph, "8193"), HasSubstr("; group: its rows have 8193 columns, a "
                                                  "work-group holds at most 8192; rows: disabled"));
}

}  // namespace
}  // namespace bertcl::plan
