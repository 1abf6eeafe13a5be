// SPDX-License-Identifier: Apache-2.0
// JSON as text.
#pragma once
#include <string>

namespace bertcl {

/// The JSON on one line, or indented by `indent` columns; what is not UTF-8 becomes U+FFFD.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bertcl
