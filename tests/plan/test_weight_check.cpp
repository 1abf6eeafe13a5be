// SPDX-License-Identifier: Apache-2.0
// NaN and infinity in constants: told by name and place, wherever the plan keeps them.
#include <fmt/format.h>

#include <limits>

#include "plan/builder.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::plan {
namespace {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A linear with prepacked weights, small and large constants of Adds.
ir::Graph graph_with(const std::string& name, std::size_t index, float value,
                     ir::DType type = ir::DType::f32) {
  ir::Graph graph = ir::parse(R"(graph g(%x: f32[batch, 96]) {
  const %weight: f32[96, 8192] = splat 0.5  const %bias: f32[8192] = splat 0.25
  const %small: f32[1, 1] = splat 1  const %large: f32[3, 1, 8192] = splat 1
  %y: f32[batch, 8192] = linear(%x, %weight, %bias)
  %a: f32[batch, 8192] = Add(%y, %small)
  %b: f32[3, batch, 8192] = Add(%a, %large)
  return %b as y
})");
  ir::Value* constant = graph.find_value(name);
  std::vector<float> values(static_cast<std::size_t>(constant->constant->size()), 0.5f);
  values.at(index) = value;
  constant->constant =
      ir::Tensor::of(constant->constant->shape(), std::move(values)).converted(type);
  constant->type.dtype = type;
  return graph;
}

std::string weight_error(const ir::Graph& graph, const Options& options = {}) {
  return error_of([&] { make_plan(graph, opencl::Context::create("cpu"), options); });
}

TEST(WeightCheck, TellsNameAndFirstPlace) {
  Options options;
  options.allow_nonfinite = false;
  for (const auto& [name, index] :
       std::vector<std::pair<std::string, std::size_t>>{{"weight", 0},
                                                        {"weight", 96 * 8192 - 1},
                                                        {"weight", 70'001},
                                                        {"bias", 8191},
                                                        {"small", 0},
                                                        {"large", 3 * 8192 - 1}})
    EXPECT_THAT(weight_error(graph_with(name, index, kNaN), options),
                AllOf(HasSubstr("'" + name + "'"), HasSubstr(fmt::format("element {}:", index)),
                      HasSubstr("'allow_nonfinite'")))
        << name << " " << index;
}

TEST(WeightCheck, AnOptionThatTheCallerDoesNotHaveIsNotNamed) {
  for (const char* name : {"weight", "small"})
    EXPECT_THAT(weight_error(graph_with(name, 0, kNaN)),
                EndsWith("the file is damaged or training diverged"))
        << name;
}

TEST(WeightCheck, InfinityIsRefusedInWeightsAlone) {
  for (const float value : {kInfinity, -kInfinity}) {
    EXPECT_THAT(weight_error(graph_with("weight", 5, value)), HasSubstr("'weight'"));
    for (const char* mask : {"small", "large", "bias"})
      EXPECT_EQ(weight_error(graph_with(mask, 0, value)), kNoError) << mask;
  }
}

TEST(WeightCheck, TakesWhatIsFinite) {
  for (const float value : {0.0f, -0.0f, 1e-45f, std::numeric_limits<float>::max()})
    EXPECT_EQ(weight_error(graph_with("weight", 5, value)), kNoError) << value;
  EXPECT_EQ(weight_error(graph_with("weight", 5, 65504.0f, ir::DType::f16)), kNoError);
}

TEST(WeightCheck, ReadsHalves) {
  for (const float value : {kNaN, kInfinity})
    EXPECT_THAT(weight_error(graph_with("weight", 7, value, ir::DType::f16)),
                AllOf(HasSubstr("'weight'"), HasSubstr("element 7:")));
}

TEST(WeightCheck, IsLeftOutWhereThatIsAllowed) {
  Options options;
  options.allow_nonfinite = true;
  for (const char* name : {"weight", "small", "large"})
    EXPECT_EQ(weight_error(graph_with(name, 0, kNaN), options), kNoError) << name;
}

}  // namespace
}  // namespace bertcl::plan
