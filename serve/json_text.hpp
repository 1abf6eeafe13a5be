// SPDX-License-Identifier: Apache-2.0
// JSON of many floats, written without a document in memory.
#pragma once
#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace bertcl::serve {

/// "[..,..]": `append(i)` adds each element to `text`.
template <class Append>
void append_list(std::string& text, std::size_t count, const Append& append) {
  text += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) text += ',';
    append(i);
  }
  text += ']';
}

/// "[0.5,1e-07]": as few digits as tell floats apart. They are finite.
void append_floats(std::string& text, std::span<const float> values);

/// One such number.
void append_float(std::string& text, float value);

/// The JSON in one line; what is not UTF-8 becomes U+FFFD.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace bertcl::serve
