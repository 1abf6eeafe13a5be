// SPDX-License-Identifier: Apache-2.0
// Variants of one op, fastest first, the reference last; the first that applies is used.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "plan/builder.hpp"
#include "plan/requirements.hpp"

namespace bertcl::plan {

template <class Variant>
struct Choice {
  const Variant* variant = nullptr;
  std::string why_not_faster;  // "x86_vnni: the device has no avx512_vnni; ..."
};

/// Each variant has a `name` and says by `why_not` (requirements.hpp) why it cannot run ("" if it
/// can). Throws bertcl::Error naming the node and every reason where all variants are refused.
template <class Variant>
Choice<Variant> choose(Builder& builder, const ir::Node& node,
                       const std::vector<Variant>& variants) {
  Choice<Variant> choice;
  std::string refusals;
  const auto add = [](std::string& list, const Variant& variant, const std::string& reason) {
    list += fmt::format("{}{}: {}", list.empty() ? "" : "; ", variant.name, reason);
  };
  for (const Variant& variant : variants) {
    const std::string reason =
        builder.is_disabled(variant.name) ? "switched off" : variant.why_not(builder);
    if (reason.empty()) {
      choice.variant = &variant;
      return choice;
    }
    add(refusals, variant, reason);
    if (reason != kMadeForCpus && reason != kMadeForGpus)
      add(choice.why_not_faster, variant, reason);
  }
  throw Error(fmt::format("{}: all of its variants are disabled or not supported ({})",
                          node.describe(), refusals));
}

/// The names on a variants, after those that `names` holds already.
template <class Variant>
void add_names(const std::vector<Variant>& variants, std::vector<std::string>& names) {
  for (const Variant& variant : variants) names.push_back(variant.name);
}

}  // namespace bertcl::plan
