// SPDX-License-Identifier: Apache-2.0
// Input shapes that an operator cannot take are refused before anything is read.
#include <fmt/format.h>

#include <numeric>
#include <utility>

#include "as_interpreted.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::runtime {
namespace {

TEST(SizeChecks, WhatOnlyTheInputsTellIsCheckedInEachRun) {
  const struct {
    const char* name;
    std::string graph;
    ir::Bindings fitting, others;
    std::string message;
  } cases[] = {
      {"a table of fewer rows",
       R"(graph g(%x: f32[batch, seq]) {
  const %table: f32[6, 2] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]  const %zero: i64[1] = [0]
  %to: i64[1] = Shape(%x) {start = 1}
  %y: f32[seq, 2] = Slice(%table, %zero, %to, %zero)
  return %y as y
})",
       {{"batch", 2}, {"seq", 6}},
       {{"batch", 2}, {"seq", 9}},
       "the model requires seq to be at most 6, the inputs give 9"},
      {"fewer columns than a constant end",
       R"(graph g(%x: f32[batch, k]) {
  const %one: i64[1] = [1]  const %four: i64[1] = [4]
  %y: f32[batch, 3] = Slice(%x, %one, %four, %one)
  return %y as y
})",
       {{"batch", 2}, {"k", 5}},
       {{"batch", 2}, {"k", 3}},
       "the model requires k to be at least 4, the inputs give 3"},
      {"fewer columns than a constant end that only gives a size",
       R"(graph g(%x: f32[batch, k]) {
  const %one: i64[1] = [1]  const %four: i64[1] = [4]  const %half: f32[] = 0.5
  %a: f32[batch, 3] = Slice(%x, %one, %four, %one)
  %b: f32[batch, 3] = Relu(%a)
  %s: i64[2] = Shape(%b)
  %y: f32[batch, 3] = Expand(%half, %s)
  return %y as y
})",
       {{"batch", 2}, {"k", 5}},
       {{"batch", 2}, {"k", 3}},
       "the model requires k to be at least 4, the inputs give 3"},
      {"the last two but one of fewer",
       R"(graph g(%x: f32[batch, k, 2]) {
  const %from: i64[1] = [-3]  const %to: i64[1] = [-1]  const %one: i64[1] = [1]
  %y: f32[batch, 2, 2] = Slice(%x, %from, %to, %one)
  return %y as y
})",
       {{"batch", 2}, {"k", 5}},
       {{"batch", 2}, {"k", 2}},
       "the model requires k to be at least 3, the inputs give 2"},
      {"extents that sum to less",
       R"(graph g(%x: f32[batch, k]) {
  %a: f32[batch, 2], %b: f32[batch, 3] = Split(%x) {axis = 1, split = [2, 3]}
  return %a as a, %b as b
})",
       {{"batch", 2}, {"k", 5}},
       {{"batch", 2}, {"k", 7}},
       "the model requires k and 5 to be equal, the inputs give 7 and 5"},
      {"an axis of 2 that is squeezed",
       R"(graph g(%x: f32[batch, k, 3]) {
  %y: f32[batch, 3] = Squeeze(%x) {axes = [1]}
  return %y as y
})",
       {{"batch", 2}, {"k", 1}},
       {{"batch", 2}, {"k", 2}},
       "the model requires 1 and k to be equal, the inputs give 1 and 2"},
      {"an extent of 1 where all such axes are squeezed",
       R"(graph g(%x: f32[batch, k, 1]) {
  %y: f32[batch, k] = Squeeze(%x)
  return %y as y
})",
       {{"batch", 2}, {"k", 3}},
       {{"batch", 1}, {"k", 3}},
       "the model requires batch to be at least 2, the inputs give 1"},
      {"an extent of 1 where there is no other",
       R"(graph g(%x: f32[batch, k]) {
  %y: f32[batch, k] = Squeeze(%x)
  %z: f32[batch, k] = Neg(%y)
  return %z as z
})",
       {{"batch", 2}, {"k", 3}},
       {{"batch", 2}, {"k", 1}},
       "the model requires k to be at least 2, the inputs give 1"},
      {"a shape of fewer elements",
       R"(graph g(%x: f32[batch, k]) {
  const %to: i64[3] = [0, 3, 4]
  %y: f32[batch, 3, 4] = Reshape(%x, %to)
  return %y as y
})",
       {{"batch", 2}, {"k", 12}},
       {{"batch", 2}, {"k", 14}},
       "the model requires batch*k and 12*batch to be equal, the inputs give 28 and 24"},
      {"indices of more rows",
       R"(graph g(%x: f32[a, 4], %i: i64[c, 4]) {
  %y: f32[c, 4] = GatherElements(%x, %i) {axis = 1}
  return %y as y
})",
       {{"a", 5}, {"c", 2}},
       {{"a", 2}, {"c", 5}},
       "the model requires c to be at most a, the inputs give 5 and 2"},
      {"other batches in the indices",
       R"(graph g(%x: f32[a, 3, 2], %i: i64[c, 2, 1]) {
  %y: f32[c, 2, 2] = GatherND(%x, %i) {batch_dims = 1}
  return %y as y
})",
       {{"a", 2}, {"c", 2}},
       {{"a", 5}, {"c", 2}},
       "the model requires a and c to be equal, the inputs give 5 and 2"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.name);
    const ir::Graph graph = ir::parse(c.graph);
    const auto inputs = [&](const ir::Bindings& sizes) {
      Tensors tensors;
      for (const ir::Value* in : graph.inputs()) {
        ir::Tensor tensor = ir::Tensor::zeros(in->type.dtype, ir::evaluate(in->type.shape, sizes));
        if (in->type.dtype == ir::DType::f32)
          std::iota(tensor.mutable_as<float>().begin(), tensor.mutable_as<float>().end(), 1.0f);
        tensors.emplace(in->name, std::move(tensor));
      }
      return tensors;
    };
    Session session = Session::compile(ir::parse(c.graph), {});
    const Tensors given = inputs(c.fitting), outputs = session.run(given);
    const auto expected = ops::interpret(graph, given);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(difference(outputs.at(graph.outputs()[i].name), expected[i], 0), "");
    EXPECT_EQ(error_of([&] { session.run(inputs(c.others)); }), c.message);
  }
}

TEST(SizeChecks, SlicesThatReadNothingTakeShortAxes) {
  for (const auto& [from, to] : {std::pair{-4, 0}, {-2, -3}, {5, 5}}) {
    const std::string graph = fmt::format(
        R"(graph g(%x: f32[batch, k]) {{
  const %from: i64[1] = [{}]  const %to: i64[1] = [{}]  const %one: i64[1] = [1]
  %none: f32[batch, 0] = Slice(%x, %from, %to, %one)
  %y: f32[batch, k] = Concat(%none, %x) {{axis = 1}}
  return %y as y
}})",
        from, to);
    SCOPED_TRACE(graph);
    Session session = Session::compile(ir::parse(graph), {});
    for (const std::int64_t k : {1, 2, 6}) {
      ir::Tensor x = ir::Tensor::zeros(ir::DType::f32, {2, k});
      std::iota(x.mutable_as<float>().begin(), x.mutable_as<float>().end(), 1.0f);
      EXPECT_EQ(difference(session.run({{"x", x}}).at("y"), x, 0), "") << k;
    }
  }
}

TEST(SizeChecks, ThePositionsOfATableThatIsCutLimitSequences) {
  const auto positions = [](const std::string& input) {
    const std::string graph = "graph g(" + input + R"() {
  const %table: f32[6, 2] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]  const %zero: i64[1] = [0]
  %to: i64[1] = Shape(%x) {start = 1}
  %y: f32[seq, 2] = Slice(%table, %zero, %to, %zero)
  return %y as y
})";
    return Session::compile(ir::parse(graph), {}).plan().max_positions;
  };
  EXPECT_EQ(positions("%x: i64[batch, seq]"), 6);
  EXPECT_EQ(positions("%x: f32[batch, seq]"), 0) << "no ids";
}

}  // namespace
}  // namespace bertcl::runtime
