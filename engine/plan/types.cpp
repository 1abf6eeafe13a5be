// SPDX-License-Identifier: Apache-2.0
// Types, quantization parameters and sizes as kernel arguments.
#include "plan/types.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::plan {

void check_type(const ir::Node& node, ir::DType type, std::initializer_list<ir::DType> supported) {
  if (std::ranges::find(supported, type) != supported.end()) return;
  std::vector<std::string_view> names;
  for (const ir::DType t : supported) names.push_back(ir::name_of(t));
  throw Error(fmt::format("{}: no kernel for element type {} (supported: {})", node.describe(),
                          ir::name_of(type), fmt::join(names, ", ")));
}

std::string kernel_for(std::string_view name, ir::DType type) {
  return fmt::format("{}_{}", name, ir::name_of(type));
}

float scalar_or(const ir::Value* value, float default_value) {
  return value ? static_cast<float>(value->constant->to_doubles().front()) : default_value;
}

std::int32_t zero_point_or_0(const ir::Value* value) {
  return value ? static_cast<std::int32_t>(value->constant->to_ints().front()) : 0;
}

std::vector<float> per_column(const ir::Value* value, std::int64_t columns, float default_value) {
  std::vector<float> result(columns, scalar_or(value, default_value));
  if (!value || value->constant->size() == 1) return result;
  const auto values = value->constant->to_doubles();
  std::transform(values.begin(), values.end(), result.begin(),
                 [](double v) { return static_cast<float>(v); });
  return result;
}

Argument column_constants(Builder& b, std::vector<float> values) {
  const auto count = std::ssize(values);
  return b.constant(ir::Tensor::of({count}, std::move(values)));
}

OutColumns out_columns(Builder& b, const ir::Value* scale, const ir::Value* zero_point,
                       std::int64_t columns) {
  if (!scale) return {};
  std::vector<float> inverse = per_column(scale, columns, 1);
  for (float& s : inverse) s = 1.0f / s;
  const Argument inv_scale = column_constants(b, std::move(inverse));
  return {inv_scale, column_constants(b, per_column(zero_point, columns, 0))};
}

ir::Dim row_count(const ir::Shape& shape) {
  ir::Dim rows(1);
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows = rows * shape[i];
  return rows;
}

}  // namespace bertcl::plan
