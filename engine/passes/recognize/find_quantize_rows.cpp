// SPDX-License-Identifier: Apache-2.0
// Rows quantized by their own largest magnitude, as per-token scales are written in plain ONNX:
//
//   x -> Abs -> ReduceMax(last axis) -> Max(least) -> Div(127) -> scale[.., 1]
//   x -> Div(scale) -> Round -> Cast(i8) -> q
//   becomes
//   quantize_rows(x) {least} -> q, scale
//
// Round needs no limits after it: no element is larger than 127 of its row's steps. Where MatMuls
// alone read q it is u8 with the zero point 128: the same sums, of bytes that they multiply faster.
#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/operands.hpp"
#include "passes/match.hpp"
#include "passes/node_queries.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// True if only MatMuls without a zero point read `q`, as their first operand.
bool only_matmuls_read(const ir::Graph& g, const ir::Value* q) {
  return !g.is_output(q) && std::ranges::all_of(q->users, [&](const ir::Node* n) {
    return n->op == "MatMulInteger" && n->inputs[0] == q && n->inputs[1] != q && !n->input(2);
  });
}

bool find_quantize_rows_at(ir::Graph& g, ir::Node& cast) {
  if (cast.op != "Cast" || cast.output()->type.dtype != ir::DType::i8) return false;
  static const Pattern x = any("x");
  static const Pattern largest = op("ReduceMax", {op("Abs", {x})}, "largest");
  static const Pattern scale =
      op("Div", {op("Max", {largest, scalar("least")}), scalar(127)}, "scale");
  static const Pattern rows = op("Cast", {op("Round", {op("Div", {x, scale})})});
  Match m;
  if (!matches(rows, cast.output(), m) || m["x"]->type.dtype != ir::DType::f32 ||
      !reduces_last_axis(*m["largest"]->producer))
    return false;
  const double least = m.number("least");
  if (!std::isnormal(static_cast<float>(least / 127)) || least < 0) return false;

  ir::Value *q = cast.output(), *s = m["scale"];
  ir::Type type = q->type;
  if (only_matmuls_read(g, q)) {
    type.dtype = ir::DType::u8;
    ir::Value* zero = g.add_constant("zero_point", ir::Tensor::scalar(std::uint8_t{128}));
    for (ir::Node* matmul : std::vector<ir::Node*>(q->users)) g.set_input(matmul, 2, zero);
  }
  ir::Node* made = g.add_node(quantize_rows::op, {m["x"]}, {{"least", least}},
                              {{q->name, type}, {s->name, s->type}}, s->producer);
  made->sources = sources_of(m.nodes);
  replace_uses_and_name(g, q, made->outputs[0]);
  replace_uses_and_name(g, s, made->outputs[1]);
  return true;
}

}  // namespace

Pass find_quantize_rows() { return rewriting("find_quantize_rows", find_quantize_rows_at); }

}  // namespace bertcl::passes
