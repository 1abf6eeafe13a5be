// SPDX-License-Identifier: Apache-2.0
// What every command has: its options, its action, its exit codes.
#pragma once
#include <functional>
#include <string>

#include "support/cli_forward.hpp"

namespace bertcl::tools {

// Exit codes of every command.
inline constexpr int kOk = 0;
inline constexpr int kCheckFailed = 1;  ///< a check of the command failed
inline constexpr int kBadUse = 2;       ///< unknown option, unreadable input, no device

/// The action of the parsed command line; returns the exit code and may throw.
using Action = std::function<int()>;

/// Options of every command.
struct CommonOptions {
  std::string command;  ///< its name
  std::string device;   ///< selector of opencl::select_device()
  std::string json;     ///< file for the result as JSON; "-" is standard output, empty is none

  /// False if standard output belongs to the JSON.
  bool prints_text() const { return json != "-"; }
};

/// Adds `name` to the program, with --device, --json and `example` as the last lines of its help.
CLI::App* add_command(CLI::App& program, const std::string& name, const std::string& description,
                      const std::string& example, CommonOptions& options);

}  // namespace bertcl::tools
