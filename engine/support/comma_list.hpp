// SPDX-License-Identifier: Apache-2.0
// Lists with commas, as options take them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace bertcl {

/// The elements of "a,b,c"; also what is empty before, between and after commas.
inline std::vector<std::string> comma_list(std::string_view text) {
  std::vector<std::string> elements;
  for (auto comma = text.find(','); comma != text.npos; comma = text.find(',')) {
    elements.emplace_back(text.substr(0, comma));
    text.remove_prefix(comma + 1);
  }
  elements.emplace_back(text);
  return elements;
}

}  // namespace bertcl
