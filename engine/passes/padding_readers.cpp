// SPDX-License-Identifier: Apache-2.0
// Follows rows of padding through the graph.
#include "passes/padding_readers.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "ops/operands.hpp"
#include "passes/node_queries.hpp"
#include "passes/padding_values.hpp"
#include "passes/signs.hpp"
#include "passes/token_axes.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

bool is_matmul(const ir::Node& node) { return node.op == "MatMul" || node.op == "MatMulInteger"; }

class PaddingFollower {
 public:
  PaddingFollower(const ir::Graph& graph, const ir::Value* mask,
                  const std::set<const ir::Value*>& changed,
                  const std::set<const ir::Node*>& attention)
      : graph_(graph), changed_(changed), attention_(attention), values_(graph, mask) {
    if (mask) of_mask_[mask] = axis_of_tokens(mask->type.shape);
    for (const ir::Value* in : graph.inputs())
      if (mask && in->type.shape != mask->type.shape) of_others_.insert(in);
    for (const ir::Value* v : changed) {
      padded_[v] = axis_of_tokens(v->type.shape);
      batches_[v] = axis_of_batch(v->type.shape);
    }
  }

  const ir::Node* reader() {
    for (const auto& n : graph_.nodes())
      if (n->op != pack_inputs::op && n->op != pack::op)
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
      return !is_of_sizes(indices) && !padded_.contains(indices) && !of_others_.contains(indices);
    });
  }

  /// False if the result depends on other rows of padding than those in its place.
  bool follow(const ir::Node& n, const ir::Value& out) {
    const auto all = [&](const auto& test) { return std::ranges::all_of(n.inputs, test); };
    const auto is_of_sizes = [this](const ir::Value* v) { return this->is_of_sizes(v); };
    if (std::ranges::any_of(n.inputs, [&](const ir::Value* v) { return of_others_.contains(v); }))
      of_others_.insert(&out);
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
    TokenAxes result, batch;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const FollowedAxes axes = followed(n, i, out, padded_);
      for (const TokenAxis& t : axes.combined)
        if (!attends && !may_combine(n, i, out, t)) return false;
      for (TokenAxis t : axes.result) {
        t.padding = padding_after(n, i, t, std::ranges::any_of(axes.combined, [&](const auto& c) {
                                    return c.is_same_place(t);
                                  }));
        if (!add(result, t, n) && !attends) return false;
      }
      if (!follow_batch(n, i, out, axes.result, batch) && !attends) return false;
    }
    if (attends && out.type.shape.size() == 3) {
      result = axis_of_tokens(out.type.shape);
      batch = axis_of_batch(out.type.shape);
    }
    if (n.op == "Where") choose_by_padding(n, out, result);
    hide(n, out, result);
    if (!result.empty() && !changed_.contains(&out)) {
      padded_[&out] = result;
      batches_[&out] = batch;
    }
    return true;
  }

  /// False if rows of padding, at the places `tokens` of the result, meet those of other sequences,
  /// which may be real ones.
  bool follow_batch(const ir::Node& n, std::size_t i, const ir::Value& out, const TokenAxes& tokens,
                    TokenAxes& batch) const {
    const auto of_operand = batches_.find(n.inputs[i]);
    if (of_operand == batches_.end()) return true;
    const FollowedAxes axes = followed(n, i, out, batches_);
    bool mixes = !axes.combined.empty() || axes.result.size() < of_operand->second.size();
    for (const TokenAxis& b : axes.result) mixes = !add(batch, b, n) || mixes;
    return !mixes ||
           std::ranges::all_of(tokens, [](const TokenAxis& t) { return t.padding.fixed; });
  }

  /// True if rows of padding do not matter to an operator that combines tokens of operand `i`.
  bool may_combine(const ir::Node& n, std::size_t i, const ir::Value& out,
                   const TokenAxis& t) const {
    return t.padding.fixed ||
           (t.padding.low && is_any_of(n, {"ReduceMax", "ArgMax", "Softmax", "LogSoftmax"})) ||
           is_masked_in_sum(n, 1 - i, out, t);
  }

  /// True if the other operand of a MatMul is zero for padding along the same axis, or if pooling
  /// reads the mask.
  bool is_masked_in_sum(const ir::Node& n, std::size_t other, const ir::Value& out,
                        const TokenAxis& t) const {
    if (n.op == pool::op) return other == 1 && of_mask_.contains(n.input(1));
    if (!is_matmul(n) || other > 1 || !t.padding.finite) return false;
    const auto masks = [&](const TokenAxis& o) {
      return o.extent == t.extent && o.order == t.order;
    };
    ir::Value* factor = n.inputs[other];
    if (const auto it = of_mask_.find(factor); it != of_mask_.end())
      return std::ranges::any_of(followed(n, other, out, of_mask_).combined, [&](const auto& o) {
        return masks(o) && values_.of(factor, &o).zero;
      });
    const TokenAxes padded = followed(n, other, out, padded_).combined;
    return std::ranges::any_of(padded, [&](const auto& o) { return o.padding.zero && masks(o); });
  }

  /// What the operator makes of padding along the axis of operand `i`, whose tokens it has
  /// `combined`, or not, with the other operands left out.
  static Padding padding_after(const ir::Node& n, std::size_t i, const TokenAxis& t,
                               bool combined) {
    const Padding& was = t.padding;
    const bool finite = stays_finite(n, i, was);
    if (n.op == "Softmax" && combined) return {was.fixed || was.low, was.low, false, finite};
    if (n.op == "LogSoftmax" && combined) return {was.fixed, false, was.low, finite};
    if (n.op == "Exp") return {was.fixed || was.low, was.low, false, finite};
    if (n.op == "Where" && i == 0) return {was.fixed, true, true, true};  // the others decide
    const bool keeps =
        i == 0 && is_any_of(n, {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity",
                                "Transpose", "Slice", "Split", "Gather", "Expand", "Cast"});
    const bool keeps_zero = keeps || is_matmul(n) || n.op == "Where" || (n.op == "Div" && i == 0) ||
                            (n.op == "Mul" && !ir::is_int8(n.inputs[i]->type.dtype)) ||
                            (i == 0 && is_any_of(n, {"Neg", "Abs", "Relu", "Sqrt", "QuantizeLinear",
                                                     "DequantizeLinear", "DynamicQuantizeLinear"}));
    const bool keeps_low = (keeps && ir::is_float(n.outputs[0]->type.dtype)) || n.op == "Where" ||
                           n.op == "Add" || (n.op == "Sub" && i == 0);
    return {was.fixed, was.zero && keeps_zero, was.low && keeps_low, finite};
  }

  /// True if the operator makes finite numbers of those that operand `i` holds for padding, of
  /// which rows of zeros are the usual ones: their quotients and logarithms are not finite.
  static bool stays_finite(const ir::Node& n, std::size_t i, const Padding& was) {
    if (!ir::is_float(n.outputs[0]->type.dtype)) return true;
    if (!was.finite) return false;
    const ir::Value* x = n.inputs[i];
    if (n.op == "Div") return i == 0 || is_positive(x);
    if (is_any_of(n, {"Reciprocal", "Log"})) return is_positive(x);
    if (n.op == "Sqrt") return is_nonnegative(x);
    if (n.op == "Pow") return is_finite_power(n);
    return n.op != "Mod" && (!n.has("epsilon") || n.float_attribute("epsilon") > 0);
  }

  static bool is_finite_power(const ir::Node& pow) {
    const auto exponent = scalar_value(pow.inputs[1]);
    if (!exponent || *exponent < 0) return is_positive(pow.inputs[0]);
    return *exponent == std::floor(*exponent) || is_nonnegative(pow.inputs[0]);
  }

  /// False if elements of one result come of different tokens.
  static bool add(TokenAxes& axes, const TokenAxis& t, const ir::Node& n) {
    for (TokenAxis& other : axes) {
      if (other.is_same_place(t)) {
        Padding &a = other.padding, b = t.padding;
        if (other.order != t.order) return a.fixed && b.fixed;
        const bool multiplies = n.op == "Mul" || n.op == "And";
        const bool adds = n.op == "Add" || n.op == "Sub";
        const bool finite = a.finite && b.finite;
        a.zero = multiplies && finite ? a.zero || b.zero : a.zero && b.zero;
        a.fixed = (a.fixed && b.fixed) || a.zero;
        a.low = adds && finite ? a.low || b.low : !multiplies && a.low && b.low;
        a.finite = finite;
        return true;
      }
      if (!ir::Dim::divide(other.stride, t.stride * t.extent) &&
          !ir::Dim::divide(t.stride, other.stride * other.extent))
        return false;
    }
    axes.push_back(t);
    return true;
  }

  /// The result of a Where is zero or low for padding if both of its branches are.
  void choose_by_padding(const ir::Node& n, const ir::Value& out, TokenAxes& result) {
    for (TokenAxis& t : result) {
      for (const std::size_t i : {1u, 2u}) {
        if (padded_.contains(n.inputs[i])) {
          const TokenAxes branch = followed(n, i, out, padded_).result;
          if (std::ranges::any_of(branch, [&](const auto& b) { return b.is_same_place(t); }))
            continue;
        }
        const PaddingValue value = value_of_sizes(n.inputs[i]);
        t.padding.zero = t.padding.zero && value.zero;
        t.padding.low = t.padding.low && value.low;
      }
      t.padding.fixed = t.padding.fixed || t.padding.zero;
    }
  }

  /// Of a value that is made of sizes and constants alone; nothing of others.
  PaddingValue value_of_sizes(ir::Value* v) const {
    return is_of_sizes(v) ? values_.of(v, nullptr) : PaddingValue{};
  }

  /// What is made of the mask hides tokens along its own axes alone: the keys of scores, not the
  /// queries.
  void hide(const ir::Node& n, const ir::Value& out, TokenAxes& result) {
    static const std::set<std::string_view> can_hide = {"Add", "Sub", "Mul",  "Min",
                                                        "And", "Or",  "Where"};
    if (result.empty() || !can_hide.contains(n.op)) return;
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      const auto of_mask = of_mask_.find(n.inputs[i]);
      if (of_mask == of_mask_.end()) continue;
      for (const TokenAxis& own : of_mask->second)
        for (const TokenAxis& t :
             follow_tokens(n, i, out, {own}, [](const ir::Value*) { return false; }).result)
          for (TokenAxis& hidden : result)
            if (hidden.is_same_place(t) && hidden.order == t.order)
              hide(n, i, values_.of(n.inputs[i], &own), hidden.padding);
    }
  }

  /// `value`: what operand `i` is for padding.
  void hide(const ir::Node& n, std::size_t i, const PaddingValue& value, Padding& padding) const {
    if (n.op == "Where") {
      // The branch that is chosen there must be other than padding.
      if (i != 0 || (!value.zero && !value.nonzero)) return;
      ir::Value* chosen = n.inputs[value.zero ? 2 : 1];
      if (padded_.contains(chosen)) return;
      const PaddingValue held = value_of_sizes(chosen);
      padding = {true, held.zero, held.low, held.finite};
    } else if (!padding.finite) {
      return;
    } else if (n.op == "Mul" || n.op == "And") {
      if (value.zero) padding = {true, true, false};
    } else if (n.op == "Or") {
      padding.fixed = padding.fixed || value.nonzero;
    } else {
      const bool lowers = n.op == "Sub" && i == 1 ? value.high : value.low;
      padding.low = padding.low || lowers;
    }
  }

  const ir::Graph& graph_;
  const std::set<const ir::Value*>& changed_;
  const std::set<const ir::Node*>& attention_;
  // Values of rows of padding, of the mask alone, and of sizes and constants.
  Axes padded_, of_mask_;
  Axes batches_;  // the axes of sequences of values of rows of padding
  std::set<const ir::Value*> of_sizes_;
  // Of inputs other than ids, types and mask, such as the positions of masked tokens: as indices
  // they may choose padding.
  std::set<const ir::Value*> of_others_;
  mutable PaddingValues values_;
};

}  // namespace

const ir::Node* reader_of_padding(const ir::Graph& graph, const ir::Value* mask,
                                  const std::set<const ir::Value*>& changed,
                                  const std::set<const ir::Node*>& attention) {
  return PaddingFollower(graph, mask, changed, attention).reader();
}

}  // namespace bertcl::passes
