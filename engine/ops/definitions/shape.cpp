// SPDX-License-Identifier: Apache-2.0
// Operators on shapes: Shape, Size, Reshape, Expand, Squeeze, Unsqueeze, Flatten, Range, and sizes.
// Reshape, Expand and Range without their shape operands take the shape from their result type.
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "ops/fused.hpp"
#include "ops/operands.hpp"
#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

constexpr std::size_t kMaxRank = 64;

/// The attribute `start` or `end` of Shape, as a place among the extents.
std::int64_t bound(const ir::Node& node, std::string_view key, std::int64_t default_value,
                   std::size_t extents) {
  const auto rank = static_cast<std::int64_t>(extents);
  const std::int64_t v = node.int_attribute(key, default_value);
  return std::clamp<std::int64_t>(v < 0 ? v + rank : v, 0, rank);
}
std::vector<ir::Type> infer_shape(InferContext& context) {
  const std::size_t rank = context.shape(0).size();
  const std::int64_t start = bound(context.node, "start", 0, rank),
                     end = bound(context.node, "end", static_cast<std::int64_t>(rank), rank);
  return {{ir::DType::i64, {std::max<std::int64_t>(end - start, 0)}}};
}
std::vector<SymbolicElements> values_shape(InferContext& context) {
  const ir::Shape& shape = context.shape(0);
  context.values.assume_extents(shape);
  const std::int64_t start = bound(context.node, "start", 0, shape.size());
  const std::int64_t n = context.node.output()->type.shape[0].constant();
  return {std::vector<ir::Dim>(shape.begin() + start, shape.begin() + start + n)};
}
std::vector<ir::Tensor> evaluate_shape(const EvaluateContext& context) {
  const ir::Sizes& sizes = context.in(0).shape();
  const std::int64_t start = bound(context.node, "start", 0, sizes.size());
  const std::int64_t n = context.result_sizes()[0];
  return {ir::Tensor::of<std::int64_t>({n}, {sizes.begin() + start, sizes.begin() + start + n})};
}

std::vector<ir::Type> infer_size(InferContext&) { return {{ir::DType::i64, {}}}; }
std::vector<SymbolicElements> values_size(InferContext& context) {
  return {std::vector<ir::Dim>{ir::element_count(context.shape(0))}};
}
std::vector<ir::Tensor> evaluate_size(const EvaluateContext& context) {
  return {ir::Tensor::scalar<std::int64_t>(context.in(0).size())};
}

/// The elements of a shape operand; where they are not known, as many fresh symbols.
std::vector<ir::Dim> shape_operand(InferContext& context, std::size_t i) {
  if (ir::is_float(context.type(i).dtype) || context.shape(i).size() != 1)
    context.fail("'{}' must be a vector of integers", context.node.input(i)->name);
  if (const auto* elements = context.elements(i)) return *elements;
  const ir::Dim rank = context.shape(i)[0];
  if (!rank.is_constant() || rank.constant() > static_cast<std::int64_t>(kMaxRank))
    context.fail("the rank of the result is not known");
  std::vector<ir::Dim> out;
  for (std::int64_t d = 0; d < rank.constant(); ++d) out.push_back(context.graph.fresh_symbol());
  return out;
}

std::vector<ir::Type> infer_reshape(InferContext& context) {
  if (context.node.inputs.size() == 1) return {context.node.output()->type};
  const ir::Type& in = context.type(0);
  ir::Shape out = shape_operand(context, 1);
  const bool keep_zero = context.node.int_attribute("allowzero", 0) != 0;
  std::optional<std::size_t> inferred;
  ir::Dim known(1);
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == ir::Dim(-1)) {
      if (inferred) context.fail("shape {} has two extents of -1", ir::str(out));
      inferred = i;
      continue;
    }
    if (out[i] == ir::Dim(0) && !keep_zero) {
      if (i >= in.shape.size())
        context.fail("shape {} copies extent {}, which {} does not have", ir::str(out), i,
                     ir::str(in.shape));
      out[i] = in.shape[i];
    }
    if (out[i].is_constant() && out[i].constant() < 0)
      context.fail("shape {} has a negative extent", ir::str(out));
    known = known * out[i];
  }
  const ir::Dim total = ir::element_count(in.shape);
  if (inferred) {
    const auto rest = ir::Dim::divide(total, known);
    if (!rest && total.is_constant() && known.is_constant() && known != ir::Dim(0))
      context.fail("cannot reshape {} to {}", ir::str(in.shape), ir::str(out));
    out[*inferred] = rest ? *rest : context.graph.fresh_symbol();
  } else if (known != total && known.is_constant() && total.is_constant()) {
    context.fail("cannot reshape {} ({} elements) to {} ({} elements)", ir::str(in.shape),
                 total.str(), ir::str(out), known.str());
  } else if (known != total) {
    context.graph.assume_equal(known, total);
  }
  return {{in.dtype, std::move(out)}};
}
std::vector<ir::Tensor> evaluate_reshape(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  if (context.inputs.size() == 1) return {x.reshaped(context.result_sizes())};
  ir::Sizes out = context.in(1).to_ints();
  const bool keep_zero = context.node.int_attribute("allowzero", 0) != 0;
  std::int64_t known = 1;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (out[i] == 0 && !keep_zero && i < x.shape().size()) out[i] = x.shape()[i];
    if (out[i] != -1) known *= out[i];
  }
  for (std::int64_t& d : out)
    if (d == -1) d = known == 0 ? 0 : x.size() / known;
  return {x.reshaped(out)};
}

std::vector<ir::Type> infer_expand(InferContext& context) {
  if (context.node.inputs.size() == 1) return {context.node.output()->type};
  const ir::Shape target = shape_operand(context, 1);
  for (const ir::Dim& d : target)
    if (d.is_constant() && d.constant() < 0)
      context.fail("shape {} has a negative extent", ir::str(target));
  ir::Shape out = broadcast(context, context.shape(0), target);
  // Where the operand may have 1 in a run, an unknown requested size is the result's.
  for (std::size_t i = 1; i <= std::min(context.shape(0).size(), target.size()); ++i)
    if (const ir::Dim& asked = target[target.size() - i];
        is_unknown(context.graph, asked) && !out[out.size() - i].is_constant())
      out[out.size() - i] = asked;
  return {{context.type(0).dtype, std::move(out)}};
}
std::vector<ir::Tensor> evaluate_expand(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const ir::Sizes out = context.inputs.size() == 1
                            ? context.result_sizes()
                            : broadcast(context, x.shape(), context.in(1).to_ints());
  if (broadcast(context, x.shape(), out) != out)
    context.fail("shape [{}] cannot be expanded to [{}]", fmt::join(x.shape(), ", "),
                 fmt::join(out, ", "));
  return {gather_strided(x, out, broadcast_strides(x.shape(), out))};
}

/// The attribute `axes` as sorted dimensions of a tensor of that rank.
std::vector<std::int64_t> sorted_axes(const InferContext& context, std::size_t rank) {
  std::vector<std::int64_t> axes = context.node.ints_attribute("axes");
  for (std::int64_t& a : axes) a = static_cast<std::int64_t>(context.axis(a, rank));
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) context.fail("an axis is given twice");
  return axes;
}

std::vector<ir::Type> infer_squeeze(InferContext& context) {
  ir::Type type = context.type(0);
  if (!context.node.has("axes")) {
    std::erase_if(type.shape, [](const ir::Dim& d) { return d == ir::Dim(1); });
    return {type};
  }
  const auto axes = sorted_axes(context, type.shape.size());
  for (auto a = axes.rbegin(); a != axes.rend(); ++a) {
    const ir::Dim d = type.shape[*a];
    if (d.is_constant() && d.constant() != 1)
      context.fail("axis {} of {} is not 1", *a, ir::str(type.shape));
    same_extent(context, d, 1, "the axis");
    type.shape.erase(type.shape.begin() + *a);
  }
  return {type};
}
std::vector<ir::Type> infer_unsqueeze(InferContext& context) {
  ir::Type type = context.type(0);
  if (type.shape.size() + context.node.ints_attribute("axes").size() > kMaxRank)
    context.fail("the rank of the result is too large");
  for (const std::int64_t a :
       sorted_axes(context, type.shape.size() + context.node.ints_attribute("axes").size()))
    type.shape.insert(type.shape.begin() + a, 1);
  return {type};
}
std::vector<ir::Type> infer_flatten(InferContext& context) {
  const ir::Type& in = context.type(0);
  const auto rank = std::ssize(in.shape);
  std::int64_t axis = context.node.int_attribute("axis", 1);
  if (axis < -rank || axis > rank) context.fail("axis {} is out of range for rank {}", axis, rank);
  if (axis < 0) axis += rank;
  return {{in.dtype,
           {ir::element_count(ir::Shape{in.shape.begin(), in.shape.begin() + axis}),
            ir::element_count(ir::Shape{in.shape.begin() + axis, in.shape.end()})}}};
}
/// The elements stay in their order; only the type says the new shape.
std::vector<ir::Tensor> evaluate_by_type(const EvaluateContext& context) {
  return {context.in(0).reshaped(context.result_sizes())};
}

/// Without axes, a size that is 1 in this run gives another shape than the type.
std::vector<ir::Tensor> evaluate_squeeze(const EvaluateContext& context) {
  if (context.node.has("axes")) return evaluate_by_type(context);
  ir::Sizes sizes = context.in(0).shape();
  std::erase(sizes, 1);
  return {context.in(0).reshaped(sizes)};
}

/// The number of elements of a Range of floats.
std::int64_t range_length(const auto& context, double start, double limit, double step) {
  const double n = std::ceil((limit - start) / step);
  if (!(n < 0x1p40)) context.fail("it has too many elements");  // or NaN
  return static_cast<std::int64_t>(std::max(n, 0.0));
}

/// The same of integers, whose differences a double may not hold.
std::int64_t range_length(const auto& context, std::int64_t start, std::int64_t limit,
                          std::int64_t step) {
  if (step == 0) context.fail("the step is 0");
  if (step > 0 ? limit <= start : limit >= start) return 0;
  const auto bits = [](std::int64_t v) { return static_cast<std::uint64_t>(v); };
  const std::uint64_t way = step > 0 ? bits(limit) - bits(start) : bits(start) - bits(limit);
  const std::uint64_t n = (way - 1) / (step > 0 ? bits(step) : 0 - bits(step)) + 1;
  if (n >= std::uint64_t{1} << 40) context.fail("it has too many elements");
  return static_cast<std::int64_t>(n);
}

std::int64_t range_length(const auto& context, const ir::Tensor& start, const ir::Tensor& limit,
                          const ir::Tensor& step) {
  if (ir::is_float(start.dtype()))
    return range_length(context, start.to_doubles().at(0), limit.to_doubles().at(0),
                        step.to_doubles().at(0));
  return range_length(context, start.to_ints().at(0), limit.to_ints().at(0), step.to_ints().at(0));
}

/// Range(start, limit, step), or Range {start, step} whose length is that of its result type.
std::vector<ir::Type> infer_range(InferContext& context) {
  if (context.node.inputs.empty()) return {context.node.output()->type};
  const ir::DType dtype = context.type(0).dtype;
  if (context.node.inputs.size() != 3) context.fail("expected three operands or none");
  for (std::size_t i = 0; i < 3; ++i)
    if (ir::element_count(context.shape(i)) != ir::Dim(1) || context.type(i).dtype != dtype)
      context.fail("start, limit and step must be scalars of one type");
  const auto& operands = context.node.inputs;
  const ir::Tensor* numbers[3];
  std::ranges::transform(operands, numbers,
                         [&](const ir::Value* in) { return context.values.tensor(in); });
  if (numbers[0] && numbers[1] && numbers[2])
    return {{dtype, {range_length(context, *numbers[0], *numbers[1], *numbers[2])}}};
  const auto* start = context.elements(0);
  const auto* limit = context.elements(1);
  const auto* step = context.elements(2);
  ir::Dim n = context.graph.fresh_symbol();
  if (start && limit && step) {
    const auto length = context.values.apply(context.graph, "Sub", (*limit)[0], (*start)[0]);
    const ir::Dim delta = (*step)[0];
    if (delta == ir::Dim(0)) context.fail("the step is 0");
    if (length && length->is_constant() && delta.is_constant())
      n = range_length(context, std::int64_t{0}, length->constant(), delta.constant());
    else if (length && delta == ir::Dim(1))
      n = *length;
  }
  return {{dtype, {n}}};
}
std::vector<ir::Tensor> evaluate_range(const EvaluateContext& context) {
  const bool by_type = context.inputs.empty();
  const std::int64_t n = by_type
                             ? context.result_sizes()[0]
                             : range_length(context, context.in(0), context.in(1), context.in(2));
  const auto values = [&]<class T>(T) {
    const auto number = [&](std::size_t i, std::string_view key, std::int64_t default_value) {
      return by_type ? static_cast<T>(context.node.int_attribute(key, default_value))
                     : Elements<T>(context.in(i))[0];
    };
    const T start = number(0, "start", 0), step = number(2, "step", 1);
    std::vector<T> out(n);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = plus(start, times(static_cast<T>(i), step));
    return make_tensor<T>({n}, std::move(out), context.node.output()->type.dtype);
  };
  // floats are rounded once
  return {ir::is_float(context.node.output()->type.dtype) ? values(double{})
                                                          : values(std::int64_t{})};
}

std::vector<ir::Dim> sizes_attribute(const ir::Node& node) {
  return ir::parse_shape(node.string_attribute("values")).value();
}
std::vector<ir::Type> infer_sizes(InferContext& context) {
  const ir::Type& type = context.node.output()->type;
  const auto count = std::ssize(sizes_attribute(context.node));
  if (ir::is_float(type.dtype) || ir::element_count(type.shape) != ir::Dim(count))
    context.fail("the result {} does not hold {} sizes", ir::str(type), count);
  return {type};
}
std::vector<SymbolicElements> values_sizes(InferContext& context) {
  return {sizes_attribute(context.node)};
}
std::vector<ir::Tensor> evaluate_sizes(const EvaluateContext& context) {
  return {ir::Tensor::of<std::int64_t>(
              context.result_sizes(), ir::evaluate(sizes_attribute(context.node), context.bindings))
              .converted(context.node.output()->type.dtype)};
}

}  // namespace

std::vector<OpDef> shape_ops() {
  return {
      op("Shape", 1, 1, {{types::all}}, infer_shape, evaluate_shape, values_shape),
      op("Size", 1, 1, {{types::all}}, infer_size, evaluate_size, values_size),
      op("Reshape", 1, 2, {{types::all}, {types::indices}}, infer_reshape, evaluate_reshape,
         move_first, {.moves_elements = true}),
      op("Expand", 1, 2, {{types::all}, {types::indices}}, infer_expand, evaluate_expand,
         move_first, {.by_element = true, .moves_elements = true}),
      op("Squeeze", 1, 1, {{types::all}}, infer_squeeze, evaluate_squeeze, move_first,
         {.moves_elements = true}),
      op("Unsqueeze", 1, 1, {{types::all}}, infer_unsqueeze, evaluate_by_type, move_first,
         {.moves_elements = true}),
      op("Flatten", 1, 1, {{types::all}}, infer_flatten, evaluate_by_type, nullptr,
         {.moves_elements = true}),
      op("Range", 0, 3,
         {{TypeSet{ir::DType::f32, ir::DType::f64, ir::DType::i16, ir::DType::i32, ir::DType::i64},
           'T'}},
         infer_range, evaluate_range),
      own_op(operands::sizes::op, {}, operands::sizes::names, infer_sizes, evaluate_sizes, {},
             values_sizes),
  };
}

}  // namespace bertcl::ops
