// SPDX-License-Identifier: Apache-2.0
// What the caller of the planner asks for.
#include "plan/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bertcl/error.hpp"
#include "kernels/variants.hpp"
#include "support/comma_list.hpp"
#include "support/did_you_mean.hpp"

namespace bertcl::plan {

GemmLibrary gemm_library_named(std::string_view name) {
  if (name == "auto") return GemmLibrary::automatic;
  if (name == "own") return GemmLibrary::own;
  if (name == "clblast") return GemmLibrary::clblast;
  throw Error(fmt::format("unknown GEMM library '{}' (choose from auto, own, clblast)", name));
}

std::string Options::why_refused(std::string_view op, std::string_view variant) const {
  const auto found = refused.find({std::string(op), std::string(variant)});
  return found == refused.end() ? "" : found->second;
}

std::vector<std::string> disableable_variants() {
  std::vector<std::string> names = kernels::variant_names();
  const std::string persistent = "persistent";  // merges launches of others
  names.insert(std::ranges::upper_bound(names, persistent), persistent);
  return names;
}

// A misspelt name would otherwise be ignored.
std::set<std::string, std::less<>> variants_to_disable(const std::string& list) {
  std::set<std::string, std::less<>> names;
  if (list.empty()) return names;
  const std::vector<std::string> known = disableable_variants();
  for (std::string& name : comma_list(list)) {
    if (name.empty()) throw Error(fmt::format("empty element in '{}'", list));
    if (std::ranges::find(known, name) == known.end())
      throw Error(fmt::format("unknown kernel variant '{}'{}", name, suggestion(name, known, 3)));
    names.insert(std::move(name));
  }
  return names;
}

}  // namespace bertcl::plan
