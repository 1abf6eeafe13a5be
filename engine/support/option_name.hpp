// SPDX-License-Identifier: Apache-2.0
// How messages name an option: as the command line of the program, or as the arguments of the
// Python package, of which most are fields of the library, too.
#pragma once
#include <algorithm>
#include <atomic>
#include <string>
#include <string_view>

namespace bertcl {

inline std::atomic<bool>& use_command_line_names() {
  static std::atomic<bool> value = false;
  return value;
}

/// Of "max-memory": --max-memory in the program, which sets use_command_line_names();
/// 'max_memory' elsewhere. With a value: --softmax plain, 'softmax=plain'.
inline std::string option_name(std::string_view name, std::string_view value = {}) {
  std::string text(name);
  const bool has_value = !value.empty();
  if (use_command_line_names()) return "--" + text + (has_value ? " " : "") + std::string(value);
  std::ranges::replace(text, '-', '_');
  return "'" + text + (has_value ? "=" : "") + std::string(value) + "'";
}

}  // namespace bertcl
