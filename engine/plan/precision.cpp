// SPDX-License-Identifier: Apache-2.0
// The arithmetic of float linear and attention.
#include "plan/precision.hpp"

#include <fmt/format.h>

#include "bertcl/error.hpp"
#include "kernels/variants.hpp"

namespace bertcl::plan {

passes::Precision precision_on(opencl::Context& context, ir::DType asked, const Options& options) {
  if (asked == ir::DType::f32 || asked == ir::DType::f16) return {asked};
  if (asked != ir::DType::bf16)
    throw Error(
        fmt::format("no kernels compute in {} (choose from f32, f16, bf16)", ir::name_of(asked)));
  const kernels::GemmVariant& variant = kernels::gemm_bf16_variant();
  if (options.is_disabled(variant.name))
    return {ir::DType::f32, fmt::format("{}: disabled", variant.name)};
  const kernels::Refusal why =
      kernels::why_not(variant.needs, context.info(), context.capabilities());
  if (why.reason.empty()) return {ir::DType::bf16};
  return {ir::DType::f32, why.is_other_kind ? "" : fmt::format("{}: {}", variant.name, why.reason)};
}

std::string why_not_faster(const ir::Node& node, const std::string& refusals) {
  if (node.has("float_reason")) return node.string_attribute("float_reason");
  if (!node.has("precision_reason")) return refusals;
  const std::string& reason = node.string_attribute("precision_reason");
  return refusals.empty() ? reason : fmt::format("{}; {}", reason, refusals);
}

}  // namespace bertcl::plan
