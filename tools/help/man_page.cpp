// SPDX-License-Identifier: Apache-2.0
// bertcl.1 in the macros of man(7).
#include <fmt/format.h>

#include <sstream>

#include "tools/help/command_tree.hpp"

namespace bertcl::tools {
namespace {

/// Escaped, so that every character stands for itself and no line is a request of roff.
std::string man_text(const std::string& text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\')
      result += "\\e";
    else if (c == '-')
      result += "\\-";
    else
      result += c;
    begins = c == '\n';
  }
  return result;
}

/// Paragraphs are filled; lines that are indented keep their form.
std::string paragraphs(const std::string& text) {
  std::string result;
  std::istringstream lines(text);
  bool kept = false;
  for (std::string line; std::getline(lines, line);) {
    const bool keep = line.starts_with(' ');
    if (keep != kept) result += keep ? ".nf\n" : ".fi\n";
    kept = keep;
    result += line.empty() ? ".PP\n" : man_text(line) + '\n';
  }
  return result + (kept ? ".fi\n" : "");
}

std::string options_text(const CommandEntry& command) {
  std::string text;
  for (const OptionEntry& option : command.options)
    text += fmt::format(".TP\n.B {}\n{}", man_text(option.title), paragraphs(option.description));
  return text;
}

}  // namespace

std::string man_page(const std::vector<CommandEntry>& commands, const std::string& version) {
  const CommandEntry& program = commands.front();
  std::string page = fmt::format(
      ".TH BERTCL 1 \"\" \"bertcl {}\" \"User Commands\"\n"
      ".SH NAME\nbertcl \\- run BERT on OpenCL devices, in int8 and in float\n"
      ".SH SYNOPSIS\n.B {}\n.SH DESCRIPTION\n{}",
      version, man_text(program.usage), paragraphs(program.description));
  page += options_text(program) + ".SH COMMANDS\n";
  for (const CommandEntry& command : commands) {
    if (command.name.empty()) continue;
    page += fmt::format(".SS {}\n{}.PP\n.B {}\n{}", man_text(command.name),
                        paragraphs(command.description), man_text(command.usage),
                        options_text(command));
    if (!command.example.empty()) page += ".PP\n" + paragraphs(command.example);
  }
  page +=
      ".SH ENVIRONMENT\n"
      ".TP\n.B BERTCL_DEVICE\nDefault for \\-\\-device.\n"
      ".TP\n.B BERTCL_MODEL\nDefault model of bertcl answer and bertcl serve, PATH or NAME=PATH.\n"
      ".TP\n.B BERTCL_MAX_MEMORY\nDefault for \\-\\-max\\-memory.\n"
      ".TP\n.B BERTCL_CACHE\nCache folder for compiled kernels and tuning results, or off.\n"
      ".TP\n.B BERTCL_TUNING\nTuning file, written by bertcl tune, or off.\n"
      ".TP\n.B BERTCL_DISABLE\nCapabilities of the device to disable.\n"
      ".SH EXIT STATUS\n0: success. 1: a check failed. 2: invalid usage or input.\n";
  return page;
}

}  // namespace bertcl::tools
