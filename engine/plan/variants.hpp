// SPDX-License-Identifier: Apache-2.0
// The choice of a variant: the first that the device and the caller allow.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "kernels/choice.hpp"
#include "ops/precision.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

using kernels::Choice;

/// `refusal` says of a variant why it cannot run here; see kernels::choose().
template <class Variants, class Refuse>
auto choose(Builder& builder, const ir::Node& node, const Variants& variants,
            const Refuse& refusal) {
  return kernels::choose(
      node.describe(), variants,
      [&](const std::string& variant) { return builder.is_disabled(variant); },
      [&](const auto& variant) {
        const std::string reason = builder.options().why_refused(node.op, variant.name);
        return reason.empty() ? kernels::Refusal(refusal(variant)) : kernels::Refusal{reason};
      });
}

/// The same, considering only the needs of a variant.
template <class Variants>
auto choose(Builder& builder, const ir::Node& node, const Variants& variants) {
  return choose(builder, node, variants,
                [&](const auto& variant) { return builder.target().why_not(variant.needs); });
}

/// The requested precision's variant first, then the fp32 variants; of bf16 its own alone.
template <class Variant>
std::vector<Variant> variants_by_precision(const ir::Node& node, const Variant& f16,
                                           const Variant& bf16, std::span<const Variant> f32) {
  const ir::DType precision = ops::precision_of(node);
  if (precision == ir::DType::bf16) return {bf16};
  std::vector<Variant> variants(f32.begin(), f32.end());
  if (precision == ir::DType::f16) variants.insert(variants.begin(), f16);
  return variants;
}

}  // namespace bertcl::plan
