// SPDX-License-Identifier: Apache-2.0
// Shared by the definitions of bertcl's own ops: quantized operands and results.
#include "ops/fused.hpp"

#include <algorithm>

#include "ops/quantization.hpp"

namespace bertcl::ops {

OpDef own_op(const char* name, std::vector<OperandConstraint> types,
             std::span<const std::string_view> operands, Infer infer, Evaluate evaluate,
             Traits traits, Values values) {
  const auto optional = [](std::string_view operand) { return operand.ends_with('?'); };
  const auto required = std::ranges::find_if(operands, optional);
  OpDef def = op(name, static_cast<std::size_t>(required - operands.begin()), operands.size(),
                 std::move(types), infer, evaluate, values, std::move(traits));
  def.is_own = true;
  def.operands = operands;
  return def;
}

void check_vector(const InferContext& context, std::size_t i, const ir::Dim& n,
                  bool or_one_element) {
  if (!context.has(i)) return;
  const ir::Shape& shape = context.shape(i);
  if ((shape.size() == 1 && shape[0] == n) ||
      (or_one_element && element_count(shape) == ir::Dim(1)))
    return;
  context.fail("{} does not have {} columns", context.described(i), n.str());
}

ir::DType type_of_result(const InferContext& context, std::size_t i, std::size_t scale) {
  const ir::Value& result = *context.node.outputs.at(i);
  if (!context.has(scale))
    return result.type.dtype == ir::DType::bf16 ? ir::DType::bf16 : ir::DType::f32;
  if (!ir::is_int8(result.type.dtype))
    context.fail("'{}' has the scale '{}' but is {}", result.name, context.node.input(scale)->name,
                 ir::str(result.type));
  return result.type.dtype;
}

std::vector<float> real_numbers(const EvaluateContext& context, std::size_t value,
                                std::size_t scale, std::size_t zero_point) {
  const Elements<float> q(context.in(value));
  std::vector<float> y(q.data(), q.data() + context.in(value).size());
  if (!context.has(scale)) return y;
  const Elements<float> scales(context.in(scale));
  const std::size_t n = static_cast<std::size_t>(context.in(scale).size());
  const std::vector<double> zeros =
      context.has(zero_point) ? context.in(zero_point).to_doubles() : std::vector<double>{0};
  for (std::size_t i = 0; i < y.size(); ++i)
    y[i] = (y[i] - static_cast<float>(zeros[i % zeros.size()])) *
           scales[static_cast<std::int64_t>(i % n)];
  return y;
}

std::vector<std::pair<std::int64_t, std::int64_t>> sequence_rows(const EvaluateContext& context,
                                                                 std::size_t offsets) {
  std::vector<std::pair<std::int64_t, std::int64_t>> rows;
  if (context.has(offsets)) {
    const auto ends = context.in(offsets).to_ints();
    for (std::size_t b = 0; b + 1 < ends.size(); ++b) rows.emplace_back(ends[b], ends[b + 1]);
  } else {
    const ir::Sizes& sizes = context.in(0).shape();
    const std::int64_t seq = sizes.size() > 2 ? sizes[1] : 1;
    for (std::int64_t b = 0; b < sizes[0]; ++b) rows.emplace_back(b * seq, (b + 1) * seq);
  }
  return rows;
}

ir::Tensor result_of(const EvaluateContext& context, std::size_t i, const ir::Sizes& sizes,
                     const std::vector<double>& y, std::size_t scale, std::size_t zero_point) {
  const ir::DType type = context.node.outputs.at(i)->type.dtype;
  if (!context.has(scale))
    return make_tensor<double>(sizes, y, type == ir::DType::bf16 ? type : ir::DType::f32);
  const Elements<float> scales(context.in(scale));
  const std::size_t n = static_cast<std::size_t>(context.in(scale).size());
  const std::vector<std::int64_t> zeros =
      context.has(zero_point) ? context.in(zero_point).to_ints() : std::vector<std::int64_t>{0};
  std::vector<std::int64_t> q(y.size());
  for (std::size_t j = 0; j < y.size(); ++j)
    q[j] = quantize_scaled(static_cast<float>(y[j]) / scales[static_cast<std::int64_t>(j % n)],
                           zeros[j % zeros.size()], type);
  return make_tensor<std::int64_t>(sizes, std::move(q), type);
}

}  // namespace bertcl::ops
