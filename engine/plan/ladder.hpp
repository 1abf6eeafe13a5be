// SPDX-License-Identifier: Apache-2.0
// Implementations of one op, fastest first, the reference last; the first that applies is used.
#pragma once
#include <fmt/format.h>

#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "plan/builder.hpp"
#include "plan/requirements.hpp"

namespace bertcl::plan {

template <class Rung>
struct Choice {
  const Rung* rung = nullptr;
  std::string why_not_faster;  // "x86_vnni: the device has no avx512_vnni; ..."
};

/// Each rung has a `name` and says by `why_not` (requirements.hpp) why it cannot run ("" if it
/// can). Throws bertcl::Error naming the node and every reason where all rungs are refused.
template <class Rung>
Choice<Rung> choose(Builder& builder, const ir::Node& node, const std::vector<Rung>& ladder) {
  Choice<Rung> choice;
  std::string refusals;
  const auto add = [](std::string& list, const Rung& rung, const std::string& reason) {
    list += fmt::format("{}{}: {}", list.empty() ? "" : "; ", rung.name, reason);
  };
  for (const Rung& rung : ladder) {
    const std::string reason =
        builder.is_disabled(rung.name) ? "switched off" : rung.why_not(builder);
    if (reason.empty()) {
      choice.rung = &rung;
      return choice;
    }
    add(refusals, rung, reason);
    if (reason != kMadeForCpus && reason != kMadeForGpus) add(choice.why_not_faster, rung, reason);
  }
  throw Error(fmt::format("{}: none of its implementations is left ({}); switch off fewer",
                          node.describe(), refusals));
}

/// The names on a ladder, behind those that `names` holds already.
template <class Rung>
void add_names(const std::vector<Rung>& ladder, std::vector<std::string>& names) {
  for (const Rung& rung : ladder) names.push_back(rung.name);
}

}  // namespace bertcl::plan
