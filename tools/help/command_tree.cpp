// SPDX-License-Identifier: Apache-2.0
// The commands and options of the program as plain records, for completions and the man page.
#include "tools/help/command_tree.hpp"

#include <CLI/CLI.hpp>
#include <cstring>
#include <sstream>

#include "support/option_checks.hpp"
#include "tools/options/file_options.hpp"

namespace bertcl::tools {
namespace {

/// "a|b" of one_of(), whatever type the help names.
std::string values_of(CLI::Option& option) {
  try {
    const std::string name = option.get_validator(0)->get_name();
    if (name.starts_with(kOneOf)) return name.substr(std::strlen(kOneOf));
  } catch (const CLI::OptionNotFound&) {
  }
  const std::string type = option.get_type_name();
  return type.find('|') == type.npos ? "" : type;  // not a word as FILE
}

std::vector<std::string> choices_of(CLI::Option& option) {
  std::vector<std::string> choices;
  if (option.get_items_expected_max() == 0) return choices;
  std::istringstream list(values_of(option));
  for (std::string choice; std::getline(list, choice, '|');) choices.push_back(choice);
  return choices;
}

OptionEntry entry_of(CLI::Option& option) {
  OptionEntry entry;
  for (const std::string& name : option.get_snames()) entry.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) entry.names.push_back("--" + name);
  for (const std::string& name : entry.names)
    entry.title += (entry.title.empty() ? "" : ",") + name;
  if (entry.title.empty()) entry.title = option.get_name();
  entry.takes_value = option.get_items_expected_max() > 0;
  if (entry.takes_value && !entry.names.empty() && !option.get_type_name().empty())
    entry.title += " " + option.get_type_name();
  entry.description = option.get_description();
  entry.choices = choices_of(option);
  entry.takes_file = names_file(option);
  return entry;
}

CommandEntry entry_of(CLI::App& command, const std::string& program) {
  CommandEntry entry;
  entry.name = program.empty() ? "" : command.get_name();
  entry.description = command.get_description();
  entry.example = command.get_footer();
  std::string positionals;
  for (CLI::Option* option : command.get_options()) {
    entry.options.push_back(entry_of(*option));
    if (!option->get_positional()) continue;
    const std::string many = option->get_items_expected_max() > 1 ? "..." : "";
    const std::string name = option->get_name(true);
    positionals += option->get_required() ? " " + name + many : " [" + name + many + "]";
  }
  entry.usage = program.empty() ? command.get_name() + " COMMAND [OPTIONS]"
                                : program + " " + entry.name + " [OPTIONS]" + positionals;
  return entry;
}

}  // namespace

std::vector<CommandEntry> command_tree(CLI::App& program) {
  std::vector<CommandEntry> commands = {entry_of(program, "")};
  for (CLI::App* command : program.get_subcommands({}))
    commands.push_back(entry_of(*command, program.get_name()));
  return commands;
}

}  // namespace bertcl::tools
