// SPDX-License-Identifier: Apache-2.0
// Values of f16 and bf16 become f32, since kernels compute in f32; inputs and outputs keep their
// type.
//
//   f16 x -> Add(x, c) -> f16 y      becomes      Cast(x) -> Add(x', c') -> Cast -> f16 y
//
// Changes numbers: what the file rounds to 11 (f16) or 8 (bf16) bits after every operator keeps the
// 24 bits of f32 up to the outputs.
#include "passes/pass.hpp"

namespace bertcl::passes {
namespace {

bool is_half(ir::DType t) { return t == ir::DType::f16 || t == ir::DType::bf16; }

const std::string kWideName{ir::name_of(ir::DType::f32)};

void widen_input(ir::Graph& g, ir::Value* input) {
  ir::Node* first = g.nodes().empty() ? nullptr : g.nodes().front().get();
  ir::Value* wide = g.add("Cast", {input}, {{"to", kWideName}}, {ir::DType::f32, input->type.shape},
                          first, input->name + ".wide");
  g.replace_uses(input, wide);
  g.set_input(wide->producer, 0, input);
}

void widen_results(ir::Node& node) {
  for (ir::Value* out : node.outputs) {
    if (!is_half(out->type.dtype)) continue;
    out->type.dtype = ir::DType::f32;
    if (node.op == "Cast") node.attributes["to"] = kWideName;
  }
}

bool widen(ir::Graph& g) {
  std::vector<ir::DType> asked;
  for (const ir::GraphOutput& out : g.outputs()) asked.push_back(out.value->type.dtype);
  bool changed = false;
  for (ir::Value* c : g.constants()) {
    if (!is_half(c->type.dtype)) continue;
    g.replace_uses(c, g.add_constant(c->name + ".wide", c->constant->converted(ir::DType::f32)));
    changed = true;
  }
  for (const auto& node : g.nodes()) {
    for (const ir::Value* out : node->outputs) changed |= is_half(out->type.dtype);
    widen_results(*node);
  }
  for (ir::Value* input : g.inputs()) {
    if (!is_half(input->type.dtype)) continue;
    widen_input(g, input);
    changed = true;
  }
  for (std::size_t i = 0; i < asked.size(); ++i) {
    ir::GraphOutput& out = g.outputs()[i];
    if (!is_half(asked[i])) continue;
    out.value = g.add("Cast", {out.value}, {{"to", std::string(ir::name_of(asked[i]))}},
                      {asked[i], out.value->type.shape}, nullptr, out.name + ".narrow");
  }
  return changed;
}

}  // namespace

Pass widen_halves() { return {"widen_halves", widen}; }

}  // namespace bertcl::passes
