// SPDX-License-Identifier: Apache-2.0
// The arithmetic of a float linear or attention: its attribute {precision}.
#include "ops/precision.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "bertcl/error.hpp"

namespace bertcl::ops {
namespace {

constexpr const char* kPrecision = "precision";
constexpr const char *kFp16 = "fp16", *kBf16 = "bf16";

}  // namespace

std::optional<ir::DType> precision_named(std::string_view name) {
  if (name == "fp32") return ir::DType::f32;
  if (name == kFp16) return ir::DType::f16;
  if (name == kBf16) return ir::DType::bf16;
  return std::nullopt;
}

ir::DType precision_of(const ir::Node& node) {
  if (!node.has(kPrecision)) return ir::DType::f32;
  const std::string& text = node.string_attribute(kPrecision);
  const std::optional<ir::DType> precision = precision_named(text);
  if (!precision || *precision == ir::DType::f32)
    throw Error(fmt::format("{}: unknown precision '{}' (choose from {}, {})", node.describe(),
                            text, kFp16, kBf16));
  return *precision;
}

void set_precision(ir::Node& node, ir::DType precision) {
  if (precision != ir::DType::f16 && precision != ir::DType::bf16)
    throw std::invalid_argument(fmt::format("precision '{}' cannot be set (choose from f16, bf16)",
                                            ir::name_of(precision)));
  node.attributes[kPrecision] = std::string(precision == ir::DType::f16 ? kFp16 : kBf16);
}

}  // namespace bertcl::ops
