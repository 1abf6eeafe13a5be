// SPDX-License-Identifier: Apache-2.0
// Positions 0..seq-1 sliced from a table become a Range.
//
//   table[1, P] -> Slice(ends computed in float) [n0, n1] -> Expand -> Gather(positions)
//   becomes
//   Range -> Expand -> Gather(positions)
//
// Exporters clamp the end of the slice by arithmetic whose result no shape tells; what it does is
// found by running it (ops/recognize_by_value.hpp). Positions whose sizes are known stay as they
// are.
#include <algorithm>
#include <set>

#include "ops/recognize_by_value.hpp"
#include "passes/pass.hpp"
#include "passes/rewrite.hpp"

namespace bertcl::passes {
namespace {

/// True if something that `v` is made from has a size that no input tells.
bool hides_a_size(const ir::Value* v, const ir::Symbols& known, std::set<const ir::Value*>& seen) {
  if (!v || v->is_constant() || !seen.insert(v).second) return false;
  if (ir::unknown_symbol(v->type.shape, known)) return true;
  return v->producer && std::ranges::any_of(v->producer->inputs, [&](const ir::Value* in) {
           return hides_a_size(in, known, seen);
         });
}

bool find_positions_at(ir::Graph& g, ir::Node& node) {
  if (node.op != "Gather" || !node.inputs[0]->is_constant()) return false;
  ir::Value* ids = node.inputs[1];
  if (ids->is_constant() || !ids->producer || ids->type.shape.empty()) return false;
  const ir::Symbols known = g.input_symbols();
  std::set<const ir::Value*> seen;
  if (ir::unknown_symbol(ids->type.shape, known) || !hides_a_size(ids, known, seen) ||
      !ops::is_position_ids(g, ids))
    return false;
  ir::Value* range = g.add("Range", {}, {{"start", 0}, {"step", 1}},
                           {ids->type.dtype, {ids->type.shape.back()}}, &node);
  ir::Node* made = g.add_node("Expand", {range}, {}, {{ids->name, ids->type}}, &node);
  made->sources = sources_of({ids->producer});
  replace_uses_and_name(g, ids, made->output());
  return true;
}

}  // namespace

Pass find_positions() { return rewriting("find_positions", find_positions_at); }

}  // namespace bertcl::passes
