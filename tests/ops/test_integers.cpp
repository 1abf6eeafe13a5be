// SPDX-License-Identifier: Apache-2.0
// Integers at the ends of their range: arithmetic wraps around, sizes that 64 bits do not hold are
// refused. The sanitizers (preset `sanitize`) see what overflows without a wrong result.
#include <limits>

#include "bertcl/error.hpp"
#include "ops/infer.hpp"
#include "ops/interpret.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::ops {
namespace {

constexpr std::int64_t low = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t high = std::numeric_limits<std::int64_t>::max();

/// The results for %x, of these elements and this shape.
std::vector<ir::Tensor> results(const std::string& text, ir::Sizes shape,
                                std::vector<std::int64_t> x) {
  ir::Graph graph = ir::parse(text);
  SymbolicValues values;
  infer(graph, values);
  return interpret(graph, {{"x", ir::Tensor::of<std::int64_t>(std::move(shape), std::move(x))}});
}

TEST(Integers, SignsWrapAround) {
  const auto y = results(R"(graph g(%x: i64[3]) {
      %neg: i64[] = Neg(%x)
      %abs: i64[] = Abs(%x)
      return %neg, %abs })",
                         {3}, {low, -7, high});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(low, 7, -high));
  EXPECT_THAT(y[1].to_ints(), ElementsAre(low, 7, high));
}

TEST(Integers, SumsAndProductsWrapAround) {
  const auto y = results(R"(graph g(%x: i64[2, 2]) {
      const %axis: i64[] = 0
      %sum: i64[] = ReduceSum(%x) {axes = [0], keepdims = 0}
      %mean: i64[] = ReduceMean(%x) {axes = [0], keepdims = 0}
      %product: i64[] = ReduceProd(%x) {axes = [0], keepdims = 0}
      %squares: i64[] = ReduceSumSquare(%x) {axes = [0], keepdims = 0}
      %l1: i64[] = ReduceL1(%x) {axes = [0], keepdims = 0}
      %l2: i64[] = ReduceL2(%x) {axes = [0], keepdims = 0}
      %cumulated: i64[] = CumSum(%x, %axis)
      %matrix: i64[] = MatMul(%x, %x)
      return %sum, %mean, %product, %squares, %l1, %l2, %cumulated, %matrix })",
                         {2, 2}, {high, 3037000500, 2, 4});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(low + 1, 3037000504));
  EXPECT_THAT(y[1].to_ints(), ElementsAre(low / 2 + 1, 1518500252));
  EXPECT_THAT(y[2].to_ints(), ElementsAre(-2, 12148002000));
  EXPECT_THAT(y[3].to_ints(), ElementsAre(5, low + 145474208));
  EXPECT_THAT(y[4].to_ints(), ElementsAre(low + 1, 3037000504));
  EXPECT_THAT(y[5].to_ints(), ElementsAre(2, 0));  // no square root of a negative sum
  EXPECT_THAT(y[6].to_ints(), ElementsAre(high, 3037000500, low + 1, 3037000504));
  EXPECT_THAT(y[7].to_ints(), ElementsAre(6074001001, 9111001500, 6, 6074001016));
}

TEST(Integers, PadsThatExceedTheAxisTakeNothing) {
  const auto padded = [](std::int64_t before, std::int64_t after) {
    ir::Graph graph = ir::parse("graph g(%x: i64[2, 4]) { %y: i64[] = Pad(%x) return %y }");
    graph.find_value("y")->producer->attributes["pads"] =
        std::vector<std::int64_t>{0, before, 0, after};
    SymbolicValues values;
    infer(graph, values);
    return interpret(graph,
                     {{"x", ir::Tensor::of<std::int64_t>({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})}})[0]
        .to_ints();
  };
  EXPECT_THAT(padded(-1, -2), ElementsAre(2, 6));
  EXPECT_THAT(padded(high / 2 + 1, -high / 2 - 4), ElementsAre(0, 0));
  EXPECT_THAT(padded(low, high), ElementsAre(0, 0, 0, 0, 0, 0));
}

TEST(Integers, RangeIsExact) {
  const auto range = [](std::int64_t start, std::int64_t limit, std::int64_t step) {
    ir::Graph graph = ir::parse(
        "graph g(%start: i64[], %limit: i64[], %step: i64[]) {"
        "%y: i64[] = Range(%start, %limit, %step) return %y }");
    SymbolicValues values;
    infer(graph, values);
    return interpret(graph, {{"start", ir::Tensor::scalar(start)},
                             {"limit", ir::Tensor::scalar(limit)},
                             {"step", ir::Tensor::scalar(step)}})[0]
        .to_ints();
  };
  const std::int64_t beyond_doubles = (std::int64_t{1} << 53) + 1;
  EXPECT_THAT(range(beyond_doubles, beyond_doubles + 3, 2),
              ElementsAre(beyond_doubles, beyond_doubles + 2));
  EXPECT_EQ(range(beyond_doubles, beyond_doubles + 3, 1).size(), 3u);
  EXPECT_EQ(range(beyond_doubles + 3, beyond_doubles, -1).size(), 3u);
  EXPECT_THAT(range(5, low / 2, 1), ElementsAre());
  EXPECT_THAT(range(high, 0, low / 2), ElementsAre(high, high / 2));
  EXPECT_THAT(range(5, 5, 1), ElementsAre());
  EXPECT_THROW(range(0, 1, 0), Error);
  EXPECT_THROW(range(0, 0, 0), Error);
  EXPECT_THROW(range(low, high, 1), Error);
}

TEST(Integers, ExtentsOfAnEmptyTensorMayNotOverflow) {
  const auto run = [](const std::string& node) {
    return results(
        "graph g(%x: i64[0, 4611686018427387904, 4]) { %y: i64[] = " + node + " return %y }",
        {0, std::int64_t{1} << 62, 4}, {});
  };
  EXPECT_THROW(run("Transpose(%x) {perm = [2, 0, 1]}"), Error);
  EXPECT_THROW(run("ReduceMean(%x) {axes = [1, 2]}"), Error);
}

TEST(Integers, OneHotNeedsADepth) {
  EXPECT_THROW(results("graph g(%x: i64[1]) { const %depth: i64[] = -1 const %values: i64[2] = "
                       "[0, 1] %y: i64[] = OneHot(%x, %depth, %values) return %y }",
                       {1}, {low}),
               Error);
}

}  // namespace
}  // namespace bertcl::ops
