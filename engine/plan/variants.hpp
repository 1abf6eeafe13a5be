// SPDX-License-Identifier: Apache-2.0
// The choice of a variant: the first that the device and the caller allow.
#pragma once
#include "kernels/choice.hpp"
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
