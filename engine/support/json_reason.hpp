// SPDX-License-Identifier: Apache-2.0
// Messages of nlohmann::json without its names of errors.
#pragma once
#include <string_view>

namespace bertcl {

/// "[json.exception.type_error.302] type must be number, but is string" from "type" on.
inline std::string_view json_reason(std::string_view what) {
  const auto end = what.find("] ");
  return what.starts_with("[json.") && end != what.npos ? what.substr(end + 2) : what;
}

}  // namespace bertcl
