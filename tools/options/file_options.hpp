// SPDX-License-Identifier: Apache-2.0
// Options that name files, and the check that no two share one.
#pragma once

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace bertcl::tools {

/// Declares that each value of the option names a file or folder to read. An empty name is refused.
CLI::Option* input_file(CLI::Option* option);

/// The same for a file to write. One that cannot be written is refused as the command line is read;
/// "-" stands for standard output where `or_terminal` allows it.
CLI::Option* output_file(CLI::Option* option, bool or_terminal = false);

/// Throws Error with both options' names if the command line names one file twice and it would be
/// written: by two options, or over what another one reads, weights beside a model included.
void check_files(CLI::App& command);

}  // namespace bertcl::tools
