// SPDX-License-Identifier: Apache-2.0
// Options of any command from a file.
#include "tools/options/config_file.hpp"

#include <CLI/CLI.hpp>

#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

using ConfigFileTest = FolderTest;

TEST_F(ConfigFileTest, ACommandWithoutConfigTakesOneToo) {
  CLI::App command;
  bool json_logs = false;
  command.add_flag("--json-logs", json_logs);
  tools::read_config_file(command, write("once.toml", "json-logs = true\n"));
  EXPECT_TRUE(json_logs);
}

TEST_F(ConfigFileTest, AFlagThatIsGivenTwiceIsRefused) {
  CLI::App command;
  command.add_flag("--json-logs");
  for (const std::string second : {"true", "false"})
    EXPECT_ERROR(
        HasSubstr("twice.toml: json-logs: given more than once"),
        tools::read_config_file(
            command, write("twice.toml", "json-logs = true\njson-logs = " + second + "\n")));
}

}  // namespace
}  // namespace bertcl::tests
