// SPDX-License-Identifier: Apache-2.0
// Options of a command from a file. CLI11 reads files for whole programs only, where it takes a '#'
// in quotes for a comment, and escapes as they stand, or not, depending on its version.
#include "tools/options/config_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bertcl/error.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/lower_case.hpp"
#include "text/base/data_file.hpp"
#include "tools/options/file_options.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

/// A key with its value or the elements of its list; none of a flag that stands alone.
struct ConfigItem {
  std::string key;
  std::vector<std::string> values;
};

/// Reads TOML without tables, whose values may also be bare words, as in INI files.
class ConfigReader {
 public:
  explicit ConfigReader(const std::string& path)
      : path_(path), content_(text::read_utf8(path).content), left_(content_) {}

  std::vector<ConfigItem> items() {
    std::vector<ConfigItem> found;
    for (skip_lines(); !left_.empty(); skip_lines()) {
      if (take('[')) refuse_section(left_.substr(0, left_.find_first_of("]\n")));
      ConfigItem item{value("=\n"), {}};
      if (const auto dot = item.key.find('.'); dot != item.key.npos)
        refuse_section(item.key.substr(0, dot));
      skip_blanks();
      if (take('=')) {
        skip_blanks();
        item.values = take('[') ? list() : std::vector{value("\n")};
      }
      skip_blanks();
      if (!left_.empty() && left_.front() != '\n' && left_.front() != '#')
        refuse("text after the value of " + item.key);
      found.push_back(std::move(item));
    }
    return found;
  }

 private:
  std::vector<std::string> list() {
    std::vector<std::string> values;
    for (skip_lines(); !take(']'); skip_lines()) {
      values.push_back(value(",]\n"));
      skip_lines();
      if (!take(',') && !left_.starts_with(']')) refuse("a list has neither ',' nor ']' here");
    }
    if (values.empty()) refuse("a list is empty");
    return values;
  }

  /// In quotes, or up to a comment or one of `ends`.
  std::string value(std::string_view ends) {
    if (left_.starts_with('"')) return in_double_quotes();
    if (left_.starts_with('\'')) return in_single_quotes();
    const std::string_view line = left_.substr(0, left_.find_first_of(ends));
    const std::string_view word = line.substr(0, line.find('#'));
    const std::string_view known = text::trimmed(word);
    if (word.size() < line.size() && known.size() == word.size() && !word.empty())
      refuse("'#' begins a comment; put a value that has one in quotes");
    left_.remove_prefix(word.size());
    return std::string(known);
  }

  std::string in_single_quotes() {
    const std::size_t end = left_.find_first_of("'\n", 1);
    if (end == left_.npos || left_[end] != '\'') refuse("a quote is not closed");
    const std::string_view inside = left_.substr(1, end - 1);
    left_.remove_prefix(end + 1);
    return std::string(inside);
  }

  /// With escapes, which are those of JSON and few more.
  std::string in_double_quotes() {
    std::size_t end = 1;
    while (end < left_.size() && left_[end] != '"' && left_[end] != '\n')
      end += left_[end] == '\\' ? 2 : 1;
    if (end >= left_.size() || left_[end] != '"') refuse("a quote is not closed");
    const auto inside = nlohmann::json::parse(left_.substr(0, end + 1), nullptr, false);
    if (inside.is_discarded())
      refuse("a value in double quotes has an escape that is unknown; '..' takes none");
    left_.remove_prefix(end + 1);
    return inside.get<std::string>();
  }

  bool take(char c) {
    if (!left_.starts_with(c)) return false;
    left_.remove_prefix(1);
    return true;
  }
  void skip_blanks() {
    left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r"), left_.size()));
  }
  /// The ends of lines, and comments, of INI files, too.
  void skip_lines() {
    for (skip_blanks(); left_.starts_with('#') || left_.starts_with(';') || take('\n');
         skip_blanks())
      if (left_.starts_with('#') || left_.starts_with(';'))
        left_.remove_prefix(std::min(left_.find('\n'), left_.size()));
  }

  [[noreturn]] void refuse(const std::string& what) const {
    const auto before = std::string_view(content_).substr(0, content_.size() - left_.size());
    fail("{}:{}: {}", path_, 1 + std::ranges::count(before, '\n'), what);
  }
  [[noreturn]] void refuse_section(std::string_view name) const {
    fail("{}: {}: sections are not supported; move its options to the top level, as port = 8081",
         path_, name);
  }

  const std::string& path_;
  const std::string content_;
  std::string_view left_;
};

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
  for (const ConfigItem& item : ConfigReader(path).items()) {
    CLI::Option* option = find_option(command, item.key, path);
    if (option == command.get_help_ptr() || option == command.get_option_no_throw("--config"))
      fail("{}: {}: allowed only on the command line", path, item.key);
    if (!of_file.insert(option).second)
      fail("{}: {}: given more than once{}", path, item.key,
           option->get_items_expected_max() > 1 ? "; write one list: [\"A\", \"B\"]" : "");
    if (of_command_line.contains(option)) continue;  // the command line goes first
    try {
      if (option->get_items_expected_max() == 0) {  // a flag
        if (item.values.size() > 1) fail("{}: {}: expected true or false", path, item.key);
        option->add_result(
            option->get_flag_value(item.key, item.values.empty() ? "true" : item.values.front()));
      } else {
        if (item.values.empty()) fail("{}: {}: a value is missing", path, item.key);
        option->add_result(item.values);
      }
      option->run_callback();
    } catch (const CLI::Error& error) {
      fail("{}: {}: {}", path, item.key, error.what());
    }
  }
  check_files(command);
}

}  // namespace bertcl::tools
