// SPDX-License-Identifier: Apache-2.0
// Operators that move elements: views without a step, and strided copies.
#include <numeric>

#include "kernels/contracts/elementwise.hpp"
#include "kernels/contracts/move.hpp"
#include "ops/op.hpp"
#include "ops/operands.hpp"
#include "ops/support.hpp"
#include "plan/elements.hpp"
#include "plan/lowering_table.hpp"
#include "plan/strided.hpp"
#include "plan/types.hpp"

namespace bertcl::plan {
namespace {

void lower_view(Builder& b, const ir::Graph&, const ir::Node& node) {
  b.alias(node.output(), node.inputs[0]);
}

/// Without axes every extent of 1 is dropped: those that only the inputs tell must be others, as
/// the result has them.
void lower_squeeze(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  if (!node.has("axes"))
    for (const ir::Dim& d : node.inputs[0]->type.shape)
      if (!d.is_constant()) b.limit(2, d);
  lower_view(b, graph, node);
}

/// target[target_start + ...] = source[source_start + ...] over the extents of `view`.
void copy(Builder& b, const ir::Node& node, const ir::Value* source, Argument target, View view,
          Argument source_start, Argument target_start) {
  const std::size_t bytes = ir::size_of(source->type.dtype);
  launch_strided(b, node, Arithmetic::copy, "strided",
                 b.kernel("copy_strided", fmt::format("copy_strided_{}", bytes)),
                 kernels::CopyStrided<Argument>{.source = b.in(source),
                                                .target = std::move(target),
                                                .source_start = std::move(source_start),
                                                .target_start = std::move(target_start)},
                 coalesced(std::move(view)));
}

void lower_transpose(Builder& b, const ir::Graph&, const ir::Node& node) {
  const Strides own = row_major(node.inputs[0]->type.shape);
  Strides permuted;
  for (const std::int64_t axis : node.ints_attribute("perm")) permuted.push_back(own[axis]);
  const ir::Shape& shape = node.output()->type.shape;
  copy(b, node, node.inputs[0], b.out(node.output()), {shape, {permuted, row_major(shape)}}, 0, 0);
}

void lower_expand(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& shape = node.output()->type.shape;
  copy(b, node, node.inputs[0], b.out(node.output()),
       {shape, {broadcast(node.inputs[0]->type.shape, shape), row_major(shape)}}, 0, 0);
}

/// Each axis as (repeats, extent), the repeats without a step in the operand.
void lower_tile(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& from = node.inputs[0]->type.shape;
  const ir::Shape& to = node.output()->type.shape;
  const Strides strides = row_major(from);
  ir::Shape split;
  Strides source;
  for (std::size_t d = 0; d < to.size(); ++d) {
    const auto repeats = ir::Dim::divide(to[d], from[d]);
    if (!repeats)
      fail(node, "cannot tile to {} from {}: the repeats must be known from the shapes",
           to[d].str(), from[d].str());
    split.insert(split.end(), {*repeats, from[d]});
    source.insert(source.end(), {ir::Dim(0), strides[d]});
  }
  copy(b, node, node.inputs[0], b.out(node.output()), {split, {source, row_major(split)}}, 0, 0);
}

/// A list of integers that is an attribute or a constant operand; `default_value` where it is
/// neither.
std::vector<std::int64_t> integers(const ir::Node& node, std::string_view key, std::size_t operand,
                                   std::vector<std::int64_t> default_value) {
  if (node.has(key)) return node.ints_attribute(key);
  const ir::Value* v = node.input(operand);
  if (!v) return default_value;
  if (!v->is_constant()) fail(node, "{} must be constant", key);
  return v->constant->to_ints();
}

/// Slice with constant starts and positive steps; ends show in the result type. Negative starts
/// count from the end.
void lower_slice(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Shape& from = node.inputs[0]->type.shape;
  const ir::Shape& to = node.output()->type.shape;
  const std::vector<std::int64_t> starts = integers(node, "starts", 1, {});
  std::vector<std::int64_t> all(starts.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<std::int64_t> axes = integers(node, "axes", 3, all);
  const std::vector<std::int64_t> steps =
      integers(node, "steps", 4, std::vector<std::int64_t>(starts.size(), 1));
  Strides strides = row_major(from);
  SizeExpr start{ir::Dim(0)};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t axis = ops::NodeContext{node}.axis(axes[i], from.size());
    std::int64_t first = starts[i];
    if (first < 0 && from[axis].is_constant())
      first = std::max<std::int64_t>(first + from[axis].constant(), 0);
    if (to[axis] == ir::Dim(0)) first = 0;  // nothing is read
    if (steps[i] < 0) fail(node, "slices must have a positive step");
    if (first < 0 && (steps[i] != 1 || !to[axis].is_constant()))
      fail(node,
           "a slice from the end of an axis of free length must have step 1 and a constant end");
    if (first != 0) {
      const SizeExpr offset =
          first > 0 ? SizeExpr{ir::Dim(first) * strides[axis]}
                    : SizeExpr{.dim = from[axis] * strides[axis], .minus = -first * strides[axis]};
      // The sum of two offsets is a size only if it stays a product; one sliced axis is the rule.
      if (start.dim != ir::Dim(0) && !(start.dim.is_constant() && offset.dim.is_constant()))
        fail(node, "kernels take one sliced axis after symbolic extents");
      if (start.dim == ir::Dim(0))
        start = offset;
      else
        start.dim = ir::Dim(start.dim.constant() + offset.dim.constant());
    }
    const auto least = ops::slice_reach(first, steps[i], to[axis]);
    if (!least) fail(node, "slices of dynamic size must start at 0 with step 1");
    b.limit(*least, from[axis]);
    strides[axis] = strides[axis] * ir::Dim(steps[i]);
  }
  copy(b, node, node.inputs[0], b.out(node.output()), {to, {strides, row_major(to)}}, start, 0);
}

/// The extent of a part after which others come.
std::int64_t part_size(const ir::Node& node, const ir::Dim& extent) {
  if (!extent.is_constant()) fail(node, "kernels take parts of constant size along the axis");
  return extent.constant();
}

/// The sum of two offsets, where it stays a product of sizes.
ir::Dim part_sum(const ir::Node& node, const ir::Dim& a, const ir::Dim& b) {
  if (a == ir::Dim(0)) return b;
  if (!a.is_constant() || !b.is_constant())
    fail(node, "kernels take one padded axis after symbolic extents");
  return ir::Dim(a.constant() + b.constant());
}

void lower_split(Builder& b, const ir::Graph& graph, const ir::Node& node) {
  const ir::Shape& from = node.inputs[0]->type.shape;
  const std::size_t axis = ops::axis_of(node, "axis", 0, from.size());
  const Strides strides = row_major(from);
  std::int64_t before = 0;
  for (const ir::Value* out : node.outputs) {
    const ir::Shape& to = out->type.shape;
    if (!out->users.empty() || graph.is_output(out))
      copy(b, node, node.inputs[0], b.out(out), {to, {strides, row_major(to)}},
           SizeExpr{ir::Dim(before) * strides[axis]}, 0);
    before += part_size(node, to[axis]);
  }
}

void lower_concat(Builder& b, const ir::Graph&, const ir::Node& node) {
  const Strides strides = row_major(node.output()->type.shape);
  const std::size_t axis = ops::axis_of(node, "axis", 0, strides.size());
  const Argument out = b.out(node.output());
  std::int64_t before = 0;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ir::Shape& shape = node.inputs[i]->type.shape;
    copy(b, node, node.inputs[i], out, {shape, {row_major(shape), strides}}, 0,
         SizeExpr{ir::Dim(before) * strides[axis]});
    if (i + 1 < node.inputs.size()) before += part_size(node, shape[axis]);
  }
}

/// Pad with one element: all of the result is filled, then the operand is put into it.
void lower_pad(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Value* x = node.inputs[0];
  const ir::Type& type = node.output()->type;
  const auto& pads = node.ints_attribute("pads");
  const Strides strides = row_major(type.shape);
  ir::Dim start(0);
  for (std::size_t d = 0; d < strides.size(); ++d) {
    if (pads[d] < 0 || pads[strides.size() + d] < 0) fail(node, "negative pads are not supported");
    start = pads[d] == 0 ? start : part_sum(node, start, ir::Dim(pads[d]) * strides[d]);
  }
  const Argument out = b.out(node.output());
  const std::size_t bytes = ir::size_of(type.dtype);
  const ir::Value* value = node.input(1);
  launch_strided(b, node, Arithmetic::fill, "strided",
                 b.kernel("copy_strided", fmt::format("fill_strided_{}", bytes)),
                 kernels::FillStrided<Argument>{
                     .value = value ? b.in(value) : b.constant(ir::Tensor::zeros(type.dtype, {})),
                     .target = out,
                     .target_start = 0},
                 coalesced({type.shape, {strides, strides}}));
  copy(b, node, x, out, {x->type.shape, {row_major(x->type.shape), strides}}, 0, SizeExpr{start});
}

/// Sizes of this run as an integer tensor.
void lower_sizes(Builder& b, const ir::Graph&, const ir::Node& node) {
  SizeTable table;
  const auto sizes = ir::parse_shape(node.string_attribute("values"));
  for (const ir::Dim& size : sizes.value()) table.values.push_back(SizeExpr{size});
  const auto count = static_cast<std::int32_t>(table.values.size());
  b.launch(node, Arithmetic::sizes, "elements", b.kernel("cast", "cast"),
           kernels::Cast<Argument>{.x = table,
                                   .from = type_code(ir::DType::i32),
                                   .y = b.out(node.output()),
                                   .to = type_code(node.output()->type.dtype),
                                   .count = count,
                                   .chunk = count},
           {SizeExpr{}, SizeExpr{}, SizeExpr{}});
}

/// Range {start, step}; its length is that of the result type.
void lower_range(Builder& b, const ir::Graph&, const ir::Node& node) {
  const ir::Type& type = node.output()->type;
  if (!node.inputs.empty() || (type.dtype != ir::DType::i64 && type.dtype != ir::DType::i32))
    fail(node, "kernels take integer ranges whose length follows from the shapes");
  const auto scalar = [&](std::string_view key, std::int64_t default_value) {
    return b.constant(
        ir::Tensor::scalar(node.int_attribute(key, default_value)).converted(type.dtype));
  };
  const Arithmetic elements = Arithmetic::elements(type.dtype);
  launch_elements(
      b, node, elements, "elements", b.kernel("range", kernel_for("range", type.dtype)),
      kernels::Range<Argument>{
          .start = scalar("start", 0), .delta = scalar("step", 1), .out = b.out(node.output())},
      element_count(type.shape), b.chunk());
}

}  // namespace

void add_shape(LoweringTable& table) {
  for (const char* op : {"Reshape", "Unsqueeze", "Flatten", "Identity"}) table[op] = lower_view;
  table["Squeeze"] = lower_squeeze;
  table["Transpose"] = lower_transpose;
  table["Expand"] = lower_expand;
  table["Tile"] = lower_tile;
  table["Slice"] = lower_slice;
  table["Split"] = lower_split;
  table["Concat"] = lower_concat;
  table["Pad"] = lower_pad;
  table[ops::operands::sizes::op] = lower_sizes;
  table["Range"] = lower_range;
}

}  // namespace bertcl::plan
