// SPDX-License-Identifier: Apache-2.0
// The choice of a variant: the first that the device and the caller allow.
#pragma once
#include <fmt/format.h>

#include <string>

#include "bertcl/error.hpp"
#include "kernels/needs.hpp"
#include "plan/builder.hpp"

namespace bertcl::plan {

template <class Variant>
struct Choice {
  const Variant* variant = nullptr;
  std::string why_not_faster;  // "x86_vnni: the device has no avx512_vnni; ..."
};

/// `refusal` returns why a variant cannot run here. The choice points into `variants`. Throws
/// bertcl::Error naming the node and every reason if all variants are refused.
template <class Variants, class Refuse>
auto choose(Builder& builder, const ir::Node& node, const Variants& variants,
            const Refuse& refusal) {
  using Variant = std::remove_cvref_t<decltype(*std::begin(variants))>;
  Choice<Variant> choice;
  std::string refusals;
  const auto add = [](std::string& list, const Variant& variant, const std::string& reason) {
    list += fmt::format("{}{}: {}", list.empty() ? "" : "; ", variant.name, reason);
  };
  for (const Variant& variant : variants) {
    const kernels::Refusal why =
        builder.is_disabled(variant.name) ? kernels::Refusal{"disabled"} : refusal(variant);
    if (why.reason.empty()) {
      choice.variant = &variant;
      return choice;
    }
    add(refusals, variant, why.reason);
    if (!why.is_other_kind) add(choice.why_not_faster, variant, why.reason);
  }
  throw Error(fmt::format("{}: all of its variants are disabled or not supported ({})",
                          node.describe(), refusals));
}

/// Why the device of `builder` does not run a variant with these needs.
inline kernels::Refusal why_not(Builder& builder, const kernels::Needs& needs) {
  return kernels::why_not(needs, builder.context().info(), builder.context().capabilities());
}

/// The same, considering only the needs of a variant.
template <class Variants>
auto choose(Builder& builder, const ir::Node& node, const Variants& variants) {
  return choose(builder, node, variants,
                [&](const auto& variant) { return why_not(builder, variant.needs); });
}

}  // namespace bertcl::plan
