// SPDX-License-Identifier: Apache-2.0
// Which variant of a list is taken: the first that is neither disabled nor refused.
#pragma once
#include <fmt/format.h>

#include <iterator>
#include <string>
#include <type_traits>

#include "bertcl/error.hpp"
#include "kernels/needs.hpp"

namespace bertcl::kernels {

template <class Variant>
struct Choice {
  const Variant* variant = nullptr;
  std::string why_not_faster;  // "x86_vnni: the device has no avx512_vnni; ..."
};

/// `is_disabled` tells by its name whether a variant is disabled, `refusal` why it cannot run
/// here. The choice points into `variants`. Throws bertcl::Error naming `who` and every reason
/// where all variants are refused.
template <class Variants, class Disabled, class Refuse>
auto choose(const std::string& who, const Variants& variants, const Disabled& is_disabled,
            const Refuse& refusal) {
  using Variant = std::remove_cvref_t<decltype(*std::begin(variants))>;
  Choice<Variant> choice;
  std::string refusals;
  const auto add = [](std::string& list, const Variant& variant, const std::string& reason) {
    list += fmt::format("{}{}: {}", list.empty() ? "" : "; ", variant.name, reason);
  };
  for (const Variant& variant : variants) {
    const Refusal why = is_disabled(variant.name) ? Refusal{"disabled"} : refusal(variant);
    if (why.reason.empty()) {
      choice.variant = &variant;
      return choice;
    }
    add(refusals, variant, why.reason);
    if (!why.is_other_kind) add(choice.why_not_faster, variant, why.reason);
  }
  throw Error(
      fmt::format("{}: all of its variants are disabled or not supported ({})", who, refusals));
}

}  // namespace bertcl::kernels
