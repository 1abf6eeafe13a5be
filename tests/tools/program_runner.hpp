// SPDX-License-Identifier: Apache-2.0
// Runs the program `bertcl` as a user does and takes what it prints.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <source_location>
#include <string>
#include <vector>

#include "tests/support/files.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::tests {

struct ProgramResult {
  int code = -1;  // exit code; 128 + n where signal n ended it
  std::string out, err;
};

/// Runs `bertcl ARGUMENTS` with `input` on standard input and no terminal.
ProgramResult run_bertcl(const std::vector<std::string>& arguments,
                         const std::map<std::string, std::string>& environment = {},
                         const std::string& input = "");

/// The same with a terminal as standard error; `err` is all that was written there.
ProgramResult run_bertcl_on_terminal(const std::vector<std::string>& arguments,
                                     const std::map<std::string, std::string>& environment = {});

/// Starts `bertcl ARGUMENTS`, sends it a signal as soon as `now` is true, and gives the exit code
/// as above. Without such a moment the program ends by itself.
int interrupt_bertcl(const std::vector<std::string>& arguments, int signal,
                     const std::function<bool()>& now);

/// The commands that the help lists and that do the work of the program, in its order.
std::vector<std::string> working_commands();

inline const std::string kModel = source_file("models/minilm-l6-squad/model.onnx");
inline const std::string kVocabulary = source_file("models/minilm-l6-squad/vocab.txt");
inline const std::string kData = source_file("data/sample-v2.0.json");
inline const std::string kCalibration = source_file("data/calibration.json");

/// A test with a folder of its own, which goes when the test ends.
class FolderTest : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  /// Writes a file there and gives its path.
  std::string write(const std::string& name, const std::string& content) const;
  /// Writes modules.json and 1_Pooling/config.json there, as sentence-transformers does.
  void write_pooling(const std::string& config) const;
  static std::string read(const std::string& path);
  static nlohmann::json read_json(const std::string& path);
  /// Names of all files there, sorted.
  std::vector<std::string> files() const;

  const ScratchFolder folder_;
};

/// The JSON of each line.
std::vector<nlohmann::json> json_lines(const std::string& text);

/// The JSON that a command printed, or that of each line; it has to have succeeded.
nlohmann::json json_of(const ProgramResult& result);
std::vector<nlohmann::json> json_lines(const ProgramResult& result);

/// The JSON that a command prints, which has to be all that it prints.
nlohmann::json json_of(const std::vector<std::string>& arguments);

/// A result, whose exit code has to be 0; else it ends the test.
ProgramResult succeeded(ProgramResult result,
                        std::source_location where = std::source_location::current());

/// The one line "bertcl: ..." of a refusal: nothing on standard output, exit code 2.
std::string refusal(const ProgramResult& result);

/// Expects a refusal with these parts.
void expect_refused(const ProgramResult& result, const std::vector<std::string>& parts,
                    std::source_location where = std::source_location::current());
/// The same of `bertcl ARGUMENTS`.
void expect_refused(const std::vector<std::string>& arguments,
                    const std::vector<std::string>& parts,
                    const std::map<std::string, std::string>& environment = {},
                    const std::string& input = "",
                    std::source_location where = std::source_location::current());

/// Arguments, and more of them.
std::vector<std::string> joined(std::vector<std::string> arguments,
                                const std::vector<std::string>& more);

}  // namespace bertcl::tests
