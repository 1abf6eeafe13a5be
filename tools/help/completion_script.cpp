// SPDX-License-Identifier: Apache-2.0
// Scripts that complete command lines in bash, zsh and fish.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/fail.hpp"
#include "tools/help/command_tree.hpp"

namespace bertcl::tools {
namespace {

std::vector<std::string> long_names(const CommandEntry& command) {
  std::vector<std::string> names;
  for (const OptionEntry& option : command.options)
    for (const std::string& name : option.names)
      if (name.starts_with("--")) names.push_back(name);
  return names;
}

// Single quotes keep all but themselves.
std::string quoted(std::string text) {
  std::ranges::replace(text, '\'', '`');
  return "'" + text + "'";
}

/// "eval:--task|eval:-t", the patterns of a case.
std::string patterns(const CommandEntry& command, const OptionEntry& option) {
  std::vector<std::string> all;
  for (const std::string& name : option.names) all.push_back(command.name + ":" + name);
  return fmt::format("{}", fmt::join(all, "|"));
}

std::string bash_script(const std::vector<CommandEntry>& commands) {
  std::vector<std::string> names;
  std::string options, values;
  for (const CommandEntry& command : commands) {
    if (!command.name.empty()) names.push_back(command.name);
    std::string places;
    for (const OptionEntry& option : command.options) {
      if (option.names.empty())
        places = fmt::format("{}", fmt::join(option.choices, " "));
      else if (!option.choices.empty())
        values += fmt::format("    {}) choices='{}' ;;\n", patterns(command, option),
                              fmt::join(option.choices, " "));
      else if (option.takes_file)
        values += fmt::format("    {}) files=yes ;;\n", patterns(command, option));
      else if (option.takes_value)
        values += fmt::format("    {}) return ;;\n", patterns(command, option));
    }
    options += fmt::format("    {}) words='{}' places='{}' ;;\n", quoted(command.name),
                           fmt::join(long_names(command), " "), places);
  }
  return fmt::format(R"(# Completes the command lines of bertcl.
_bertcl() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command= words= places= choices= files= i IFS=$' \t\n'
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; ++i)); do
    if [[ ${{COMP_WORDS[i]}} != -* ]]; then
      command=${{COMP_WORDS[i]}}
      break
    fi
  done
  case $command:$previous in
{}  esac
  case $command in
{}  esac
  if [[ -z $choices && -z $files ]]; then
    if [[ -z $command ]]; then
      choices="{} $words"
    elif [[ $current == -* ]]; then
      choices=$words
    else
      choices=$places
    fi
  fi
  if [[ -n $choices ]]; then
    COMPREPLY=($(compgen -W "$choices" -- "$current"))
  else
    IFS=$'\n'
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _bertcl bertcl
)",
                     values, options, fmt::join(names, " "));
}

std::string fish_script(const std::vector<CommandEntry>& commands) {
  std::string script = "# Completes the command lines of bertcl.\n";
  for (const CommandEntry& command : commands) {
    const std::string condition = command.name.empty()
                                      ? "__fish_use_subcommand"
                                      : "__fish_seen_subcommand_from " + command.name;
    if (!command.name.empty())
      script += fmt::format("complete -c bertcl -n __fish_use_subcommand -f -a {} -d {}\n",
                            command.name, quoted(command.summary()));
    for (const OptionEntry& option : command.options) {
      if (option.names.empty()) continue;
      script += fmt::format("complete -c bertcl -n {}", quoted(condition));
      for (const std::string& name : option.names)
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.choices.empty())
        script += fmt::format(" -x -a '{}'", fmt::join(option.choices, " "));
      else if (option.takes_value)
        script += option.takes_file ? " -r -F" : " -x";
      script += fmt::format(" -d {}\n",
                            quoted(option.description.substr(0, option.description.find('\n'))));
    }
  }
  return script;
}

}  // namespace

std::string completion_script(const std::vector<CommandEntry>& commands, const std::string& shell) {
  if (shell == "fish") return fish_script(commands);
  if (shell == "bash") return bash_script(commands);
  if (shell == "zsh")
    return "#compdef bertcl\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(commands);
  fail("unknown shell '{}' (choose from bash, zsh, fish)", shell);
}

}  // namespace bertcl::tools
