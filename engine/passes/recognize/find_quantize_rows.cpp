// SPDX-License-Identifier: Apache-2.0
// Rows that are quantized by their own largest magnitude, as a scale for each token is written in
// plain ONNX:
//
//   x -> Abs -> ReduceMax(last axis) -> Max(least) -> Div(127) -> scale[.., 1]
//   x -> Div(scale) -> Round -> Cast(i8) -> q
//   becomes
//   quantize_rows(x) {least} -> q, scale
//
// Round needs no limits behind it: no element is larger than 127 of its row's steps.
#include <cmath>

#include "passes/match.hpp"
#include "passes/passes.hpp"

namespace bertcl::passes {
namespace {

bool keeps_last_axis(const ir::Node& reduce) {
  const auto last = static_cast<std::int64_t>(reduce.inputs[0]->type.shape.size()) - 1;
  return reduce.int_attribute("keepdims", 1) == 1 && reduce.has("axes") &&
         reduce.ints_attribute("axes") == std::vector<std::int64_t>{last};
}

bool rewrite(ir::Graph& g, ir::Node& cast) {
  if (cast.op != "Cast" || cast.output()->type.dtype != ir::DType::i8) return false;
  static const Pattern x = any("x");
  static const Pattern largest = op("ReduceMax", {op("Abs", {x})}, "largest");
  static const Pattern scale =
      op("Div", {op("Max", {largest, scalar("least")}), scalar(127)}, "scale");
  static const Pattern rows = op("Cast", {op("Round", {op("Div", {x, scale})})});
  Match m;
  if (!matches(rows, cast.output(), m) || m["x"]->type.dtype != ir::DType::f32 ||
      !keeps_last_axis(*m["largest"]->producer))
    return false;
  const double least = m.number("least");
  if (!std::isnormal(static_cast<float>(least / 127)) || least < 0) return false;

  ir::Value *q = cast.output(), *s = m["scale"];
  ir::Node* made = g.add_node("quantize_rows", {m["x"]}, {{"least", least}},
                              {{q->name, q->type}, {s->name, s->type}}, s->producer);
  made->sources = m.sources();
  for (std::size_t i = 0; i < 2; ++i) {
    ir::Value* old = i == 0 ? q : s;
    g.replace_uses(old, made->outputs[i]);
    g.swap_names(old, made->outputs[i]);
  }
  return true;
}

}  // namespace

Pass find_quantize_rows() {
  return {"find_quantize_rows", [](ir::Graph& g) { return rewrite_all(g, rewrite); }};
}

}  // namespace bertcl::passes
