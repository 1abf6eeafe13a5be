// SPDX-License-Identifier: Apache-2.0
// Options that name files, and the check that no two share one.
#pragma once
#include "support/cli_forward.hpp"

namespace bertcl::tools {

/// Declares that each value of the option names a file or folder to read, FILE in the help. An
/// empty name is refused.
CLI::Option* input_file(CLI::Option* option);

/// The same for models, without a type in the help; a folder stands for the model in it
/// (onnx_io::find_model()).
CLI::Option* model_file(CLI::Option* option);

/// What a file to write holds.
enum class OutputFileKind {
  data,                ///< what took work to make, or may be read again: replaced by --force alone
  report,              ///< what a command tells of its run: replaces an earlier one alone
  picture,             ///< the same, as SVG: replaces an earlier one alone
  report_or_terminal,  ///< the same, and "-" stands for standard output
};

/// The same for a file to write. One that cannot be written is refused as the command line is read.
CLI::Option* output_file(CLI::Option* option, OutputFileKind what = OutputFileKind::data);

/// True for an option of input_file() or output_file().
bool names_file(CLI::Option& option);

/// --force, for a command that writes data.
void add_force_flag(CLI::App& command, bool& force);

/// Throws Error with both options' names if the command line names one file twice and it would be
/// written: by two options, or over what another one reads, with the weights, the tokenizer and the
/// configuration beside a model. Throws Error if data would be written over a file, and there is no
/// --force.
void check_files(CLI::App& command);

}  // namespace bertcl::tools
