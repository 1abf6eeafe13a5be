// SPDX-License-Identifier: Apache-2.0
// Options of a command from a file. CLI11 reads files for whole programs only, where it takes a '#'
// in quotes for a comment, and escapes as they stand, or not, depending on its version.
#include "tools/options/config_file.hpp"

#include <fmt/format.h>

#include <toml++/toml.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "bertcl/error.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/lower_case.hpp"
#include "text/base/data_file.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

[[noreturn]] void refuse_section(const std::string& path, std::string_view name) {
  fail("{}: {}: sections are not supported; move its options to the top level, as port = 8081",
       path, name);
}

/// As on the command line.
std::string word_of(const toml::node& value, const std::string& path, std::string_view key) {
  if (const auto text = value.value_exact<std::string>()) return *text;
  if (const auto integer = value.value_exact<std::int64_t>()) return fmt::format("{}", *integer);
  if (const auto number = value.value_exact<double>()) return fmt::format("{}", *number);
  if (const auto flag = value.value_exact<bool>()) return *flag ? "true" : "false";
  fail("{}:{}: {}: expected a text, a number, true or false", path, value.source().begin.line, key);
}

/// The elements of a list, or the only one.
std::vector<std::string> words_of(const toml::node& value, const std::string& path,
                                  std::string_view key) {
  const toml::array* list = value.as_array();
  if (!list) return {word_of(value, path, key)};
  if (list->empty()) fail("{}: {}: the list is empty", path, key);
  std::vector<std::string> words;
  for (const toml::node& element : *list) words.push_back(word_of(element, path, key));
  return words;
}

toml::table read_toml(const std::string& path) {
  const std::string content = text::read_utf8(path).content;
  try {
    return toml::parse(content, path);
  } catch (const toml::parse_error& error) {
    std::string what(error.description());
    if (what.find("could not determine value type") != what.npos) what += "; texts need quotes";
    fail("{}:{}: {}", path, error.source().begin.line, what);
  }
}

/// By its long names, and a positional by its name in lower case.
std::vector<std::string> keys_of(const CLI::Option& option) {
  std::vector<std::string> keys = option.get_lnames();
  if (!keys.empty()) return keys;
  keys.push_back(lower_case(option.get_name(true)));
  if (option.get_items_expected_max() > 1) keys.push_back(keys.front() + 's');
  return keys;
}

CLI::Option* find_option(CLI::App& command, const std::string& key, const std::string& path) {
  std::vector<std::string> all;
  for (CLI::Option* option : command.get_options()) {
    const std::vector<std::string> keys = keys_of(*option);
    if (std::ranges::find(keys, key) != keys.end()) return option;
    all.insert(all.end(), keys.begin(), keys.end());
  }
  fail("{}: unknown option '{}'{}", path, key, did_you_mean(key, all));
}

}  // namespace

void read_config_file(CLI::App& command, const std::string& path) {
  check_readable(path);
  std::set<const CLI::Option*> of_command_line, of_file;
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0) of_command_line.insert(option);
  for (const auto& [name, value] : read_toml(path)) {
    const std::string key(name.str());
    if (value.is_table() || value.is_array_of_tables()) refuse_section(path, key);
    CLI::Option* option = find_option(command, key, path);
    if (option == command.get_help_ptr() || option == command.get_option_no_throw("--config"))
      fail("{}: {}: allowed only on the command line", path, key);
    if (!of_file.insert(option).second) fail("{}: {}: given more than once", path, key);
    if (of_command_line.contains(option)) continue;  // the command line goes first
    const std::vector<std::string> words = words_of(value, path, key);
    try {
      if (option->get_items_expected_max() == 0) {  // a flag
        if (!value.is_boolean()) fail("{}: {}: expected true or false", path, key);
        option->add_result(option->get_flag_value(key, words.front()));
      } else {
        option->add_result(words);
      }
      option->run_callback();
    } catch (const CLI::Error& error) {
      fail("{}: {}: {}", path, key, error.what());
    }
  }
  check_files(command);
}

}  // namespace bertcl::tools
