// SPDX-License-Identifier: Apache-2.0
// Options of a command from a file.
#pragma once
#include <string>

#include "support/cli_forward.hpp"

namespace bertcl::tools {

/// Sets the options that the command line leaves out from a TOML file, whose keys are their
/// long names ("port = 8081", "json-logs = true"), or those of positionals in lower case ("models =
/// [..]"). Throws Error that names the file and the key, also for an option that it has twice, and
/// as check_files() where an option of the file names one to write.
void read_config_file(CLI::App& command, const std::string& path);

}  // namespace bertcl::tools
