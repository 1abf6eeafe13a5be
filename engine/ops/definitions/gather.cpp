// SPDX-License-Identifier: Apache-2.0
// Operators that read at computed positions: Gather, GatherElements, GatherND, NonZero, CumSum.
#include <fmt/format.h>

#include <algorithm>

#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

/// An index counted from the start; throws if it is outside.
std::int64_t index_within(const EvaluateContext& context, std::int64_t i, std::int64_t extent) {
  if (i < -extent || i >= extent)
    context.fail("index {} is out of range for an axis of {}", i, extent);
  return i < 0 ? i + extent : i;
}

std::vector<ir::Type> infer_gather(InferContext& context) {
  ir::Type type = context.type(0);
  const auto axis = context.axis("axis", 0, type.shape.size());
  const ir::Shape& indices = context.shape(1);
  type.shape.erase(type.shape.begin() + axis);
  type.shape.insert(type.shape.begin() + axis, indices.begin(), indices.end());
  return {type};
}
std::vector<ir::Tensor> evaluate_gather(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto axis = context.axis("axis", 0, x.shape().size());
  const std::int64_t extent = x.shape()[axis];
  const auto indices = context.in(1).to_ints();
  ir::Sizes sizes = x.shape();
  sizes.erase(sizes.begin() + axis);
  sizes.insert(sizes.begin() + axis, context.in(1).shape().begin(), context.in(1).shape().end());
  ir::Tensor out = ir::Tensor::zeros(x.dtype(), sizes);
  const std::int64_t rows =
      ir::element_count(ir::Sizes{x.shape().begin(), x.shape().begin() + axis});
  const auto row =
      static_cast<std::size_t>(dense_strides(x.shape())[axis]) * ir::size_of(x.dtype());
  std::byte* target = out.mutable_bytes().data();
  for (std::int64_t r = 0; r < rows; ++r)
    for (const std::int64_t i : indices) {
      const auto from = static_cast<std::size_t>(r * extent + index_within(context, i, extent));
      std::copy_n(x.bytes().data() + from * row, row, target);
      target += row;
    }
  return {out};
}

[[noreturn]] void fail_too_many(const auto& context, std::int64_t indices, std::size_t axis,
                                std::int64_t data) {
  context.fail("the indices have {} entries along axis {}, the data has {}", indices, axis, data);
}

std::vector<ir::Type> infer_gather_elements(InferContext& context) {
  if (context.shape(0).size() != context.shape(1).size())
    context.fail("data and indices must have the same rank");
  const ir::Shape &data = context.shape(0), &indices = context.shape(1);
  const auto axis = static_cast<std::size_t>(context.axis("axis", 0, data.size()));
  for (std::size_t d = 0; d < data.size(); ++d)
    if (d != axis && data[d].is_constant() && indices[d].is_constant() && data[d] < indices[d])
      fail_too_many(context, indices[d].constant(), d, data[d].constant());
  return {{context.type(0).dtype, indices}};
}
std::vector<ir::Tensor> evaluate_gather_elements(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto axis = context.axis("axis", 0, x.shape().size());
  const auto indices = context.in(1).to_ints();
  const ir::Sizes& sizes = context.in(1).shape();
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (d != static_cast<std::size_t>(axis) && sizes[d] > x.shape()[d])
      fail_too_many(context, sizes[d], d, x.shape()[d]);
  ir::Sizes strides = dense_strides(x.shape());
  const std::int64_t step = strides[axis];
  strides[axis] = 0;
  std::size_t n = 0;
  return with_compute_type(x.dtype(), [&]<class T>(T) {
    const Elements<T> in(x);
    std::vector<T> out;
    walk<1>(sizes, {strides}, [&](const auto& at) {
      out.push_back(in[at[0] + step * index_within(context, indices[n++], x.shape()[axis])]);
    });
    return std::vector{make_tensor<T>(sizes, std::move(out), x.dtype())};
  });
}

std::vector<ir::Type> infer_gather_nd(InferContext& context) {
  const ir::Type& data = context.type(0);
  const ir::Shape& indices = context.shape(1);
  const std::int64_t batch = context.node.int_attribute("batch_dims", 0);
  if (indices.empty() || !indices.back().is_constant())
    context.fail("the last extent of the indices must be constant");
  const std::int64_t depth = indices.back().constant();
  if (batch < 0 || depth < 1 || batch >= std::ssize(indices) ||
      batch + depth > std::ssize(data.shape))
    context.fail("indices {} do not match data {}", ir::str(indices), ir::str(data.shape));
  for (std::int64_t d = 0; d < batch; ++d)
    same_extent(context, data.shape[d], indices[d], fmt::format("extent {} of the operands", d));
  ir::Type type{data.dtype, {indices.begin(), indices.end() - 1}};
  type.shape.insert(type.shape.end(), data.shape.begin() + batch + depth, data.shape.end());
  return {type};
}
std::vector<ir::Tensor> evaluate_gather_nd(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto indices = context.in(1).to_ints();
  const ir::Sizes& shape = context.in(1).shape();
  const std::int64_t batch = context.node.int_attribute("batch_dims", 0), depth = shape.back();
  const ir::Sizes strides = dense_strides(x.shape());
  const std::int64_t batches =
      ir::element_count(ir::Sizes{x.shape().begin(), x.shape().begin() + batch});
  if (batches != ir::element_count(ir::Sizes{shape.begin(), shape.begin() + batch}))
    context.fail("the batch extents of data and indices differ");
  const std::int64_t block =
      ir::element_count(ir::Sizes{x.shape().begin() + batch + depth, x.shape().end()});
  const std::int64_t tuples = std::ssize(indices) / depth;
  ir::Sizes sizes(shape.begin(), shape.end() - 1);
  sizes.insert(sizes.end(), x.shape().begin() + batch + depth, x.shape().end());
  ir::Tensor out = ir::Tensor::zeros(x.dtype(), sizes);
  std::byte* target = out.mutable_bytes().data();
  const std::size_t bytes = static_cast<std::size_t>(block) * ir::size_of(x.dtype());
  for (std::int64_t t = 0; t < tuples; ++t) {
    std::int64_t offset = batch > 0 ? t / (tuples / batches) * strides[batch - 1] : 0;
    for (std::int64_t k = 0; k < depth; ++k)
      offset +=
          strides[batch + k] * index_within(context, indices[t * depth + k], x.shape()[batch + k]);
    std::copy_n(x.bytes().data() + static_cast<std::size_t>(offset) * ir::size_of(x.dtype()), bytes,
                target);
    target += bytes;
  }
  return {out};
}

/// OneHot(indices, depth, [off, on]) {axis}: a new axis of `depth` that is `on` at the index and
/// `off` elsewhere; nowhere `on` for an index outside.
std::vector<ir::Type> infer_one_hot(InferContext& context) {
  const auto* depth = context.elements(1);
  if (!depth || depth->size() != 1) context.fail("the depth must be a known size");
  if (depth->front().is_constant() && depth->front().constant() < 0)
    context.fail("the depth is {}", depth->front().str());
  if (ir::element_count(context.shape(2)) != ir::Dim(2))
    context.fail("values must have two elements (off_value, on_value)");
  ir::Type type{context.type(2).dtype, context.shape(0)};
  const auto axis = context.axis("axis", -1, type.shape.size() + 1);
  type.shape.insert(type.shape.begin() + axis, depth->front());
  return {type};
}
std::vector<ir::Tensor> evaluate_one_hot(const EvaluateContext& context) {
  const auto indices = context.in(0).to_ints();
  const std::int64_t depth = context.in(1).to_ints().at(0);
  ir::Sizes sizes = context.in(0).shape();
  const auto axis = context.axis("axis", -1, sizes.size() + 1);
  const std::int64_t inner = ir::element_count(ir::Sizes(sizes.begin() + axis, sizes.end()));
  sizes.insert(sizes.begin() + axis, depth);
  const ir::DType dtype = context.in(2).dtype();
  return with_compute_type(dtype, [&]<class T>(T) {
    const Elements<T> values(context.in(2));
    std::vector<T> out(ir::element_count(sizes), values[0]);
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::int64_t index = indices[i] < 0 ? indices[i] + depth : indices[i];
      const auto at = static_cast<std::int64_t>(i);
      if (index >= 0 && index < depth)
        out[(at / inner * depth + index) * inner + at % inner] = values[1];
    }
    return std::vector{make_tensor<T>(sizes, std::move(out), dtype)};
  });
}

/// The number of non-zeros is known if the operand is one non-zero number expanded.
std::vector<ir::Type> infer_non_zero(InferContext& context) {
  const ir::Shape& in = context.shape(0);
  const ir::Node* producer = context.node.input(0)->producer;
  const ir::Value* repeated = producer && producer->op == "Expand" ? producer->input(0) : nullptr;
  const bool all = repeated && repeated->is_constant() && repeated->constant->size() == 1 &&
                   repeated->constant->to_doubles()[0] != 0.0;
  return {{ir::DType::i64,
           {std::ssize(in), all ? ir::element_count(in) : context.graph.fresh_symbol()}}};
}
std::vector<ir::Tensor> evaluate_non_zero(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto values = x.to_doubles();
  const ir::Sizes strides = dense_strides(x.shape());
  std::vector<std::int64_t> found;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != 0.0) found.push_back(static_cast<std::int64_t>(i));
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < strides.size(); ++d)
    for (const std::int64_t i : found) out.push_back(i / strides[d] % x.shape()[d]);
  return {ir::Tensor::of<std::int64_t>({std::ssize(strides), std::ssize(found)}, std::move(out))};
}

/// CumSum(x, axis) {exclusive, reverse}
std::vector<ir::Tensor> evaluate_cum_sum(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const std::size_t axis = context.axis(context.in(1).to_ints().at(0), x.shape().size());
  const bool exclusive = context.node.int_attribute("exclusive", 0) != 0;
  const bool reverse = context.node.int_attribute("reverse", 0) != 0;
  const std::int64_t n = x.shape()[axis], step = dense_strides(x.shape())[axis];
  ir::Sizes lines = x.shape();
  lines[axis] = 1;
  return with_compute_type(x.dtype(), [&]<class T>(T) {
    const Elements<T> in(x);
    std::vector<T> out(x.size());
    if (n > 0)
      walk<1>(lines, {dense_strides(x.shape())}, [&](const auto& at) {
        T sum{};
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t k = at[0] + (reverse ? n - 1 - i : i) * step;
          const T value = in[k];
          out[k] = exclusive ? sum : plus(sum, value);
          sum = plus(sum, value);
        }
      });
    return std::vector{make_tensor<T>(x.shape(), std::move(out), x.dtype())};
  });
}

/// All axes unless the operand `axis` is a constant in range.
std::vector<std::int64_t> summed_axes(const ir::Node& node) {
  const std::vector<std::int64_t> all = all_axes(node);
  const ir::Value* axis = node.inputs[1];
  if (!axis->is_constant() || axis->constant->size() != 1) return all;
  const std::int64_t given = axis->constant->to_ints().front();
  return ir::axis_within(given, all.size()) ? std::vector{given} : all;
}

}  // namespace

std::vector<OpDef> gather_ops() {
  return {
      op("Gather", 2, 2, {{types::all}, {types::indices}}, infer_gather, evaluate_gather,
         move_first, {.moves_elements = true}),
      op("GatherElements", 2, 2, {{types::all}, {types::indices}}, infer_gather_elements,
         evaluate_gather_elements, move_first, {.moves_elements = true}),
      op("GatherND", 2, 2, {{types::all}, {types::indices}}, infer_gather_nd, evaluate_gather_nd,
         move_first, {.moves_elements = true}),
      op("OneHot", 3, 3, {{types::numbers}, {types::numbers}, {types::all}}, infer_one_hot,
         evaluate_one_hot),
      op("NonZero", 1, 1, {{types::all}}, infer_non_zero, evaluate_non_zero),
      op("CumSum", 2, 2, {{types::sums}, {types::indices}}, infer_same, evaluate_cum_sum, nullptr,
         {.mixed_axes = summed_axes}),
  };
}

}  // namespace bertcl::ops
