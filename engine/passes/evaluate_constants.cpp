// SPDX-License-Identifier: Apache-2.0
// Evaluates nodes on the host and counts the bytes that they make.
#include "passes/evaluate_constants.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bertcl/error.hpp"
#include "ir/checked.hpp"
#include "ops/interpret.hpp"
#include "passes/rewrite.hpp"
#include "support/option_name.hpp"

namespace bertcl::passes {
namespace {

/// Elements that a constant may grow by; an Expand may make more of them than it pays.
constexpr std::int64_t kMaxGrowth = 1 << 20;

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
    if (!sizes || ir::element_count(*sizes) > std::max(before, kMaxGrowth)) return true;
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

}  // namespace

bool evaluate_constants(ir::Graph& graph, const ir::Limits& limits,
                        const std::function<bool(const ir::Node&)>& may_fold) {
  Budget budget(graph, limits);
  return rewrite_all(
      graph, [&](ir::Graph& g, ir::Node& node) { return may_fold(node) && fold(g, node, budget); });
}

}  // namespace bertcl::passes
