// SPDX-License-Identifier: Apache-2.0
// Suggests the name that a misspelled one may have meant.
#pragma once
#include <algorithm>
#include <cctype>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl {

/// Levenshtein's distance, upper and lower case alike.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  std::vector<std::size_t> costs(b.size() + 1);
  std::iota(costs.begin(), costs.end(), std::size_t{0});
  for (const char from : a) {
    std::size_t diagonal = costs[0]++;
    for (std::size_t i = 0; i < b.size(); ++i) {
      const std::size_t above = costs[i + 1];
      costs[i + 1] =
          std::min({diagonal + (lower(from) == lower(b[i]) ? 0 : 1), above + 1, costs[i] + 1});
      diagonal = above;
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
  const auto nearest = std::min_element(
      names.begin(), names.end(),
      [&](const std::string& a, const std::string& b) { return distance(a) < distance(b); });
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
/// none is near.
inline std::string suggestion(std::string_view name, const std::vector<std::string>& names) {
  std::string text = did_you_mean(name, names);
  if (!text.empty() || names.empty()) return text;
  for (const std::string& known : names) text += (text.empty() ? " (choose from " : ", ") + known;
  return text + ")";
}

}  // namespace bertcl
