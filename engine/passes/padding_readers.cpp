// SPDX-License-Identifier: Apache-2.0
// Follows rows of padding through the graph.
#include "passes/padding_readers.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include "passes/token_axes.hpp"

namespace bertcl::passes {
namespace {

/// True if a result of the operator may be the same for all values of a row of padding, by what it
/// reads of the mask. Others, as Concat, put values of the mask beside those of the row.
bool can_mask(const ir::Node& node) {
  static const std::set<std::string_view> ops = {"Add", "Sub", "Mul", "Div",  "Min",
                                                 "Max", "And", "Or",  "Where"};
  return ops.contains(node.op);
}

bool is_matmul(const ir::Node& node) { return node.op == "MatMul" || node.op == "MatMulInteger"; }

class PaddingFollower {
 public:
  PaddingFollower(const ir::Graph& graph, const ir::Value* mask,
                  const std::set<const ir::Value*>& changed,
                  const std::set<const ir::Node*>& attention)
      : graph_(graph), changed_(changed), attention_(attention) {
    if (mask) of_mask_[mask] = axis_of_tokens(mask->type.shape);
    for (const ir::Value* v : changed) padded_[v] = axis_of_tokens(v->type.shape);
  }

  const ir::Node* reader() {
    for (const auto& n : graph_.nodes())
      if (n->op != "pack_inputs" && n->op != "pack")
        for (const ir::Value* out : n->outputs)
          if (!follow(*n, *out)) return n.get();
    return nullptr;
  }

 private:
  using Axes = std::map<const ir::Value*, TokenAxes>;

  bool is_of_sizes(const ir::Value* v) const {
    return !v || v->is_constant() || of_sizes_.contains(v);
  }

  FollowedAxes followed(const ir::Node& n, std::size_t i, const ir::Value& out,
                        const Axes& of) const {
    const auto it = of.find(n.inputs[i]);
    if (it == of.end()) return {};
    return follow_tokens(n, i, out, it->second, [this](const ir::Value* indices) {
      return !is_of_sizes(indices) && !padded_.contains(indices);  // by the mask or the ids
    });
  }

  /// False if the result depends on other rows of padding than those in its place.
  bool follow(const ir::Node& n, const ir::Value& out) {
    const auto all = [&](const auto& test) { return std::ranges::all_of(n.inputs, test); };
    const auto is_of_sizes = [this](const ir::Value* v) { return this->is_of_sizes(v); };
    if (n.op == "Shape" || n.op == "Size" || all(is_of_sizes)) {
      of_sizes_.insert(&out);
      return true;
    }
    if (all([&](const ir::Value* v) { return is_of_sizes(v) || of_mask_.contains(v); })) {
      of_mask_.try_emplace(&out);
      // Sums of the mask so far are not zero for padding.
      for (std::size_t i = 0; i < n.inputs.size() && n.op != "CumSum"; ++i)
        for (const TokenAxis& t : followed(n, i, out, of_mask_).result) of_mask_[&out].push_back(t);
      return true;
    }
    const bool attends = attention_.contains(&n);
    TokenAxes result;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const FollowedAxes axes = followed(n, i, out, padded_);
      for (const TokenAxis& t : axes.combined)
        if (!attends && !t.masked && !is_masked_in_sum(n, 1 - i, out, t)) return false;
      for (const TokenAxis& t : axes.result)
        if (!add(result, t, n.op == "Mul" || n.op == "And") && !attends) return false;
    }
    if (attends && out.type.shape.size() == 3) result = axis_of_tokens(out.type.shape);
    // One branch of a Where must be other than padding, for the mask to choose it there.
    const bool selects =
        n.op == "Where" && padded_.contains(n.inputs[1]) && padded_.contains(n.inputs[2]);
    if (can_mask(n) && !selects) hide(n, out, result);
    if (!result.empty() && !changed_.contains(&out)) padded_[&out] = result;
    return true;
  }

  /// True if the other operand of a MatMul is masked along the same axis, which is taken for zero
  /// there, or if pooling reads the mask.
  bool is_masked_in_sum(const ir::Node& n, std::size_t other, const ir::Value& out,
                        const TokenAxis& t) const {
    if (n.op == "pool") return other == 1 && of_mask_.contains(n.input(1));
    if (!is_matmul(n) || other > 1) return false;
    const auto masks = [&](const TokenAxis& o) {
      return o.extent == t.extent && o.order == t.order;
    };
    const TokenAxes of_mask = followed(n, other, out, of_mask_).combined;
    const TokenAxes padded = followed(n, other, out, padded_).combined;
    return std::ranges::any_of(of_mask, masks) ||
           std::ranges::any_of(padded, [&](const auto& o) { return o.masked && masks(o); });
  }

  /// False if elements of one result come of different tokens. A factor that is masked masks all.
  static bool add(TokenAxes& axes, const TokenAxis& t, bool is_factor) {
    for (TokenAxis& other : axes) {
      if (other.is_same_place(t)) {
        if (other.order != t.order) return other.masked && t.masked;
        other.masked = is_factor ? other.masked || t.masked : other.masked && t.masked;
        return true;
      }
      if (!ir::Dim::divide(other.stride, t.stride * t.extent) &&
          !ir::Dim::divide(t.stride, other.stride * other.extent))
        return false;
    }
    axes.push_back(t);
    return true;
  }

  /// What is made of the mask hides tokens along its own axes alone: the keys of scores, not the
  /// queries.
  void hide(const ir::Node& n, const ir::Value& out, TokenAxes& result) const {
    for (std::size_t i = 0; i < n.inputs.size(); ++i)
      for (const TokenAxis& t : followed(n, i, out, of_mask_).result)
        for (TokenAxis& hidden : result)
          if (hidden.is_same_place(t) && hidden.order == t.order) hidden.masked = true;
  }

  const ir::Graph& graph_;
  const std::set<const ir::Value*>& changed_;
  const std::set<const ir::Node*>& attention_;
  // Values of rows of padding, of the mask alone, and of sizes and constants.
  Axes padded_, of_mask_;
  std::set<const ir::Value*> of_sizes_;
};

}  // namespace

const ir::Node* reader_of_padding(const ir::Graph& graph, const ir::Value* mask,
                                  const std::set<const ir::Value*>& changed,
                                  const std::set<const ir::Node*>& attention) {
  return PaddingFollower(graph, mask, changed, attention).reader();
}

}  // namespace bertcl::passes
