// SPDX-License-Identifier: Apache-2.0
// Type codes of the kernels, and parameters of quantization as the kernels take them.
#include "plan/types.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "bertcl/error.hpp"

namespace bertcl::plan {

std::int32_t type_code(ir::DType type) {
  switch (type) {
    case ir::DType::f32:
      return 0;
    case ir::DType::u8:
      return 1;
    case ir::DType::i8:
      return 2;
    case ir::DType::f16:
      return 3;
    case ir::DType::i32:
      return 4;
    case ir::DType::i64:
      return 5;
    case ir::DType::boolean:
      return 6;
    case ir::DType::bf16:
      return 7;
    default:
      break;
  }
  throw Error(
      fmt::format("element type {} has no kernels; f32, f16, i32, i64, u8, i8 and bool have",
                  ir::name_of(type)));
}

namespace {

struct Activation {
  std::string_view name;
  std::int32_t in_epilogue, as_unary;
};
constexpr Activation activations[] = {{"gelu", 1, unary::gelu},
                                      {"gelu_tanh", 2, unary::gelu_tanh},
                                      {"relu", 3, unary::relu},
                                      {"tanh", 4, unary::tanh}};

const Activation& find_activation(const std::string& name) {
  for (const Activation& a : activations)
    if (a.name == name) return a;
  throw Error(fmt::format("unknown activation '{}'", name));
}

}  // namespace

std::int32_t activation_code(const std::string& name) {
  return name.empty() ? 0 : find_activation(name).in_epilogue;
}

std::int32_t unary_code(const std::string& activation) {
  return find_activation(activation).as_unary;
}

float scalar_or(const ir::Value* value, float otherwise) {
  return value ? static_cast<float>(value->constant->to_doubles().front()) : otherwise;
}

std::int32_t zero_point_or_0(const ir::Value* value) {
  return value ? static_cast<std::int32_t>(value->constant->to_ints().front()) : 0;
}

std::vector<float> per_column(const ir::Value* value, std::int64_t columns, float otherwise) {
  std::vector<float> result(static_cast<std::size_t>(columns), scalar_or(value, otherwise));
  if (!value || value->constant->size() == 1) return result;
  const auto values = value->constant->to_doubles();
  std::transform(values.begin(), values.end(), result.begin(),
                 [](double v) { return static_cast<float>(v); });
  return result;
}

ir::Dim row_count(const ir::Shape& shape) {
  ir::Dim rows(1);
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows = rows * shape[i];
  return rows;
}

}  // namespace bertcl::plan
