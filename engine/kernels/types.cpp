// SPDX-License-Identifier: Apache-2.0
// Codes that kernels take for element types and functions.
#include "kernels/types.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"

namespace bertcl::kernels {

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
      fmt::format("no kernels for element type {} (supported: f32, f16, i32, i64, u8, i8, bool)",
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

}  // namespace bertcl::kernels
