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

TEST_F(ConfigFileTest, AFlagThatIsGivenTwiceIsRefused) {
  CLI::App command;
  command.add_flag("--json-logs");
  for (const std::string second : {"true", "false"})
    EXPECT_ERROR(
        HasSubstr("twice.toml: json-logs: given more than once"),
        tools::read_config_file(
            command, write("twice.toml", "json-logs = true\njson-logs = " + second + "\n")));
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
  EXPECT_EQ(text(R"("a" # "a comment")"), "a");
  EXPECT_EQ(text(R"("it's")"), "it's");
  EXPECT_EQ(text(R"("")"), "");
}

TEST_F(ConfigFileSyntax, DoubleQuotesTakeEscapesSingleOnesDoNot) {
  EXPECT_EQ(text(R"("say \"a\": \u00e9\n\\")"), "say \"a\": \u00e9\n\\");
  EXPECT_EQ(text(R"('a\nb\')"), R"(a\nb\)");
  EXPECT_ERROR(HasSubstr("a.toml:1: a value in double quotes has an escape that is unknown"),
               text(R"("a\q")"));
}

TEST_F(ConfigFileSyntax, BareValuesEndAtACommentOrTheirLine) {
  EXPECT_EQ(text("4G"), "4G");
  EXPECT_EQ(text("a b, c  # d"), "a b, c");
  EXPECT_ERROR(HasSubstr("a.toml:1: '#' begins a comment; put a value that has one in quotes"),
               text("a#b"));
}

TEST_F(ConfigFileSyntax, AListMayHaveCommentsAndSeveralLines) {
  const Settings settings = read(
      "\xEF\xBB\xBF# first\r\nnames = [ \"a,]\", # one\r\n  'b#',\n\n c ,\n]  # end\n; INI\nflag\n"
      "number=3");
  EXPECT_THAT(settings.names, ElementsAre("a,]", "b#", "c"));
  EXPECT_TRUE(settings.flag);
  EXPECT_EQ(settings.number, 3);
}

TEST_F(ConfigFileSyntax, WhatIsDamagedIsRefusedByItsLine) {
  for (const auto& [content, message] : std::vector<std::pair<std::string, std::string>>{
           {"number = 1\ntext = \"a\n\"", "a.toml:2: a quote is not closed"},
           {"text = 'a", "a.toml:1: a quote is not closed"},
           {"text = \"a\" b\n", "a.toml:1: text after the value of text"},
           {"names = [\"a\" \"b\"]", "a.toml:1: a list has neither ',' nor ']' here"},
           {"names = [\n\"a\",\nb", "a.toml:3: a list has neither ',' nor ']' here"},
           {"names = []", "a.toml:1: a list is empty"},
           {"text\n", "a.toml: text: a value is missing"}})
    EXPECT_ERROR(HasSubstr(message), read(content)) << content;
}

}  // namespace
}  // namespace bertcl::tests
