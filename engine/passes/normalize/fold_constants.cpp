// SPDX-License-Identifier: Apache-2.0
// Nodes whose operands are all constant become constants.
//
// DequantizeLinear of an int8 matrix stays: the int8 GEMMs want the bytes. What no integer op
// has taken is folded at the end, by fold_dequantize; so is Round of a matrix, which may be a part
// of a quantization (find_quantize). Vectors (bias, gamma, beta) fold at once.
#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "ops/interpret.hpp"
#include "passes/match.hpp"
#include "passes/pass.hpp"
#include "support/option_name.hpp"

namespace bertcl::passes {
namespace {

constexpr std::int64_t max_growth =
    1 << 20;  // elements; an Expand may make more of them than it pays

bool all_constant(const ir::Node& node) {
  for (const ir::Value* in : node.inputs)
    if (in && !in->is_constant()) return false;
  return !node.inputs.empty() && !node.outputs.empty();
}

/// What a pass may still make out of the constants that it has found.
struct Budget {
  std::int64_t allowed = 0, made = 0;

  Budget(const ir::Graph& graph, const ir::Limits& limits) {
    std::int64_t present = 0;
    for (const ir::Value* c : graph.constants())
      present = ir::sum(
          present,
          c->constant->size() * static_cast<std::int64_t>(ir::size_of(c->constant->dtype())),
          "the constants");
    allowed = limits.constant_bytes(present);
  }
  /// Throws Error if `node` would exceed the limit, before it is evaluated.
  void take(const ir::Node& node) {
    for (const ir::Value* out : node.outputs)
      made += ir::element_count(*ir::constant_shape(out->type.shape)) *
              static_cast<std::int64_t>(ir::size_of(out->type.dtype));
    if (made > allowed)
      throw Error(fmt::format("{}: folded constants take more than {} bytes (raise {})",
                              node.describe(), allowed, option_name("max-memory")),
                  ErrorCode::out_of_memory);
  }
};

bool too_large(const ir::Node& node) {
  std::int64_t before = 0;
  for (const ir::Value* in : node.inputs)
    if (in) before += in->constant->size();
  for (const ir::Value* out : node.outputs) {
    const auto sizes = ir::constant_shape(out->type.shape);
    if (!sizes || ir::element_count(*sizes) > std::max(before, max_growth)) return true;
  }
  return false;
}

bool fold(ir::Graph& g, ir::Node& node, Budget& budget) {
  if (!all_constant(node) || too_large(node)) return false;
  budget.take(node);
  const std::vector<ir::Tensor> results = ops::evaluate_constant(node);
  if (results.empty()) return false;
  for (std::size_t i = 0; i < results.size() && i < node.outputs.size(); ++i)
    g.replace_uses(node.outputs[i], g.add_constant(node.outputs[i]->name, results[i]));
  g.erase(&node);
  return true;
}

bool may_be_quantized(const ir::Node& node) {
  if (node.inputs.empty() || !node.inputs[0] || node.inputs[0]->type.shape.size() < 2) return false;
  const ir::DType dtype = node.inputs[0]->type.dtype;
  return (node.op == "DequantizeLinear" && ir::is_int8(dtype)) ||
         (node.op == "Round" && dtype == ir::DType::f32);
}

}  // namespace

Pass fold_constants(const ir::Limits& limits) {
  return {"fold_constants", [limits](ir::Graph& g) {
            Budget budget(g, limits);
            return rewrite_all(g, [&](ir::Graph& graph, ir::Node& node) {
              return !may_be_quantized(node) && fold(graph, node, budget);
            });
          }};
}

Pass fold_dequantize(const ir::Limits& limits) {
  return {"fold_dequantize", [limits](ir::Graph& g) {
            Budget budget(g, limits);
            return rewrite_all(
                g, [&](ir::Graph& graph, ir::Node& node) { return fold(graph, node, budget); });
          }};
}

}  // namespace bertcl::passes
