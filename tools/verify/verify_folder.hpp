// SPDX-License-Identifier: Apache-2.0
// Checks all models of a folder against stored outputs, and against a table of expected outcomes.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/options/model_options.hpp"
#include "tools/verify/golden.hpp"

namespace bertcl::tools {

/// The table entry for one model.
struct Expectation {
  std::string status;
  std::string reason;       ///< must be part of the message of a refusal; for others it says why
  double mismatches = 0.0;  ///< Tolerance::mismatches for its outputs
};
using Expectations = std::map<std::string, Expectation>;

/// Reads lines FILE <tab> STATUS <tab> REASON <tab> MISMATCHES, the last two where there are any;
/// empty lines and those that begin with '#' do not count. Throws Error naming the line.
Expectations read_expectations(const std::filesystem::path& path);

/// Compiles and runs every .onnx below `folder`, in the order of their paths. The golden of
/// A/b.onnx is goldens/A~b.npz or A/b.npz; where `expected` says reference, it is left aside.
/// The status of each, by its path below the folder, with '/':
///   pass       agrees with the stored outputs
///   reference  nothing usable is stored; agrees with the operators' plain definitions on the host
///              for synthetic inputs
///   refused    not compiled, the message says why
///   fail       another result, or an error while running
std::vector<Comparison> verify_folder(const std::filesystem::path& folder,
                                      const ModelOptions& options, const Tolerance& tolerance,
                                      const Expectations& expected);

/// Says where the outcomes differ from the table, one sentence each; files that are missing on
/// either side are named too.
std::vector<std::string> unexpected(const std::vector<Comparison>& outcomes,
                                    const Expectations& expected);

}  // namespace bertcl::tools
