// SPDX-License-Identifier: Apache-2.0
// JSON of many floats, written without a document in memory.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

namespace bertcl::serve {

/// "[0.5,1e-07]": as few digits as tell floats apart. They are finite.
void append_floats(std::string& text, std::span<const float> values);

/// One such number.
void append_float(std::string& text, float value);

/// Their bytes, little-endian, in base64 (RFC 4648).
std::string base64(std::span<const float> values);

/// In one line; what is not UTF-8 becomes U+FFFD.
std::string dump(const nlohmann::ordered_json& json);

}  // namespace bertcl::serve
