// SPDX-License-Identifier: Apache-2.0
// The commands and options of the program as plain records, for completions and the man page.
#pragma once
#include <string>
#include <vector>

#include "support/cli_forward.hpp"

namespace bertcl::tools {

struct OptionEntry {
  std::vector<std::string> names;  ///< "--output", "-o"; none: a positional
  std::string title;               ///< "-o,--output OUT.onnx", as the help has it
  std::string description;
  std::vector<std::string> choices;  ///< of the value, where there are few
  bool takes_value = false;
  bool takes_file = false;
};

struct CommandEntry {
  std::string name;
  std::string description;  ///< the first line says what it does
  std::string usage;        ///< "bertcl eval [OPTIONS] MODEL..."
  std::string example;
  std::vector<OptionEntry> options;

  std::string summary() const { return description.substr(0, description.find('\n')); }
};

/// All commands, in the order of the help. The program itself comes first, without a name.
std::vector<CommandEntry> command_tree(CLI::App& program);

/// A script that completes commands, options and values: "bash", "zsh" or "fish".
std::string completion_script(const std::vector<CommandEntry>& commands, const std::string& shell);

/// bertcl.1 in the macros of man(7).
std::string man_page(const std::vector<CommandEntry>& commands, const std::string& version);

}  // namespace bertcl::tools
