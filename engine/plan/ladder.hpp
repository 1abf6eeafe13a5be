// SPDX-License-Identifier: Apache-2.0
// Implementations of one op, fastest first, the reference last; the first that applies is used.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "plan/builder.hpp"

namespace bertcl::plan {

/// Each rung has a `name` and says by `why_not` why it cannot run on this device ("" if it can).
template <class Rung>
struct Choice {
  const Rung* rung = nullptr;
  std::string why_not_faster;  // "x86_vnni: no avx512_vnni; ..."
};

template <class Rung>
Choice<Rung> choose(Builder& builder, const std::vector<Rung>& ladder) {
  Choice<Rung> choice;
  for (const Rung& rung : ladder) {
    const std::string reason = builder.is_disabled(rung.name)
                                   ? "switched off"
                                   : std::string(rung.why_not(builder.context()));
    if (reason.empty()) {
      choice.rung = &rung;
      break;
    }
    choice.why_not_faster +=
        fmt::format("{}{}: {}", choice.why_not_faster.empty() ? "" : "; ", rung.name, reason);
  }
  if (!choice.rung) choice.rung = &ladder.back();
  return choice;
}

}  // namespace bertcl::plan
