// SPDX-License-Identifier: Apache-2.0
// Codes that kernels take for element types and functions.
#include "kernels/types.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"

namespace bertcl::kernels {

namespace {

constexpr ir::DType kTypes[] = {ir::DType::f32,     ir::DType::u8,  ir::DType::i8,
                                ir::DType::f16,     ir::DType::i32, ir::DType::i64,
                                ir::DType::boolean, ir::DType::bf16};

struct Activation {
  std::string_view name;
  std::int32_t in_epilogue, as_unary;
};
constexpr Activation kActivations[] = {{"gelu", 1, unary::gelu},
                                       {"gelu_tanh", 2, unary::gelu_tanh},
                                       {"relu", 3, unary::relu},
                                       {"tanh", 4, unary::tanh}};

/// "f32, u8".
std::string names_of(const auto& all, const auto& name) {
  std::vector<std::string_view> names;
  for (const auto& one : all) names.push_back(std::invoke(name, one));
  return fmt::format("{}", fmt::join(names, ", "));
}

const Activation& find_activation(const std::string& name) {
  for (const Activation& a : kActivations)
    if (a.name == name) return a;
  throw Error(fmt::format("unknown activation '{}' (choose from {})", name,
                          names_of(kActivations, &Activation::name)));
}

}  // namespace

std::int32_t type_code(ir::DType type) {
  const auto at = std::ranges::find(kTypes, type);
  if (at != std::end(kTypes)) return static_cast<std::int32_t>(at - kTypes);
  throw Error(fmt::format("no kernels for element type {} (supported: {})", ir::name_of(type),
                          names_of(kTypes, ir::name_of)));
}

std::int32_t activation_code(const std::string& name) {
  return name.empty() ? 0 : find_activation(name).in_epilogue;
}

std::int32_t unary_code(const std::string& activation) {
  return find_activation(activation).as_unary;
}

}  // namespace bertcl::kernels
