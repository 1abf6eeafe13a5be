// SPDX-License-Identifier: Apache-2.0
// Where tokens lie in a tensor, and what operators make of that.
#include "passes/token_axes.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>

#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "passes/node_queries.hpp"

namespace bertcl::passes {

using namespace ops::operands;

namespace {

/// Elements from one index of an axis to the next.
ir::Dim stride_of(const ir::Shape& shape, std::size_t axis) {
  ir::Dim stride(1);
  for (std::size_t d = axis + 1; d < shape.size(); ++d) stride = stride * shape[d];
  return stride;
}

bool divides(const ir::Dim& part, const ir::Dim& whole) {
  return ir::Dim::divide(whole, part).has_value();
}

/// True unless elements along the axis are all of one token.
bool touches(const ir::Shape& shape, std::size_t axis, const TokenAxis& t) {
  if (shape[axis] == ir::Dim(1)) return false;
  const ir::Dim stride = stride_of(shape, axis);
  return !divides(stride * shape[axis], t.stride) && !divides(t.stride * t.extent, stride);
}

/// The axis that holds the tokens, perhaps among others; empty if they lie across several.
std::optional<std::size_t> axis_with(const ir::Shape& shape, const TokenAxis& t) {
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    const ir::Dim stride = stride_of(shape, axis);
    if (divides(stride, t.stride) && divides(t.stride * t.extent, stride * shape[axis]))
      return axis;
  }
  return std::nullopt;
}

/// What becomes of each axis of an operand.
struct AxisMap {
  std::set<std::size_t> combined;              // several elements along it make one of the result
  std::vector<std::optional<std::size_t>> to;  // the axis of the result
  bool has_own_places = false;                 // as Softmax, where what it combined were
};

/// Axes aligned at the end, as in broadcasting: those that `out` has more are in front.
AxisMap aligned(const ir::Shape& in, const ir::Shape& out, std::set<std::size_t> combined = {}) {
  AxisMap map{std::move(combined), {}};
  for (std::size_t d = 0; d < in.size(); ++d) map.to.emplace_back(d + out.size() - in.size());
  return map;
}

AxisMap transposed(const ir::Node& node, const ir::Shape& in) {
  AxisMap map{{}, std::vector<std::optional<std::size_t>>(in.size())};
  const auto& perm = node.ints_attribute("perm");
  for (std::size_t d = 0; d < perm.size(); ++d) map.to[perm[d]] = d;
  return map;
}

AxisMap reduced(const ir::Shape& in, const ir::Shape& out, std::set<std::size_t> axes) {
  if (in.size() == out.size()) return aligned(in, out, std::move(axes));
  AxisMap map;
  for (std::size_t d = 0, kept = 0; d < in.size(); ++d)
    map.to.push_back(axes.contains(d) ? std::nullopt : std::optional(kept++));
  map.combined = std::move(axes);
  return map;
}

/// Operand `i`, 0 or 1, of a MatMul.
AxisMap multiplied(const ir::Node& node, std::size_t i, const ir::Shape& out) {
  const ir::Shape& in = node.inputs[i]->type.shape;
  const std::size_t rank = in.size();
  const std::size_t summed = i == 0 || rank == 1 ? rank - 1 : rank - 2;
  const bool other_is_vector = node.inputs[1 - i]->type.shape.size() == 1;
  AxisMap map{{summed}, {}};
  for (std::size_t d = 0; d < rank; ++d) {
    std::optional<std::size_t> to;
    // From the end of the result, where a vector leaves out an axis.
    const std::size_t after = rank - 1 - d;
    if (d != summed) to = out.size() - 1 - (other_is_vector && after > 0 ? after - 1 : after);
    map.to.push_back(to);
  }
  return map;
}

/// One axis of an operand becomes those of `inner`, [.., axis, ..] -> [.., inner.., ..].
AxisMap widened(const ir::Shape& in, std::size_t axis, std::size_t inner) {
  AxisMap map;
  for (std::size_t d = 0; d < in.size(); ++d)
    map.to.push_back(d == axis  ? std::nullopt
                     : d < axis ? std::optional(d)
                                : std::optional(d - 1 + inner));
  return map;
}

/// The axes along which an operator of one operand combines elements.
std::set<std::size_t> combined_axes(const ir::Node& node, std::size_t rank) {
  std::set<std::size_t> axes;
  for (const std::int64_t axis : ops::traits(node).mixed_axes(node))
    if (const auto at = ir::axis_within(axis, rank)) axes.insert(*at);
  return axes;
}

/// Empty for operators that are followed otherwise, or not at all.
std::optional<AxisMap> map_of(const ir::Node& node, std::size_t i, const ir::Shape& out) {
  const ir::Shape& in = node.inputs[i]->type.shape;
  const std::size_t rank = in.size();
  if (ops::traits(node).by_element || (node.op == "OneHot" && i > 0))
    return rank <= out.size() ? std::optional(aligned(in, out)) : std::nullopt;
  if (is_any_of(node, {"MatMul", "MatMulInteger"}) && i < 2) return multiplied(node, i, out);
  if (node.op == "Transpose") return transposed(node, in);
  if (node.op == "OneHot") {
    AxisMap map;
    const std::size_t axis = ops::axis_of(node, "axis", -1, rank + 1);
    for (std::size_t d = 0; d < rank; ++d) map.to.emplace_back(d < axis ? d : d + 1);
    return map;
  }
  if (node.op == pool::op && i == 0 && rank == 3) return reduced(in, out, {1});
  if (rank > 0 &&
      ((node.op == rotary::op && i == 0) || (ops::traits(node).row_wise && ops::get(node).is_own)))
    return aligned(in, out, {rank - 1});
  if (i == 0 && ops::traits(node).mixed_axes) {
    AxisMap map = reduced(in, out, combined_axes(node, rank));
    map.has_own_places = in == out;
    return map;
  }
  return std::nullopt;
}

/// Follows one token axis through one node.
class Follower {
 public:
  Follower(const ir::Node& node, std::size_t i, const ir::Value& result,
           const std::function<bool(const ir::Value*)>& chooses)
      : node_(node),
        i_(i),
        in_(node.inputs[i]->type.shape),
        out_(result.type.shape),
        result_(result),
        chooses_(chooses) {}

  FollowedAxes follow(const TokenAxes& axes) {
    if (is_any_of(node_, {"Shape", "Size"})) return {};
    // By the range of all rows, where those of padding do not count; see docs/architecture.md.
    if (node_.op == "DynamicQuantizeLinear" && &result_ != node_.outputs[0]) return {};
    if (is_any_of(node_, {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"}))
      return i_ == 0 ? FollowedAxes{axes} : FollowedAxes{};
    const std::optional<AxisMap> map = map_of(node_, i_, out_);
    for (const TokenAxis& t : axes) {
      if (map)
        follow_map(t, *map);
      else if (node_.op == "Gather")
        gather(t);
      else if (node_.op == "Concat" ||
               (i_ == 0 && is_any_of(node_, {"Slice", "Split", "Pad", "Tile"})))
        move(t);
      else if (is_any_of(node_, {"GatherElements", "GatherND"}) && i_ == 0 &&
               chooses_(node_.inputs[1]))
        continue;
      else
        combine(t);
    }
    return std::move(followed_);
  }

 private:
  void combine(const TokenAxis& t) { followed_.combined.push_back(t); }

  /// Tokens that lie within one axis of the operand, and in the same way within `to` of the result.
  void put(const TokenAxis& t, std::size_t axis, std::size_t to) {
    TokenAxis put = t;
    put.stride = stride_of(out_, to) * *ir::Dim::divide(t.stride, stride_of(in_, axis));
    followed_.result.push_back(put);
  }

  void follow_map(const TokenAxis& t, const AxisMap& map) {
    for (const std::size_t axis : map.combined)
      if (touches(in_, axis, t)) {
        combine(t);
        if (map.has_own_places) break;
        return;
      }
    if (in_ == out_ && node_.op != "Transpose") {
      followed_.result.push_back(t);
      return;
    }
    const auto axis = axis_with(in_, t);
    if (!axis || !map.to[*axis]) return combine(t);
    put(t, *axis, *map.to[*axis]);
  }

  /// Rows of a table by tokens, or tokens by number.
  void gather(const TokenAxis& t) {
    const std::size_t axis = ops::axis_of(node_, "axis", 0, node_.inputs[0]->type.shape.size());
    const ir::Shape& indices = node_.inputs[1]->type.shape;
    if (i_ == 1) {
      const auto own = axis_with(in_, t);
      return own ? put(t, *own, *own + axis) : combine(t);
    }
    if (!touches(in_, axis, t)) return follow_map(t, widened(in_, axis, indices.size()));
    const auto first = scalar_value(node_.inputs[1]);
    if (chooses_(node_.inputs[1]) || (first == 0.0 && is_axis(t, axis) && t.order.empty())) return;
    combine(t);
  }

  /// True if the axis is one of tokens and nothing else.
  bool is_axis(const TokenAxis& t, std::size_t axis) const {
    return stride_of(in_, axis) == t.stride && in_[axis] == t.extent;
  }

  /// Slice, Split, Concat, Pad, Tile: the same axes, of which some are longer or shorter.
  void move(const TokenAxis& t) {
    const auto axis = axis_with(in_, t);
    if (!axis || *axis >= out_.size()) return combine(t);
    const bool changes = in_[*axis] != out_[*axis] || is_moved(*axis);
    if (!changes) return put(t, *axis, *axis);
    if (!is_axis(t, *axis) || node_.op == "Tile") return combine(t);
    TokenAxis part{stride_of(out_, *axis), out_[*axis], t.order, t.padding};
    const std::string from = first_of(*axis);
    if (part.extent == ir::Dim(1)) {  // the first token is a real one
      if (!from.empty() || !t.order.empty()) combine(t);
      return;
    }
    part.order = node_.op == "Concat" ? from : t.order + from;
    followed_.result.push_back(part);
  }

  /// True if elements may lie elsewhere along an axis as long as before.
  bool is_moved(std::size_t axis) const {
    return (node_.op == "Slice" || node_.op == "Pad") && !first_of(axis).empty();
  }

  /// Where the result begins along the axis, and its step; "" for the first token and those after.
  std::string first_of(std::size_t axis) const {
    if (node_.op == "Split") {
      std::int64_t first = 0;
      const auto& extents = node_.ints_attribute("split");
      for (std::size_t r = 0; node_.outputs[r] != &result_; ++r) first += extents[r];
      return first == 0 ? "" : fmt::format("[{}::1]", first);
    }
    if (node_.op == "Pad") {
      const auto pads = ints("pads", 1);
      if (pads && axis < pads->size() && (*pads)[axis] == 0) return "";
    }
    if (node_.op != "Slice") return fmt::format("[{}]", result_.name);
    const auto axes = ints("axes", 3), starts = ints("starts", 1), steps = ints("steps", 4);
    if (!axes) return fmt::format("[{}]", result_.name);
    for (std::size_t k = 0; k < axes->size(); ++k) {
      if (ir::axis_within((*axes)[k], in_.size()) != axis) continue;
      if (!starts || k >= starts->size()) return fmt::format("[{}]", result_.name);
      const bool has_steps = node_.has("steps") || node_.input(4);
      if (has_steps && (!steps || k >= steps->size())) return fmt::format("[{}]", result_.name);
      const std::int64_t step = has_steps ? (*steps)[k] : 1;
      return (*starts)[k] == 0 && step == 1 ? "" : fmt::format("[{}::{}]", (*starts)[k], step);
    }
    return "";
  }

  /// An attribute, or else a constant operand.
  std::optional<std::vector<std::int64_t>> ints(std::string_view key, std::size_t operand) const {
    if (node_.has(key)) return node_.ints_attribute(key);
    const ir::Value* v = node_.input(operand);
    if (v && v->is_constant()) return v->constant->to_ints();
    if (v || key != "axes") return std::nullopt;
    std::vector<std::int64_t> all(in_.size());  // the first axes, where none are given
    std::iota(all.begin(), all.end(), std::int64_t{0});
    return all;
  }

  const ir::Node& node_;
  const std::size_t i_;
  const ir::Shape &in_, &out_;
  const ir::Value& result_;
  const std::function<bool(const ir::Value*)>& chooses_;
  FollowedAxes followed_;
};

}  // namespace

TokenAxes axis_of_tokens(const ir::Shape& rows) {
  return rows.size() < 2 || rows[1] == ir::Dim(1) ? TokenAxes{}
                                                  : TokenAxes{{stride_of(rows, 1), rows[1]}};
}

TokenAxes axis_of_batch(const ir::Shape& rows) {
  return rows.empty() || rows[0] == ir::Dim(1) ? TokenAxes{}
                                               : TokenAxes{{stride_of(rows, 0), rows[0]}};
}

FollowedAxes follow_tokens(const ir::Node& node, std::size_t i, const ir::Value& result,
                           const TokenAxes& axes,
                           const std::function<bool(const ir::Value*)>& chooses) {
  return Follower(node, i, result, chooses).follow(axes);
}

}  // namespace bertcl::passes
