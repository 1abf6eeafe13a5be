// SPDX-License-Identifier: Apache-2.0
// Follows rows of tokens back through operators that work row by row.
#include "passes/recognize/same_tokens.hpp"

#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "ops/op.hpp"
#include "ops/recognize_by_value.hpp"
#include "passes/node_queries.hpp"

namespace bertcl::passes {
namespace {

/// A value with rows of tokens: [batch, seq, ...] or [batch * seq, ...], or with seq in front.
struct Place {
  ir::Value* value;
  bool seq_first;
  friend auto operator<=>(const Place&, const Place&) = default;
};

class RowFollower {
 public:
  RowFollower(ir::Dim batch, ir::Dim seq) : batch_(std::move(batch)), seq_(std::move(seq)) {}

  /// All that the rows of `place` are made of, row by row.
  void collect(const Place& place) {
    std::vector<Place> open{place};
    while (!open.empty()) {
      const Place at = open.back();
      open.pop_back();
      if (!known_.insert(at).second) continue;
      if (const auto sources = sources_of_rows(at))
        open.insert(open.end(), sources->begin(), sources->end());
    }
  }

  /// True if the rows of `place` are made of those that were collected.
  bool descends(const Place& place) const {
    bool found = false;
    std::set<Place> seen;
    std::vector<Place> open{place};
    while (!open.empty()) {
      const Place at = open.back();
      open.pop_back();
      if (!seen.insert(at).second) continue;
      if (known_.contains(at)) {
        found = true;
        continue;
      }
      if (at.value->is_constant() || ops::depends_on_sizes_only(at.value)) continue;
      const auto sources = sources_of_rows(at);
      if (!sources || sources->empty()) return false;
      open.insert(open.end(), sources->begin(), sources->end());
    }
    return found;
  }

 private:
  bool has_rows(const ir::Value* v, bool seq_first) const {
    const ir::Shape& shape = v->type.shape;
    if (shape.size() >= 2 && shape[0] == (seq_first ? seq_ : batch_) &&
        shape[1] == (seq_first ? batch_ : seq_))
      return true;
    return !shape.empty() && shape[0] == batch_ * seq_;
  }

  /// The axes of `v` up to this one are those of tokens.
  std::size_t last_axis_of_tokens(const ir::Value* v) const {
    return v->type.shape[0] == batch_ * seq_ ? 0 : 1;
  }

  /// Those of the operands that have rows, of which the rows of the value are made, each of that in
  /// its place; empty if there are other rows, or none.
  std::optional<std::vector<Place>> sources_of_rows(const Place& at) const {
    if (!at.value->producer) return std::nullopt;
    const ir::Node& n = *at.value->producer;
    const ops::Traits& traits = ops::traits(n);
    const ir::Value* x = n.input(0);
    if (!x) return std::nullopt;
    if (n.op == "Transpose") {
      const auto& perm = n.ints_attribute("perm");
      if (perm.size() < 2 || last_axis_of_tokens(at.value) == 0) return std::nullopt;
      if (perm[0] + perm[1] != 1) return std::nullopt;
      return operands(n, 1, at.seq_first != (perm[0] == 1));
    }
    if (is_any_of(n, {"Reshape", "Flatten", "Squeeze", "Unsqueeze"}) || reduces_last_axis(n))
      return operands(n, 1, at.seq_first);
    if (is_any_of(n, {"Slice", "Split", "Concat", "Gather"})) return moved(n, at);
    if (is_any_of(n, {"MatMul", "MatMulInteger"}))
      return ops::depends_on_sizes_only(n.inputs[1]) ? operands(n, 1, at.seq_first) : std::nullopt;
    if (traits.by_element || (traits.row_wise && ops::get(n).is_own) ||
        (is_any_of(n, {"LayerNormalization", "RMSNormalization"}) && normalizes_last_axis(n)))
      return operands(n, n.inputs.size(), at.seq_first);
    return std::nullopt;
  }

  /// Those that have rows among the first operands.
  std::optional<std::vector<Place>> operands(const ir::Node& n, std::size_t count,
                                             bool seq_first) const {
    std::vector<Place> found;
    for (std::size_t i = 0; i < count; ++i)
      if (n.inputs[i] && has_rows(n.inputs[i], seq_first))
        found.push_back({n.inputs[i], seq_first});
    return found;
  }

  /// Of operators that move elements along an axis, which must not be one of tokens.
  std::optional<std::vector<Place>> moved(const ir::Node& n, const Place& at) const {
    const auto rank = std::ssize(at.value->type.shape);
    auto axis =
        n.op == "Slice" ? only_integer(n, "axes", 3) : std::optional(n.int_attribute("axis", 0));
    if (!axis || !has_rows(n.inputs[0], at.seq_first)) return std::nullopt;
    const auto from = std::ssize(n.inputs[0]->type.shape);
    if (*axis < 0) *axis += n.op == "Gather" ? from : rank;
    if (*axis <= static_cast<std::int64_t>(last_axis_of_tokens(n.inputs[0]))) return std::nullopt;
    return operands(n, n.op == "Concat" ? n.inputs.size() : 1, at.seq_first);
  }

  ir::Dim batch_, seq_;
  std::set<Place> known_;
};

}  // namespace

bool are_of_same_tokens(ir::Value* queries, ir::Value* keys, ir::Value* mask) {
  const ir::Shape& rows = queries->type.shape;
  RowFollower follower(rows[0], rows[1]);
  follower.collect({keys, false});
  if (mask) follower.collect({mask, false});
  return follower.descends({queries, false});
}

}  // namespace bertcl::passes
