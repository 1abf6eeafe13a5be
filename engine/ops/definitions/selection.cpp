// SPDX-License-Identifier: Apache-2.0
// Operators that choose among elements: Where, Trilu, ArgMax, ArgMin.
#include <fmt/format.h>

#include <algorithm>

#include "ops/support.hpp"

namespace bertcl::ops {
namespace {

std::vector<ir::Type> infer_where(InferContext& context) {
  const ir::Shape branches = broadcast(context, context.shape(1), context.shape(2));
  return {{context.type(1).dtype, broadcast(context, context.shape(0), branches)}};
}

std::vector<ir::Tensor> evaluate_where(const EvaluateContext& context) {
  const ir::Tensor& condition = context.in(0);
  const ir::Tensor& yes = context.in(1);
  const ir::Tensor& no = context.in(2);
  const ir::Sizes sizes =
      broadcast(context, condition.shape(), broadcast(context, yes.shape(), no.shape()));
  return with_compute_type(yes.dtype(), [&]<class T>(T) {
    const Elements<T> a(yes), b(no);
    const Elements<std::int64_t> choose(condition);
    std::vector<T> out;
    walk<3>(sizes,
            {broadcast_strides(condition.shape(), sizes), broadcast_strides(yes.shape(), sizes),
             broadcast_strides(no.shape(), sizes)},
            [&](const auto& at) { out.push_back(choose[at[0]] ? a[at[1]] : b[at[2]]); });
    return std::vector{make_tensor<T>(sizes, std::move(out), yes.dtype())};
  });
}
std::vector<SymbolicElements> values_where(InferContext& context) {
  return move_elements(context, 0b110u);
}

std::vector<ir::Type> infer_trilu(InferContext& context) {
  if (context.shape(0).size() < 2)
    context.fail("the input has shape " + ir::str(context.shape(0)) + ", expected rank 2 or more");
  return {context.type(0)};
}
/// upper = 1 keeps elements with column - row >= k, upper = 0 those with column - row <= k.
std::vector<ir::Tensor> evaluate_trilu(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const bool upper = context.node.int_attribute("upper", 1) != 0;
  const std::int64_t k = context.has(1) ? context.in(1).to_ints().at(0) : 0;
  const std::int64_t columns = x.shape().back(), rows = x.shape()[x.shape().size() - 2];
  return with_compute_type(x.dtype(), [&]<class T>(T) {
    const Elements<T> in(x);
    std::vector<T> out(in.data(), in.data() + x.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto at = static_cast<std::int64_t>(i);
      const std::int64_t diagonal = at % columns - at / columns % rows;
      if (upper ? diagonal < k : diagonal > k) out[i] = T{};
    }
    return std::vector{make_tensor<T>(x.shape(), std::move(out), x.dtype())};
  });
}

std::vector<ir::Type> infer_arg(InferContext& context) {
  ir::Type type{ir::DType::i64, context.shape(0)};
  const auto axis = context.axis("axis", 0, type.shape.size());
  if (context.node.int_attribute("keepdims", 1))
    type.shape[axis] = 1;
  else
    type.shape.erase(type.shape.begin() + axis);
  return {type};
}
template <bool Max>
std::vector<ir::Tensor> evaluate_arg(const EvaluateContext& context) {
  const ir::Tensor& x = context.in(0);
  const auto axis = context.axis("axis", 0, x.shape().size());
  const bool last = context.node.int_attribute("select_last_index", 0) != 0;
  const std::int64_t n = x.shape()[axis], stride = dense_strides(x.shape())[axis];
  if (n == 0) context.fail("the axis is empty");
  ir::Sizes sizes = x.shape();
  sizes[axis] = 1;
  std::vector<std::int64_t> out;
  with_compute_type(x.dtype(), [&]<class T>(T) {
    const Elements<T> in(x);
    walk<1>(sizes, {dense_strides(x.shape())}, [&](const auto& at) {
      std::int64_t best = 0;
      for (std::int64_t i = 1; i < n; ++i) {
        const T v = in[at[0] + i * stride], b = in[at[0] + best * stride];
        if (is_nan(b)) break;
        if ((Max ? v > b : v < b) || (last && v == b) || is_nan(v)) best = i;
      }
      out.push_back(best);
    });
    return 0;
  });
  if (!context.node.int_attribute("keepdims", 1)) sizes.erase(sizes.begin() + axis);
  return {ir::Tensor::of<std::int64_t>(sizes, std::move(out))};
}

std::vector<std::int64_t> searched_axis(const ir::Node& node) {
  return {node.int_attribute("axis", 0)};
}

}  // namespace

std::vector<OpDef> selection_ops() {
  return {
      op("Where", 3, 3, {{types::truth}, {types::all, 'T'}}, infer_where, evaluate_where,
         values_where, {.by_element = true}),
      op("Trilu", 1, 2, {{types::all}, {types::indices}}, infer_trilu, evaluate_trilu, nullptr,
         {.by_element = true}),
      op("ArgMax", 1, 1, {{types::numbers}}, infer_arg, evaluate_arg<true>, nullptr,
         {.mixed_axes = searched_axis}),
      op("ArgMin", 1, 1, {{types::numbers}}, infer_arg, evaluate_arg<false>, nullptr,
         {.mixed_axes = searched_axis}),
  };
}

}  // namespace bertcl::ops
