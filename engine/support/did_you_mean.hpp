// SPDX-License-Identifier: Apache-2.0
// Suggests the name that a misspelled one may have meant.
#pragma once
#include <algorithm>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/fail.hpp"
#include "support/lower_case.hpp"

namespace bertcl {

/// Optimal string alignment: Levenshtein's distance in which two swapped neighbours count as one
/// edit; upper and lower case alike.
inline std::size_t edit_distance(std::string_view one, std::string_view other) {
  const std::string a = lower_case(std::string(one)), b = lower_case(std::string(other));
  std::vector<std::size_t> before(b.size() + 1), last(before), costs(before);  // rows of a
  std::iota(costs.begin(), costs.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, costs);
    costs[0] = i;
    for (std::size_t k = 1; k <= b.size(); ++k) {
      costs[k] =
          std::min({last[k - 1] + (a[i - 1] == b[k - 1] ? 0 : 1), last[k] + 1, costs[k - 1] + 1});
      if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
        costs[k] = std::min(costs[k], before[k - 2] + 1);
    }
  }
  return costs.back();
}

/// The nearest of `names`, the first of several; none where it is `name` or no nearer than a third
/// of the characters. Domains, as in "com.microsoft::Gelu", are not compared.
inline std::optional<std::string> nearest_name(std::string_view name,
                                               const std::vector<std::string>& names) {
  const auto bare = [](std::string_view full) {
    const auto colons = full.rfind("::");
    return colons == full.npos ? full : full.substr(colons + 2);
  };
  const auto distance = [&](const std::string& to) { return edit_distance(bare(name), bare(to)); };
  const auto nearest = std::ranges::min_element(
      names, [&](const std::string& a, const std::string& b) { return distance(a) < distance(b); });
  if (nearest == names.end() || *nearest == name || 3 * distance(*nearest) > bare(name).size())
    return std::nullopt;
  return *nearest;
}

/// " (did you mean NAME?)" with nearest_name(); empty where there is none.
inline std::string did_you_mean(std::string_view name, const std::vector<std::string>& names) {
  const auto nearest = nearest_name(name, names);
  return nearest ? " (did you mean " + *nearest + "?)" : "";
}

/// What to say of a name that is none of `names`: did_you_mean(), or " (choose from A, B)" where
/// none is near; of more than `listed` names the nearest, as " (nearest: A, B)".
inline std::string suggestion(std::string_view name, std::vector<std::string> names,
                              std::size_t listed = std::string::npos) {
  std::string text = did_you_mean(name, names);
  if (!text.empty() || names.empty()) return text;
  text = " (choose from ";
  if (names.size() > listed) {
    std::ranges::stable_sort(names, {}, [&](const auto& to) { return edit_distance(name, to); });
    names.resize(listed);
    text = " (nearest: ";
  }
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text + ")";
}

/// The element of that name in a list of elements with names. Throws Error if there is none; `what`
/// is one of them in its message.
template <class T>
const T& named(std::span<const T> list, std::string_view what, std::string_view name) {
  std::vector<std::string> names;
  for (const T& element : list) {
    if (element.name == name) return element;
    names.emplace_back(element.name);
  }
  fail("unknown {} '{}'{}", what, name, suggestion(name, names));
}

}  // namespace bertcl
