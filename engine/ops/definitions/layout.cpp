// SPDX-License-Identifier: Apache-2.0
// Operators that rearrange elements: Transpose, Concat, Split, Slice, Pad, Tile.
// Slice {axes, starts, steps} and Tile without their other operands take the extents from their
// result type.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

std::vector<ir::Type> infer_transpose(InferContext& context) {
  const ir::Type& in = context.type(0);
  const auto& perm = context.node.ints_attribute("perm");
  std::vector<bool> seen(in.shape.size(), false);
  ir::Type out{in.dtype, {}};
  for (const std::int64_t p : perm) {
    if (p < 0 || p >= std::ssize(seen) || seen[p])
      context.fail("perm is not a permutation of the dimensions");
    seen[p] = true;
    out.shape.push_back(in.shape[p]);
  }
  if (perm.size() != in.shape.size())
    context.fail("perm has {} entries for a tensor of rank {}", perm.size(), in.shape.size());
  return {out};
}
std::vector<ir::Tensor> evaluate_transpose(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const ir::Sizes dense = dense_strides(x.shape());
  ir::Sizes sizes, strides;
  for (const std::int64_t p : context.node.ints_attribute("perm")) {
    sizes.push_back(x.shape().at(p));
    strides.push_back(dense.at(p));
  }
  return {gather_strided(x, sizes, strides)};
}

std::vector<ir::Type> infer_concat(InferContext& context) {
  ir::Type out = context.type(0);
  const auto axis = context.axis("axis", 0, out.shape.size());
  for (std::size_t i = 1; i < context.node.inputs.size(); ++i) {
    const ir::Type& in = context.type(i);
    if (in.dtype != out.dtype || in.shape.size() != out.shape.size())
      context.fail("'{}' {} cannot be concatenated with {}", context.node.input(i)->name,
                   ir::str(in), ir::str(out));
    for (std::size_t d = 0; d < out.shape.size(); ++d) {
      if (d == static_cast<std::size_t>(axis)) {
        const auto sum = context.values.apply(context.graph, "Add", out.shape[d], in.shape[d]);
        if (sum->is_constant() && sum->constant() < 0)
          context.fail("extents {} and {} add up to a negative extent", out.shape[d].str(),
                       in.shape[d].str());
        out.shape[d] = *sum;
      } else {
        out.shape[d] = same_extent(context, out.shape[d], in.shape[d],
                                   fmt::format("extent {} of the operands", d));
      }
    }
  }
  return {out};
}
std::vector<ir::Tensor> evaluate_concat(const EvaluateContext& context) {
  const auto axis = context.axis("axis", 0, context.in(0).shape().size());
  ir::Sizes sizes = context.in(0).shape();
  sizes[axis] = 0;
  for (std::size_t i = 0; i < context.inputs.size(); ++i)
    sizes[axis] += context.in(i).shape().at(axis);
  ir::Tensor out = ir::Tensor::zeros(context.in(0).dtype(), sizes);
  std::byte* target = out.mutable_bytes().data();
  // Rows of all operands in turn; a row is everything from the axis on.
  const std::int64_t rows = ir::element_count(ir::Sizes{sizes.begin(), sizes.begin() + axis});
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::size_t i = 0; i < context.inputs.size(); ++i) {
      const auto bytes = context.in(i).bytes();
      const std::size_t n = bytes.size() / static_cast<std::size_t>(rows);
      std::copy_n(bytes.data() + static_cast<std::size_t>(row) * n, n, target);
      target += n;
    }
  return {out};
}

/// Split {axis, split = extents}; the importer writes the extents out.
std::vector<ir::Type> infer_split(InferContext& context) {
  const ir::Type& in = context.type(0);
  const auto axis = context.axis("axis", 0, in.shape.size());
  const auto& extents = context.node.ints_attribute("split");
  if (extents.size() != context.node.outputs.size())
    context.fail("{} extents for {} results", extents.size(), context.node.outputs.size());
  std::int64_t sum = 0;
  std::vector<ir::Type> types;
  for (const std::int64_t n : extents) {
    if (n < 0) context.fail("an extent is negative");
    if (__builtin_add_overflow(sum, n, &sum))
      context.fail("the sum of the extents overflows 64 bits");
    types.push_back(in);
    types.back().shape[axis] = n;
  }
  if (in.shape[axis].is_constant() && in.shape[axis].constant() != sum)
    context.fail("the extents sum to {}, axis {} of {} has {}", sum, axis, ir::str(in.shape),
                 in.shape[axis].str());
  same_extent(context, in.shape[axis], sum, "the axis");
  return types;
}
std::vector<ir::Tensor> evaluate_split(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto axis = context.axis("axis", 0, x.shape().size());
  const ir::Sizes strides = dense_strides(x.shape());
  const auto& extents = context.node.ints_attribute("split");
  // infer_split() has refused negative extents and sums beyond 64 bits.
  const std::int64_t sum = std::accumulate(extents.begin(), extents.end(), std::int64_t{0});
  if (sum != x.shape()[axis])
    context.fail("the extents sum to {}, axis {} of [{}] has {}", sum, axis,
                 fmt::join(x.shape(), ", "), x.shape()[axis]);
  std::vector<ir::Tensor> results;
  std::int64_t at = 0;
  for (const std::int64_t n : extents) {
    ir::Sizes sizes = x.shape();
    sizes[axis] = n;
    results.push_back(gather_strided(x, sizes, strides, at * strides[axis]));
    at += n;
  }
  return results;
}

/// Start, end and step along one axis of `extent`, as ONNX clamps them; the number of elements.
struct Steps {
  std::int64_t start, step, count;
};
Steps clamp_slice(std::int64_t start, std::int64_t end, std::int64_t step, std::int64_t extent) {
  if (start < 0) start += extent;
  if (end < 0 && end >= -extent) end += extent;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, extent);
    end = std::clamp<std::int64_t>(end, 0, extent);
    return {start, step, std::max<std::int64_t>((end - start - 1) / step + (end > start), 0)};
  }
  start = std::clamp<std::int64_t>(start, -1, extent - 1);
  end = std::clamp<std::int64_t>(end, -1, extent - 1);
  return {start, step, end < start ? (end - start + 1) / step + 1 : 0};  // -step may be none
}

std::vector<ir::Type> infer_slice(InferContext& context) {
  if (context.node.inputs.size() == 1) return {context.node.output()->type};
  if (context.node.inputs.size() < 3) context.fail("starts and ends are missing");
  ir::Type type = context.type(0);
  const auto rank = std::ssize(type.shape);
  const auto* starts = context.elements(1);
  const auto* ends = context.elements(2);
  const auto axes = context.has(3) ? context.values.constants(context.node.input(3))
                                   : std::optional<std::vector<std::int64_t>>{};
  const auto steps = context.has(4) ? context.values.constants(context.node.input(4))
                                    : std::optional<std::vector<std::int64_t>>{};
  if ((context.has(3) && !axes) || (context.has(4) && !steps))
    context.fail("axes and steps must be constant");
  const auto count = ir::element_count(context.shape(1));
  if (!count.is_constant() || count.constant() > rank || (axes && ir::Dim(axes->size()) != count) ||
      (steps && ir::Dim(steps->size()) != count) || ir::element_count(context.shape(2)) != count)
    context.fail("starts, ends, axes and steps must have the same length");
  for (std::int64_t i = 0; i < count.constant(); ++i) {
    const std::size_t axis = context.axis(axes ? (*axes)[i] : i, type.shape.size());
    const std::int64_t step = steps ? (*steps)[i] : 1;
    if (step == 0) context.fail("a step is 0");
    ir::Dim& d = type.shape[axis];
    if (!starts || !ends) {
      d = context.graph.fresh_symbol();
      continue;
    }
    constexpr std::int64_t huge = std::numeric_limits<std::int32_t>::max();
    const ir::Dim start = (*starts)[i], end = (*ends)[i];
    if (d.is_constant() && start.is_constant() && end.is_constant()) {
      d = clamp_slice(start.constant(), end.constant(), step, d.constant()).count;
    } else if (step == 1 && start.is_constant() && start.constant() < 0 &&
               start.constant() >= -huge && end.is_constant() &&
               (end.constant() >= huge || end.constant() <= 0)) {
      // The last ones, as many as there are: each run checks it (Plan::at_most).
      const std::int64_t after = end.constant() >= huge ? 0 : end.constant();
      d = end.constant() == 0
              ? 0
              : std::max<std::int64_t>(std::max(after, -huge) - start.constant(), 0);
    } else if (step == 1 && (!end.is_constant() || end.constant() >= huge || !d.is_constant())) {
      // An end is assumed to be within the axis, which each run checks (Plan::at_most); 2^31 - 1 or
      // more means the end of the axis.
      ir::Dim last = end;
      if (end.is_constant() && end.constant() >= huge) last = d;
      if (end.is_constant() && end.constant() < 0)
        last = *context.values.apply(context.graph, "Sub", d,
                                     ir::Dim(-std::max(end.constant(), -huge)));
      d = start.is_constant() && start.constant() < 0
              ? context.graph.fresh_symbol()
              : *context.values.apply(context.graph, "Sub", last, start);
      if (d.is_constant()) d = std::max<std::int64_t>(d.constant(), 0);
    } else {
      d = context.graph.fresh_symbol();
    }
  }
  return {type};
}
std::vector<ir::Tensor> evaluate_slice_op(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const bool by_type = context.inputs.size() == 1;
  const auto rank = std::ssize(x.shape());
  const auto starts = by_type ? context.node.ints_attribute("starts") : context.in(1).to_ints();
  std::vector<std::int64_t> axes, steps(starts.size(), 1);
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (by_type) {
    axes = context.node.ints_attribute("axes");
    steps = context.node.ints_attribute("steps");
  }
  if (context.has(3)) axes = context.in(3).to_ints();
  if (context.has(4)) steps = context.in(4).to_ints();
  ir::Sizes sizes = by_type ? context.result_sizes() : x.shape();
  ir::Sizes strides = dense_strides(x.shape());
  std::int64_t base = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t a = axes.at(i) < 0 ? axes[i] + rank : axes[i];
    const std::int64_t extent = x.shape().at(a);
    Steps s{starts[i] < 0 ? starts[i] + extent : starts[i], steps.at(i), sizes[a]};
    if (by_type && s.step < 0) s.start = std::min(s.start, extent - 1);
    if (!by_type) s = clamp_slice(starts[i], context.in(2).to_ints().at(i), steps.at(i), extent);
    const std::int64_t last = s.start + (s.count - 1) * s.step;
    if (s.count > 0 && (s.start < 0 || last < 0 || s.start >= extent || last >= extent))
      context.fail("elements {} to {} are out of range for axis {}, which has {}", s.start, last, a,
                   extent);
    sizes[a] = s.count;
    base += s.count > 0 ? s.start * strides[a] : 0;
    if (s.count > 1) strides[a] *= s.step;  // less than the extent then
  }
  return {gather_strided(x, sizes, strides, base)};
}

/// Pad {pads = begins then ends} with a constant; the value is operand 1, absent for 0.
std::vector<ir::Type> infer_pad(InferContext& context) {
  ir::Type type = context.type(0);
  const auto& pads = context.node.ints_attribute("pads");
  const std::size_t rank = type.shape.size();
  if (pads.size() != 2 * rank) context.fail("{} pads for a tensor of rank {}", pads.size(), rank);
  for (std::size_t d = 0; d < rank; ++d) {
    std::int64_t more = 0;
    if (__builtin_add_overflow(pads[d], pads[rank + d], &more))
      context.fail("the pads overflow 64 bits");
    type.shape[d] = *context.values.apply(context.graph, "Add", type.shape[d], more);
    if (type.shape[d].is_constant() && type.shape[d].constant() < 0)
      context.fail("negative pads exceed the axis");
  }
  return {type};
}
std::vector<ir::Tensor> evaluate_pad(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto& pads = context.node.ints_attribute("pads");
  const std::size_t rank = x.shape().size();
  ir::Sizes sizes = x.shape();
  for (std::size_t d = 0; d < rank; ++d) sizes[d] += pads.at(d) + pads.at(rank + d);
  const ir::Sizes in_strides = dense_strides(x.shape());
  return with_compute_type(x.dtype(), [&]<class T>(T) {
    const Elements<T> in(x);
    const T fill = context.has(1) ? Elements<T>(context.in(1))[0] : T{};
    std::vector<T> out;
    std::int64_t n = 0;
    walk<1>(sizes, {dense_strides(sizes)}, [&](const auto&) {
      std::int64_t rest = n++, offset = 0;
      bool inside = true;
      for (std::size_t d = rank; d-- > 0;) {
        const std::int64_t i = minus(rest % sizes[d], pads[d]);  // outside where it wraps
        rest /= sizes[d];
        inside = inside && i >= 0 && i < x.shape()[d];
        if (inside) offset += i * in_strides[d];
      }
      out.push_back(inside ? in[offset] : fill);
    });
    return std::vector{make_tensor<T>(sizes, std::move(out), x.dtype())};
  });
}

std::vector<ir::Type> infer_tile(InferContext& context) {
  if (context.node.inputs.size() == 1) return {context.node.output()->type};
  ir::Type type = context.type(0);
  const auto* repeats = context.elements(1);
  if (repeats && repeats->size() != type.shape.size())
    context.fail("{} repeats for a tensor of rank {}", repeats->size(), type.shape.size());
  for (std::size_t d = 0; repeats && d < type.shape.size(); ++d)
    if ((*repeats)[d].is_constant() && (*repeats)[d].constant() < 0)
      context.fail("{} repeats of dimension {}", (*repeats)[d].str(), d);
  for (std::size_t d = 0; d < type.shape.size(); ++d)
    type.shape[d] = repeats ? type.shape[d] * (*repeats)[d] : context.graph.fresh_symbol();
  return {type};
}
std::vector<ir::Tensor> evaluate_tile(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  ir::Sizes sizes = x.shape();
  if (context.has(1)) {
    const auto repeats = context.in(1).to_ints();
    for (std::size_t d = 0; d < sizes.size(); ++d) sizes[d] *= repeats.at(d);
  } else {
    sizes = context.result_sizes();
  }
  ir::Sizes split, strides;  // each extent as (repeats, extent)
  const ir::Sizes dense = dense_strides(x.shape());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::int64_t extent = x.shape().at(d);
    split.insert(split.end(), {extent == 0 ? 0 : sizes[d] / extent, extent});
    strides.insert(strides.end(), {0, dense[d]});
  }
  return {gather_strided(x, split, strides).reshaped(sizes)};
}

}  // namespace

std::vector<OpDef> layout_ops() {
  return {
      op("Transpose", 1, 1, {{types::all}}, infer_transpose, evaluate_transpose, move_first,
         {.moves_elements = true}),
      op("Concat", 1, kAnyNumber, {{types::all, 'T'}}, infer_concat, evaluate_concat, move_all),
      op("Split", 1, 1, {{types::all}}, infer_split, evaluate_split, move_first,
         {.moves_elements = true}),
      op("Slice", 1, 5, {{types::all}, {types::indices, 'I'}}, infer_slice, evaluate_slice_op,
         move_first, {.moves_elements = true}),
      op("Pad", 1, 2, {{types::all, 'T'}}, infer_pad, evaluate_pad),
      op("Tile", 1, 2, {{types::all}, {types::indices}}, infer_tile, evaluate_tile, move_first,
         {.moves_elements = true}),
  };
}

}  // namespace bertcl::ops
