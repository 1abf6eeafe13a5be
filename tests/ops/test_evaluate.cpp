// SPDX-License-Identifier: Apache-2.0
// Values of operators against small results worked out by hand from the ONNX definitions.
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <vector>

#include "bertcl/error.hpp"
#include "evaluated.hpp"
#include "ops/op.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::ops {
namespace {

TEST(Evaluate, RoundsHalfToEven) {
  const auto y = run("graph g(%x: f32[6]) { %y: f32[] = Round(%x) return %y }",
                     {{"x", floats({6}, {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 2.4f})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(0, 2, 2, 0, -2, 2));
}

TEST(Evaluate, DividesIntegersTowardsZero) {
  const auto y =
      run("graph g(%x: i64[4], %d: i64[]) {"
          "%y: i64[] = Div(%x, %d) %m: i64[] = Mod(%x, %d) return %y, %m }",
          {{"x", ints({4}, {7, -7, 6, -6})}, {"d", ints({}, {3})}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(2, -2, 2, -2));
  EXPECT_THAT(y[1].to_ints(), ElementsAre(1, 2, 0, 0));
  EXPECT_THROW(run("graph g(%x: i64[1], %d: i64[]) { %y: i64[] = Div(%x, %d) return %y }",
                   {{"x", ints({1}, {7})}, {"d", ints({}, {0})}}),
               Error);
}

// Passes follow tokens through these: one without the trait would be followed no more.
TEST(Evaluate, OperatorsThatWorkByElementSaySo) {
  std::vector<float> x(30), changed;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.25f * static_cast<float>(i + 1);
  changed = x;
  changed[7] = 9.0f;
  std::map<std::size_t, int> checked;
  for (const std::string& op : names()) {
    const OpDef& def = *find(op);
    // Operators of ONNX, but for Concat of one operand; DynamicQuantizeLinear takes its scale of
    // all elements.
    if (def.is_own || op == "Concat" || op == "DynamicQuantizeLinear") continue;
    if (def.min_inputs > 2 || def.max_inputs < 1) continue;
    const std::size_t operands = def.min_inputs == 2 ? 2 : 1;
    const auto result = [&](const std::vector<float>& a, const std::vector<float>& b) {
      return run(fmt::format("graph g(%a: f32[2, 3, 5], %b: f32[2, 3, 5]) {{ %y: f32[] = {}({}) "
                             "return %y }}",
                             op, operands == 2 ? "%a, %b" : "%a"),
                 {{"a", floats({2, 3, 5}, a)}, {"b", floats({2, 3, 5}, b)}})[0]
          .to_doubles();
    };
    std::vector<double> y, z, w;
    if (error_of([&] { y = result(x, x), z = result(changed, x), w = result(x, changed); }) !=
        kNoError)
      continue;
    if (y.size() != x.size()) continue;
    z[7] = w[7] = y[7];
    ++checked[operands];
    EXPECT_EQ(y == z && y == w, def.traits.by_element || def.traits.moves_elements) << op;
  }
  EXPECT_GE(checked[1], 22);
  EXPECT_GE(checked[2], 10);
}

TEST(Evaluate, GeluInBothSpellings) {
  const auto y =
      run("graph g(%x: f32[2]) { %y: f32[] = Gelu(%x)"
          "%z: f32[] = Gelu(%x) {approximate = \"tanh\"} return %y, %z }",
          {{"x", floats({2}, {1.0f, -2.0f})}});
  EXPECT_NEAR(y[0].to_doubles()[0], 0.8413447, 1e-6);   // Phi(1)
  EXPECT_NEAR(y[0].to_doubles()[1], -0.0455003, 1e-6);  // -2 Phi(-2)
  EXPECT_NEAR(y[1].to_doubles()[0], 0.8411920, 1e-6);
}

TEST(Evaluate, CastSaturatesInfinity) {
  const auto y = run("graph g(%x: f32[3]) { %y: i64[] = Cast(%x) {to = \"i64\"} return %y }",
                     {{"x", floats({3}, {-1.9f, 3.9f, -INFINITY})}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(-1, 3, INT64_MIN));
}

TEST(Evaluate, SliceInEverySpelling) {
  const std::string text = R"(graph g(%x: i64[6]) {
      const %s: i64[1] = [-1]  const %e: i64[1] = [-9223372036854775807]  const %axis: i64[1] = [0]
      const %step: i64[1] = [-2]
      %back: i64[] = Slice(%x, %s, %e, %axis, %step)
      const %s2: i64[1] = [1]  const %e2: i64[1] = [-1]
      %inner: i64[] = Slice(%x, %s2, %e2)
      %last: i64[2] = Slice(%x) {axes = [0], starts = [-2], steps = [1]}
      return %back, %inner, %last })";
  const auto y = run(text, {{"x", ints({6}, {0, 1, 2, 3, 4, 5})}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(5, 3, 1));
  EXPECT_THAT(y[1].to_ints(), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(y[2].to_ints(), ElementsAre(4, 5));
}

TEST(Evaluate, GatherCountsNegativeIndicesFromTheEnd) {
  const std::string text =
      "graph g(%x: i64[2, 3], %i: i64[2]) {"
      "%y: i64[] = Gather(%x, %i) {axis = 1} return %y }";
  const auto x = ints({2, 3}, {0, 1, 2, 10, 11, 12});
  EXPECT_THAT(run(text, {{"x", x}, {"i", ints({2}, {-1, 0})}})[0].to_ints(),
              ElementsAre(2, 0, 12, 10));
  EXPECT_THROW(run(text, {{"x", x}, {"i", ints({2}, {3, 0})}}), Error);
}

TEST(Evaluate, GatherNDWithBatch) {
  const auto y =
      run("graph g(%x: i64[2, 2, 2], %i: i64[2, 1]) {"
          "%y: i64[] = GatherND(%x, %i) {batch_dims = 1}"
          "%z: i64[] = GatherND(%x, %i) return %y, %z }",
          {{"x", ints({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7})}, {"i", ints({2, 1}, {1, 0})}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(2, 3, 4, 5));
  EXPECT_THAT(y[1].to_ints(), ElementsAre(4, 5, 6, 7, 0, 1, 2, 3));
}

TEST(Evaluate, OneHotAlongEitherAxis) {
  const std::string text = R"(graph g(%i: i64[3]) {
      const %depth: i64[] = 2  const %values: f32[2] = [0, 5]
      %y: f32[] = OneHot(%i, %depth, %values) {axis = -1}
      %z: f32[] = OneHot(%i, %depth, %values) {axis = 0}
      return %y, %z })";
  const auto y = run(text, {{"i", ints({3}, {1, -2, 7})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(0, 5, 5, 0, 0, 0));
  EXPECT_THAT(y[1].to_doubles(), ElementsAre(0, 5, 0, 5, 0, 0));
}

TEST(Evaluate, MovesElements) {
  const std::string text = R"(graph g(%x: i64[2, 3]) {
      %t: i64[] = Transpose(%x) {perm = [1, 0]}
      %a: i64[] = Split(%x) {axis = 1, split = [3]}
      %p: i64[] = Pad(%x) {pads = [0, 1, 1, -1]}
      const %r: i64[2] = [2, 1]
      %tile: i64[] = Tile(%x, %r)
      %c: i64[] = Concat(%x, %x) {axis = -1}
      return %t, %a, %p, %tile, %c })";
  const auto y = run(text, {{"x", ints({2, 3}, {1, 2, 3, 4, 5, 6})}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(1, 4, 2, 5, 3, 6));
  EXPECT_THAT(y[1].to_ints(), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(y[2].to_ints(), ElementsAre(0, 1, 2, 0, 4, 5, 0, 0, 0));
  EXPECT_THAT(y[3].to_ints(), ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6));
  EXPECT_THAT(y[4].to_ints(), ElementsAre(1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6));
}

TEST(Evaluate, SplitRefusesAnotherExtent) {
  const std::string text =
      "graph g(%x: i64[2, n]) { %a: i64[], %b: i64[] = Split(%x) {axis = 1, split = [1, 2]} "
      "return %a, %b }";
  EXPECT_THAT(run(text, {{"x", ints({2, 3}, {1, 2, 3, 4, 5, 6})}})[1].to_ints(),
              ElementsAre(2, 3, 5, 6));
  for (const std::int64_t extent : {2, 4})
    EXPECT_ERROR(HasSubstr(fmt::format("sum to 3, axis 1 of [2, {0}] has {0}", extent)),
                 run(text, {{"x", ints({2, extent}, std::vector<std::int64_t>(2 * extent))}}));
}

TEST(Evaluate, ReducesAndSearches) {
  const std::string text = R"(graph g(%x: f32[2, 3]) {
      %mean: f32[] = ReduceMean(%x) {axes = [-1], keepdims = 0}
      %sum: f32[] = ReduceSum(%x) {axes = [0]}
      %all: f32[] = ReduceMax(%x) {keepdims = 0}
      %arg: i64[] = ArgMax(%x) {axis = 1, keepdims = 0}
      const %axis: i64[] = 1
      %cum: f32[] = CumSum(%x, %axis) {exclusive = 1, reverse = 1}
      return %mean, %sum, %all, %arg, %cum })";
  const auto y = run(text, {{"x", floats({2, 3}, {1, 2, 3, 9, 5, 4})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(2, 6));
  EXPECT_THAT(y[1].to_doubles(), ElementsAre(10, 7, 7));
  EXPECT_THAT(y[2].to_doubles(), ElementsAre(9));
  EXPECT_THAT(y[3].to_ints(), ElementsAre(2, 0));
  EXPECT_THAT(y[4].to_doubles(), ElementsAre(5, 3, 0, 9, 4, 0));
}

TEST(Evaluate, NanIsPassedOn) {
  const std::string text = R"(graph g(%x: f32[3], %y: f32[3]) {
      %sign: f32[] = Sign(%x)
      %larger: f32[] = Max(%x, %y)
      %smaller: f32[] = Min(%x, %y)
      %max: f32[] = ReduceMax(%x) {keepdims = 0}
      %min: f32[] = ReduceMin(%x) {keepdims = 0}
      %arg: i64[] = ArgMax(%y) {axis = 0, keepdims = 0, select_last_index = 1}
      return %sign, %larger, %smaller, %max, %min, %arg })";
  const auto y = run(text, {{"x", floats({3}, {NAN, 1, -2})}, {"y", floats({3}, {0, NAN, 2})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(IsNan(), 1, -1));
  EXPECT_THAT(y[1].to_doubles(), ElementsAre(IsNan(), IsNan(), 2));
  EXPECT_THAT(y[2].to_doubles(), ElementsAre(IsNan(), IsNan(), -2));
  EXPECT_THAT(y[3].to_doubles(), ElementsAre(IsNan()));
  EXPECT_THAT(y[4].to_doubles(), ElementsAre(IsNan()));
  EXPECT_THAT(y[5].to_ints(), ElementsAre(1));
}

TEST(Evaluate, SoftmaxSurvivesMinusInfinity) {
  const float low = std::numeric_limits<float>::lowest();
  const auto y = run("graph g(%x: f32[2, 2]) { %y: f32[] = Softmax(%x) {axis = -1} return %y }",
                     {{"x", floats({2, 2}, {0, low, low, low})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(1, 0, 0.5, 0.5));
}

TEST(Evaluate, LayerNormalization) {
  const auto y = run(
      "graph g(%x: f32[1, 2], %s: f32[2], %b: f32[2]) {"
      "%y: f32[] = LayerNormalization(%x, %s, %b) {axis = -1, epsilon = 0.0}"
      "return %y }",
      {{"x", floats({1, 2}, {1, 5})}, {"s", floats({2}, {2, 3})}, {"b", floats({2}, {10, 20})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(8, 23));
}

TEST(Evaluate, RmsNormalization) {
  const auto y =
      run("graph g(%x: f32[1, 2], %s: f32[2]) {"
          "%y: f32[] = RMSNormalization(%x, %s) {axis = -1, epsilon = 0.0}"
          "return %y }",
          {{"x", floats({1, 2}, {1, 7})}, {"s", floats({2}, {5, 10})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(1, 14));
}

TEST(Evaluate, QuantizesToEvenAndSaturates) {
  const std::string text = R"(graph g(%x: f32[6]) {
      const %s: f32[] = 2.0  const %z: u8[] = 3
      %q: u8[] = QuantizeLinear(%x, %s, %z)
      %d: f32[] = DequantizeLinear(%q, %s, %z)
      return %q, %d })";
  const auto y = run(text, {{"x", floats({6}, {1, 3, -100, 600, 5, NAN})}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(3, 5, 0, 255, 5, 0));  // 0.5 -> 0, 1.5 -> 2, 2.5 -> 2
  EXPECT_THAT(y[1].to_doubles(), ElementsAre(0, 4, -6, 504, 4, -6));
}

TEST(Evaluate, DequantizesPerAxis) {
  const auto y =
      run("graph g(%x: i8[2, 2], %s: f32[2]) {"
          "%a: f32[] = DequantizeLinear(%x, %s) {axis = 0}"
          "%b: f32[] = DequantizeLinear(%x, %s) {axis = -1} return %a, %b }",
          {{"x", ir::Tensor::of<std::int8_t>({2, 2}, {1, 2, 3, -4})}, {"s", floats({2}, {1, 10})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(1, 2, 30, -40));
  EXPECT_THAT(y[1].to_doubles(), ElementsAre(1, 20, 3, -40));
}

TEST(Evaluate, DynamicQuantization) {
  // The example of the ONNX specification.
  const auto y =
      run("graph g(%x: f32[6]) {"
          "%y: u8[6], %s: f32[], %z: u8[] = DynamicQuantizeLinear(%x)"
          "return %y, %s, %z }",
          {{"x", floats({6}, {0, 2, -3, -2.5f, 1.34f, 0.5f})}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(153, 255, 0, 26, 221, 179));
  EXPECT_NEAR(y[1].to_doubles()[0], 0.0196078438, 1e-9);
  EXPECT_THAT(y[2].to_ints(), ElementsAre(153));
}

TEST(Evaluate, IntegerMatMulsSubtractZeroPoints) {
  // The example of the ONNX specification.
  const auto y =
      run("graph g(%a: u8[4, 3], %b: u8[3, 2], %za: u8[], %zb: u8[]) {"
          "%y: i32[] = MatMulInteger(%a, %b, %za, %zb) return %y }",
          {{"a", ir::Tensor::of<std::uint8_t>({4, 3}, {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0})},
           {"b", ir::Tensor::of<std::uint8_t>({3, 2}, {1, 4, 2, 5, 3, 6})},
           {"za", ir::Tensor::scalar<std::uint8_t>(12)},
           {"zb", ir::Tensor::scalar<std::uint8_t>(0)}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(-38, -83, -44, -98, -50, -113, -56, -128));
}

TEST(Evaluate, BroadcastsMatrixBatches) {
  const auto y =
      run("graph g(%a: f32[2, 1, 2], %b: f32[2, 2], %v: f32[2]) {"
          "%y: f32[] = MatMul(%a, %b) %z: f32[] = MatMul(%a, %v) return %y, %z }",
          {{"a", floats({2, 1, 2}, {1, 2, 3, 4})},
           {"b", floats({2, 2}, {1, 10, 100, 1000})},
           {"v", floats({2}, {1, -1})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(201, 2010, 403, 4030));
  EXPECT_THAT(y[0].shape(), ElementsAre(2, 1, 2));
  EXPECT_THAT(y[1].to_doubles(), ElementsAre(-1, -1));
  EXPECT_THAT(y[1].shape(), ElementsAre(2, 1));
}

TEST(Evaluate, SelectsByCondition) {
  const std::string text = R"(graph g(%x: f32[2, 2]) {
      const %zero: f32[] = 0.0  const %low: f32[] = -1.0
      %positive: bool[] = Greater(%x, %zero)
      %y: f32[] = Where(%positive, %x, %low)
      const %k: i64[] = 0
      %u: f32[] = Trilu(%x, %k) {upper = 0}
      return %y, %u })";
  const auto y = run(text, {{"x", floats({2, 2}, {1, -2, 3, 0})}});
  EXPECT_THAT(y[0].to_doubles(), ElementsAre(1, -1, 3, -1));
  EXPECT_THAT(y[1].to_doubles(), ElementsAre(1, 0, 3, 0));
}

TEST(Evaluate, ComputesHalvesInFloat) {
  const auto half = floats({2}, {0.1f, 1000.0f}).converted(ir::DType::f16);
  const auto y = run("graph g(%x: f16[2]) { %y: f16[] = Mul(%x, %x) return %y }", {{"x", half}});
  EXPECT_EQ(y[0].dtype(), ir::DType::f16);
  EXPECT_NEAR(y[0].to_doubles()[0], 0.01, 1e-5);
  EXPECT_EQ(y[0].to_doubles()[1], INFINITY);
}

TEST(Interpret, NamesAMissingInputAndAWrongShape) {
  ir::Graph graph = ir::parse(
      "graph g(%a: f32[batch, 2], %b: f32[batch, 2]) { %c: f32[batch, 2] = Add(%a, %b) return %c "
      "}");
  const auto message = [&](const Tensors& in) { return error_of([&] { interpret(graph, in); }); };
  const auto two = floats({1, 2}, {1, 2});
  EXPECT_THAT(message({{"a", two}}), HasSubstr("'b' is missing"));
  EXPECT_THAT(message({{"a", two}, {"b", floats({2, 2}, {1, 2, 3, 4})}}),
              HasSubstr("'b' is declared f32[batch, 2] but is f32[2, 2]"));
  EXPECT_THAT(message({{"a", two}, {"x", two}}), HasSubstr("no input 'x'"));
}

TEST(Interpret, SliceNeedsOnlyWhatItReads) {
  ir::Graph graph = ir::parse(R"(graph g(%a: f32[n], %b: f32[n]) {
      %x: f32[n] = Neg(%a)
      %y: f32[n] = Add(%x, %b)
      return %y })");
  const ir::Value* a = graph.find_value("a");
  EXPECT_THAT(evaluate_subgraph(graph.find_value("x"), {{a, floats({1}, {3})}}).to_doubles(),
              ElementsAre(-3));
  EXPECT_THROW(evaluate_subgraph(graph.find_value("y"), {{a, floats({1}, {3})}}), Error);
}

TEST(Interpret, SizesComeFromTheRun) {
  ir::Graph graph = ir::parse(R"(graph g(%a: f32[batch, seq]) {
      %n: i64[2] = sizes() {values = "[batch, 12*seq]"}
      %r: i64[seq] = Range() {start = 0, step = 1}
      return %n, %r })");
  const auto y = interpret(graph, {{"a", floats({2, 3}, {1, 2, 3, 4, 5, 6})}});
  EXPECT_THAT(y[0].to_ints(), ElementsAre(2, 36));
  EXPECT_THAT(y[1].to_ints(), ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace bertcl::ops
