// SPDX-License-Identifier: Apache-2.0
// Ids by which a model finds padding itself.
#include "plan/compared_pad_ids.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "ir/input_role.hpp"

namespace bertcl::plan {
namespace {

using Ops = std::set<std::string_view>;
using Seen = std::set<std::pair<const ir::Value*, bool>>;  // and whether it is negated

/// The value itself, before casts.
const ir::Value* uncast(const ir::Value* v) {
  while (v && v->producer && v->producer->op == "Cast") v = v->producer->input(0);
  return v;
}

bool is_ids(const ir::Value* v) {
  return v && !v->producer && !v->is_constant() && ir::is_token_ids(v->name, v->type);
}

/// True if a comparison, or what is computed from it elementwise, finds a token [batch, seq] by an
/// extreme, or counts tokens, once it is negated: other counts are of tokens that are there, such
/// as ESM's of masks.
bool is_reduced(const ir::Value& value, bool negated, Seen& seen) {
  static const Ops extremes = {"ArgMax", "ArgMin", "ReduceMax", "ReduceMin", "TopK"};
  static const Ops counts = {"ReduceSum", "ReduceMean"};
  static const Ops elementwise = {"Not",     "Cast",      "Mul",     "Add",   "Sub",
                                  "Neg",     "And",       "Or",      "Xor",   "Where",
                                  "Reshape", "Unsqueeze", "Squeeze", "Expand"};
  if (value.type.shape.size() > 2 || !seen.insert({&value, negated}).second) return false;
  return std::ranges::any_of(value.users, [&](const ir::Node* n) {
    return extremes.contains(n->op) || (negated && counts.contains(n->op)) ||
           (elementwise.contains(n->op) &&
            is_reduced(*n->output(), negated || n->op == "Not" || n->op == "Sub", seen));
  });
}

}  // namespace

std::vector<std::int64_t> compared_pad_ids(const ir::Graph& graph) {
  std::set<std::int64_t> ids;
  for (const auto& n : graph.nodes()) {
    if (n->op != "Equal") continue;
    for (const std::size_t i : {0u, 1u}) {
      const ir::Value* constant = n->inputs[1 - i];
      Seen seen;
      if (!is_ids(uncast(n->inputs[i])) || !constant->is_constant() ||
          !is_reduced(*n->output(), false, seen))
        continue;
      for (const double id : constant->constant->to_doubles())
        ids.insert(static_cast<std::int64_t>(id));
    }
  }
  return {ids.begin(), ids.end()};
}

}  // namespace bertcl::plan
