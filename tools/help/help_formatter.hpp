// SPDX-License-Identifier: Apache-2.0
// The help of the program and of its commands.
#pragma once
#include <memory>

#include "support/cli_forward.hpp"

namespace bertcl::tools {

/// Lists the commands with one line each; `bertcl COMMAND --help` shows all of a command's text.
std::shared_ptr<CLI::FormatterBase> help_formatter();

/// --help shows the options without a group, --help-all these and the others.
void shorten_help(CLI::App& command);

}  // namespace bertcl::tools
