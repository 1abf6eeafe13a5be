// SPDX-License-Identifier: Apache-2.0
// Generic float operators on the device against the host interpreter of the same graph.
#include <cmath>
#include <limits>

#include "as_interpreted.hpp"
#include "ir/text.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

TEST(GenericOps, GatherNd) {
  for (const std::string type : {"f32", "i64", "u8"})
    expect_as_interpreted("graph g(%x: " + type + R"([batch, 3, 4, 5]) {
  const %points: i64[2, 2, 2] = [0, 3, -1, 0, 2, -4, 1, 1]  const %rows: i32[3, 1] = [2, -3, 0]
  %t: )" + type + R"([3, 4, 5, batch] = Transpose(%x) {perm = [1, 2, 3, 0]}
  %blocks: )" + type + R"([2, 2, 5, batch] = GatherND(%t, %points) {batch_dims = 0}
  %slices: )" + type + R"([3, 4, 5, batch] = GatherND(%t, %rows) {batch_dims = 0}
  return %blocks as blocks, %slices as slices
})");
}

// Attention that stayed unfused: one distance from matrix to matrix, a broadcast operand, one
// matrix.
TEST(GenericOps, BatchedMatMulsByClblast) {
  const std::string text =
      R"(graph g(%q: f32[batch, 3, seq, 5], %k: f32[batch, 3, 5, seq], %w: f32[5, n]) {
  %scores: f32[batch, 3, seq, seq] = MatMul(%q, %k)
  %wide: f32[batch, 3, seq, n] = MatMul(%q, %w)
  return %scores as scores, %wide as wide
})";
  SessionOptions options;
  options.gemm = "clblast";
  Session session = Session::compile(ir::parse(text), options);
  int by_clblast = 0;
  for (const plan::Step& step : session.plan().steps) by_clblast += step.variant == "clblast";
  EXPECT_EQ(by_clblast, 2);
  for (const std::int64_t size : {1, 2, 7}) {
    const ir::Graph graph = ir::parse(text);
    const Tensors inputs = inputs_for(graph, size, static_cast<unsigned>(size));
    const auto expected = ops::interpret(graph, inputs);
    const Tensors outputs = session.run(inputs);
    EXPECT_EQ(difference(outputs.at("scores"), expected[0], 0), "") << size;
    EXPECT_EQ(difference(outputs.at("wide"), expected[1], 0), "") << size;
  }
}

TEST(GenericOps, GatherNdInBatches) {
  expect_as_interpreted(R"(graph g(%x: f32[3, seq, 4]) {
  const %i: i64[3, 2, 1] = [0, -1, 0, 0, -1, -1]  const %j: i64[3, 1, 2] = [0, 3, -1, 1, 0, -4]
  %rows: f32[3, 2, 4] = GatherND(%x, %i) {batch_dims = 1}
  %points: f32[3, 1] = GatherND(%x, %j) {batch_dims = 1}
  return %rows as rows, %points as points
})");
}

TEST(GenericOps, GatherElements) {
  expect_as_interpreted(R"(graph g(%x: f32[2, 3, batch, 2]) {
  const %i: i64[2, 2, 1, 2] = [0, -1, 2, 1, -3, 0, 1, 2]
  const %j: i32[1, 3, 1, 4] = [0, 1, -1, -2, 1, 1, 0, 0, -1, 1, 0, -2]
  %a: f32[2, 2, 1, 2] = GatherElements(%x, %i) {axis = 1}
  %b: f32[1, 3, 1, 4] = GatherElements(%x, %j) {axis = 3}
  return %a as a, %b as b
})");
}

TEST(GenericOps, GatherElementsOfLongRows) {
  constexpr int rows = 3, columns = 37, extent = 5;
  std::string list;
  for (int i = 0; i < rows * columns; ++i)
    list += fmt::format("{}{}", i ? ", " : "", i * 7 % (2 * extent) - extent);
  for (const char* type : {"i64", "i32"})
    expect_as_interpreted(fmt::format(R"(graph g(%x: f32[batch, 3, 5], %z: f32[5, batch, 37]) {{
  const %i: {0}[1, 3, 37] = [{1}]  const %j: {0}[3, 1, 37] = [{1}]
  %a: f32[1, 3, 37] = GatherElements(%x, %i) {{axis = 2}}
  %b: f32[3, 1, 37] = GatherElements(%z, %j) {{axis = 0}}
  return %a as a, %b as b
}})",
                                      type, list));
}

TEST(GenericOps, ConcatOfOneValueTwice) {
  expect_as_interpreted(R"(graph g(%x: f32[2, batch]) {
  %y: f32[4, batch] = Concat(%x, %x) {axis = 0}
  return %y as y
})");
}

TEST(GenericOps, SliceThatStartsInFrontOfTheFirst) {
  expect_as_interpreted(R"(graph g(%x: f32[batch, 2]) {
  const %start: i64[1] = -3  const %end: i64[1] = 1  const %axis: i64[1] = 1
  %y: f32[batch, 1] = Slice(%x, %start, %end, %axis)
  return %y as y
})");
}

TEST(GenericOps, SliceOfTheLastElementsOfAFreeAxis) {
  expect_as_interpreted(R"(graph g(%x: f32[batch, seq, 6]) {
  const %start: i64[1] = -1  const %end: i64[1] = 2147483647  const %one: i64[1] = 1
  const %starts: i64[2] = [0, -1]  const %ends: i64[2] = [5, 2147483647]
  const %last: i64[2] = [2, 1]
  %y: f32[batch, 1, 6] = Slice(%x, %start, %end, %one)
  %z: f32[batch, 1, 5] = Slice(%x, %starts, %ends, %last)
  return %y as y, %z as z
})");
}

TEST(GenericOps, NegativeSizesAreCompared) {
  expect_as_interpreted(R"(graph g(%x: f32[batch, seq]) {
  const %minus: i64[1] = [-1]  const %least: i64[1] = [-3]  const %zero: i64[1] = [0]
  %s: i64[1] = Shape(%x) {start = 1}
  %n: i64[1] = Mul(%s, %minus)
  %a: i64[1] = Max(%n, %least)
  %b: i64[1] = Min(%least, %n)
  %c: i64[1] = Max(%n, %zero)
  %d: bool[1] = Less(%n, %zero)
  %e: bool[1] = Less(%a, %zero)
  return %a as a, %b as b, %c as c, %d as d, %e as e
})");
}

TEST(GenericOps, SoftmaxAlongEveryAxis) {
  expect_as_interpreted(R"(graph g(%x: f32[batch, seq, 5], %scores: f32[batch, seq, 1]) {
  %a: f32[batch, seq, 5] = Softmax(%x) {axis = 0}
  %b: f32[batch, seq, 5] = LogSoftmax(%x) {axis = 1}
  %c: f32[batch, seq, 1] = Softmax(%scores) {axis = 1}
  %y: f32[batch, seq, 5] = Mul(%x, %c)
  return %a as a, %b as b, %y as y
})");
}

TEST(GenericOps, Tile) {
  expect_as_interpreted(R"(graph g(%x: f32[batch, 2, 3], %ids: i64[1, seq]) {
  const %times: i64[3] = [2, 1, 3]
  %y: f32[2*batch, 2, 9] = Tile(%x, %times)
  %rows: i64[batch, seq] = Tile(%ids)
  return %y as y, %rows as rows
})");
}

TEST(GenericOps, Pad) {
  expect_as_interpreted(R"(graph g(%x: f32[batch, 2, 3]) {
  const %fill: f32[] = 7.5
  %zeros: f32[batch, 5, 4] = Pad(%x) {pads = [0, 1, 0, 0, 2, 1]}
  %filled: f32[batch, 2, 8] = Pad(%x, %fill) {pads = [0, 0, 5, 0, 0, 0]}
  return %zeros as zeros, %filled as filled
})");
}

TEST(GenericOps, HalvesAreComputedInFloat) {
  for (const std::string type : {"f16", "bf16"}) {
    const ir::Graph graph = ir::parse("graph g(%x: " + type + "[4]) {\n  %y: " + type +
                                      "[4] = Add(%x, %x)\n  return %y as y\n}");
    const ir::Tensor x = ir::Tensor::of<float>({4}, {1.5f, -0.25f, 300.0f, 0.0f})
                             .converted(graph.inputs()[0]->type.dtype);
    const Tensors outputs = Session::compile(ir::parse(ir::print(graph))).run({{"x", x}});
    EXPECT_EQ(outputs.at("y").dtype(), x.dtype());
    EXPECT_EQ(outputs.at("y").to_doubles(), (std::vector<double>{3, -0.5, 600, 0}));
  }
}

TEST(GenericOps, CastToBf16RoundsHalfToEven) {
  Session session = Session::compile(ir::parse(R"(graph g(%x: f32[6]) {
  %y: bf16[6] = Cast(%x) {to = "bf16"}
  return %y as y
})"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const ir::Tensor x = ir::Tensor::of<float>(
      {6}, {1.0f, 1.00390625f, 1.01171875f, -3.4e38f, nan, std::numeric_limits<float>::infinity()});
  const Tensors outputs = session.run({{"x", x}});
  const auto bits = outputs.at("y").as<std::uint16_t>();
  EXPECT_EQ((std::vector<std::uint16_t>{bits.begin(), bits.begin() + 3}),
            (std::vector<std::uint16_t>{0x3f80, 0x3f80, 0x3f82}));
  const auto values = outputs.at("y").to_doubles();
  EXPECT_LT(values[3], -3e38);
  EXPECT_TRUE(std::isnan(values[4]));
  EXPECT_TRUE(std::isinf(values[5]));
}

// As pow() and ONNX Runtime; the square root is NaN.
TEST(GenericOps, APowerOfMinusInfinityIsNoRoot) {
  Session session = Session::compile(ir::parse(R"(graph g(%x: f32[n]) {
  const %half: f32[] = 0.5
  %y: f32[n] = Pow(%x, %half)
  return %y as y
})"));
  const Tensors found = session.run({{"x", ir::Tensor::of<float>({3}, {-INFINITY, INFINITY, 4})}});
  EXPECT_THAT(found.at("y").to_doubles(), ElementsAre(INFINITY, INFINITY, 2));
}

// As the first token of a batch without tokens.
TEST(GenericOps, NothingIsReadOfAnEmptyAxis) {
  for (const char* node : {"%y: f32[2] = Gather(%x, %i) {axis = 0}",
                           "%y: f32[1, 2] = GatherElements(%x, %ii) {axis = 0}",
                           "%y: f32[1, 2] = GatherND(%x, %tuple) {batch_dims = 0}"}) {
    Session session = Session::compile(ir::parse(
        "graph g(%x: f32[seq, 2]) {\n const %i: i64[] = 0\n const %ii: i64[1, 2] = [0, 0]\n"
        " const %tuple: i64[1, 1] = [0]\n " +
        std::string(node) + "\n return %y as y\n}"));
    EXPECT_ERROR(HasSubstr("an index is outside its table"),
                 session.run({{"x", ir::Tensor::of({0, 2}, std::vector<float>{})}}))
        << node;
    session.run({{"x", ir::Tensor::of({1, 2}, std::vector<float>{1, 2})}});
  }
}

TEST(GenericOps, ReductionsOfAnEmptyAxisGiveTheirIdentity) {
  for (const std::string type : {"i32", "i64", "f32"}) {
    Session session = Session::compile(
        ir::parse("graph g(%x: " + type + "[batch, seq]) {\n %sum: " + type +
                  "[batch] = ReduceSum(%x) {axes = [1], keepdims = 0}\n %prod: " + type +
                  "[batch] = ReduceProd(%x) {axes = [1], keepdims = 0}\n %max: " + type +
                  "[batch] = ReduceMax(%x) {axes = [1], keepdims = 0}\n %min: " + type +
                  "[batch] = ReduceMin(%x) {axes = [1], keepdims = 0}\n"
                  " return %sum as sum, %prod as prod, %max as max, %min as min\n}"));
    const auto empty = ir::Tensor::of({2, 0}, std::vector<float>{});
    const ir::DType dtype = session.inputs()[0].type.dtype;
    const Tensors outputs = session.run({{"x", empty.converted(dtype)}});
    const double highest = dtype == ir::DType::i32   ? 2147483647.0
                           : dtype == ir::DType::i64 ? 9223372036854775807.0
                                                     : std::numeric_limits<double>::infinity();
    const double lowest = dtype == ir::DType::f32 ? -highest : -highest - 1;
    EXPECT_EQ(outputs.at("sum").to_doubles(), (std::vector<double>{0, 0})) << type;
    EXPECT_EQ(outputs.at("prod").to_doubles(), (std::vector<double>{1, 1})) << type;
    EXPECT_EQ(outputs.at("max").to_doubles(), (std::vector<double>{lowest, lowest})) << type;
    EXPECT_EQ(outputs.at("min").to_doubles(), (std::vector<double>{highest, highest})) << type;
  }
}

TEST(GenericOps, AnEmptyAxisHasNoLargestElement) {
  for (const std::string type : {"i32", "i64", "f32"}) {
    Session session = Session::compile(
        ir::parse("graph g(%x: " + type +
                  "[batch, seq]) {\n %y: i64[batch] = ArgMax(%x) {axis = -1, keepdims = 0}\n"
                  " return %y as y\n}"));
    const ir::DType dtype = session.inputs()[0].type.dtype;
    EXPECT_ERROR(
        testing::HasSubstr("requires seq to be at least 1, the inputs give 0"),
        session.run({{"x", ir::Tensor::of({2, 0}, std::vector<float>{}).converted(dtype)}}))
        << type;
    const Tensors outputs =
        session.run({{"x", ir::Tensor::of({1, 2}, std::vector<float>{1, 2}).converted(dtype)}});
    EXPECT_EQ(outputs.at("y").to_doubles(), std::vector<double>{1}) << type;
  }
}

}  // namespace
}  // namespace bertcl::runtime
