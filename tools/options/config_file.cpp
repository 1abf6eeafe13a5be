// SPDX-License-Identifier: Apache-2.0
// Options of a command from a file, which CLI11 reads for whole programs only.
#include "tools/options/config_file.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "bertcl/error.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/lower_case.hpp"
#include "tools/terminal/output.hpp"

namespace bertcl::tools {
namespace {

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
  std::vector<CLI::ConfigItem> items;
  try {
    items = CLI::ConfigTOML().from_file(path);
  } catch (const CLI::Error& error) {
    fail("{}: {}", path, error.what());
  }
  std::set<const CLI::Option*> of_command_line, of_file;
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0) of_command_line.insert(option);
  for (const CLI::ConfigItem& item : items) {
    if (!item.parents.empty())
      fail("{}: {}: sections are not supported; move its options to the top level, as port = 8081",
           path, item.parents.front());
    CLI::Option* option = find_option(command, item.name, path);
    if (option == command.get_help_ptr() || option == command.get_option_no_throw("--config"))
      fail("{}: {}: allowed only on the command line", path, item.name);
    if (!of_file.insert(option).second)
      fail("{}: {}: given more than once{}", path, item.name,
           option->get_items_expected_max() > 1 ? "; write one list: [\"A\", \"B\"]" : "");
    if (of_command_line.contains(option)) continue;  // the command line goes first
    try {
      if (option->get_items_expected_max() == 0) {  // a flag
        // CLI11 makes one item of equal keys that follow one another.
        if (item.inputs.size() > 1) fail("{}: {}: given more than once", path, item.name);
        option->add_result(
            option->get_flag_value(item.name, item.inputs.empty() ? "true" : item.inputs.front()));
      } else {
        option->add_result(item.inputs);
      }
      option->run_callback();
    } catch (const CLI::Error& error) {
      fail("{}: {}: {}", path, item.name, error.what());
    }
  }
}

}  // namespace bertcl::tools
