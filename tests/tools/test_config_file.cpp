// SPDX-License-Identifier: Apache-2.0
// Options of any command from a file.
#include "tools/options/config_file.hpp"

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

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

TEST_F(ConfigFileTest, AnOptionThatIsGivenTwiceIsRefused) {
  CLI::App command;
  command.add_flag("--json-logs");
  command.add_flag("--verbose,--loud");
  EXPECT_ERROR(AllOf(HasSubstr("twice.toml:2: "), HasSubstr("json-logs")),
               tools::read_config_file(
                   command, write("twice.toml", "json-logs = true\njson-logs = false\n")));
  EXPECT_ERROR(
      HasSubstr("twice.toml: verbose: given more than once"),
      tools::read_config_file(command, write("twice.toml", "loud = true\nverbose = true\n")));
}

/// What a file sets: an option for each text, one for a list, one for a number, a flag.
struct Settings {
  std::vector<std::string> texts = {"", ""}, names;
  int number = 0;
  bool flag = false;
};

class ConfigFileSyntax : public FolderTest {
 protected:
  Settings read(const std::string& content) const {
    CLI::App command;
    Settings settings;
    command.add_option("--text", settings.texts[0]);
    command.add_option("--other", settings.texts[1]);
    command.add_option("--names", settings.names);
    command.add_option("--number", settings.number);
    command.add_flag("--flag", settings.flag);
    tools::read_config_file(command, write("a.toml", content));
    return settings;
  }
  std::string text(const std::string& value) const {
    return read("text = " + value + "\nnumber = 7\n").texts[0];
  }
};

TEST_F(ConfigFileSyntax, AValueInQuotesIsTakenWhole) {
  EXPECT_EQ(text(R"("a#b")"), "a#b");
  EXPECT_EQ(text(R"("# a, b; c = [d] ")"), "# a, b; c = [d] ");
  EXPECT_EQ(text("'a#b \"c\"' # a comment"), "a#b \"c\"");
  EXPECT_EQ(text(R"("it's")"), "it's");
  EXPECT_EQ(text(R"("")"), "");
}

TEST_F(ConfigFileSyntax, DoubleQuotesTakeEscapesSingleOnesDoNot) {
  EXPECT_EQ(text(R"("say \"a\": \u00e9\n\\")"), "say \"a\": \u00e9\n\\");
  EXPECT_EQ(text(R"('a\nb\')"), R"(a\nb\)");
}

TEST_F(ConfigFileSyntax, NumbersAreTextsToo) {
  EXPECT_EQ(text("4000"), "4000");
  EXPECT_EQ(text("-0.5"), "-0.5");
}

TEST_F(ConfigFileSyntax, AListMayHaveCommentsAndSeveralLines) {
  const Settings settings = read(
      "\xEF\xBB\xBF# first\r\nnames = [ \"a,]\", # one\r\n  'b#',\n\n \"c\" ,\n]  # end\n"
      "flag = true\nnumber=3");
  EXPECT_THAT(settings.names, ElementsAre("a,]", "b#", "c"));
  EXPECT_TRUE(settings.flag);
  EXPECT_EQ(settings.number, 3);
}

TEST_F(ConfigFileSyntax, WhatIsDamagedIsRefusedByItsLine) {
  for (const auto& [content, message] : std::vector<std::pair<std::string, std::string>>{
           {"number = 1\ntext = \"a\n\"", "a.toml:2: "},
           {"text = 'a", "a.toml:1: "},
           {"text = \"a\" b\n", "a.toml:1: "},
           {"text = a b\n", "texts need quotes"},
           {"number = 1\ntext = 4G\n", "a.toml:2: "},
           {"text = \"a\\q\"", "a.toml:1: "},
           {"names = [\"a\" \"b\"]", "a.toml:1: "},
           {"names = [\n\"a\",\n2024-01-01]",
            "a.toml:3: names: expected a text, a number, true or "},
           {"names = []", "a.toml: names: the list is empty"},
           {"flag = 1", "a.toml: flag: expected true or false"},
           {"text\n", "a.toml:1: "}})
    EXPECT_ERROR(HasSubstr(message), read(content)) << content;
}

}  // namespace
}  // namespace bertcl::tests
