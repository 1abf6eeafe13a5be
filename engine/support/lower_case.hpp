// SPDX-License-Identifier: Apache-2.0
// Lower case of names: ASCII letters only.
#pragma once
#include <string>

namespace bertcl {

inline std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace bertcl
