// SPDX-License-Identifier: Apache-2.0
// The program `bertcl`: its commands, and from exceptions to exit codes.
#include "tools/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "support/did_you_mean.hpp"
#include "support/for_each.hpp"
#include "support/option_name.hpp"
#include "tools/help/help_formatter.hpp"
#include "tools/options/command.hpp"
#include "tools/options/file_options.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {

// The function add_NAME for each command, in the file of its name: adds it; the command line that
// names it sets the action.
#define BERTCL_COMMANDS(M)                                                                 \
  BERTCL_FOR_EACH(M, devices, inspect, quantize, eval, run, embed, verify, answer, rerank, \
                  similarity, classify, tag, fill_mask, serve, bench, tune, completion, man, help)
#define BERTCL_DECLARE_COMMAND(name) void add_##name(CLI::App& program, Action& action);
BERTCL_COMMANDS(BERTCL_DECLARE_COMMAND)

namespace {

constexpr const char* kUnknownOption = "unknown option ";
constexpr const char* kOutOfMemory = "out of memory; use a smaller batch";

int failed(const std::string& message) {
  write_error(message);
  return kBadUse;
}

/// What is wrong with a command line, and the option that it is about: empty where it is none, or
/// an unknown one.
struct Complaint {
  std::string text, option;
};

/// The help of the command that the user named, for "see bertcl eval --help": that of all options
/// where the other does not show the one in question.
std::string help_command(const CLI::App& program, const Complaint& complaint) {
  const auto commands = program.get_subcommands();
  if (commands.empty()) return "bertcl --help";
  const CLI::App& command = *commands.front();
  bool all = command.get_help_all_ptr() != nullptr;
  if (const CLI::Option* option =
          complaint.option.empty() ? nullptr : command.get_option_no_throw(complaint.option))
    all = all && option->get_group() != "Options";
  else
    all = all && complaint.text.starts_with(kUnknownOption);
  return fmt::format("bertcl {} --help{}", command.get_name(), all ? "-all" : "");
}

/// All names of the options of a command: "--output", "-o".
std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

Complaint unknown_option(const std::string& option, const CLI::App& command) {
  const std::vector<std::string> names = option_names(command);
  const auto meant = nearest_name(option, names);
  return {fmt::format("{}'{}'{}", kUnknownOption, option, did_you_mean(option, names)),
          meant.value_or("")};
}

/// The option at the beginning of what CLI11 says of it: "--limit: ..", "--data is required".
Complaint about_option(const std::string& text, const CLI::ParseError& error) {
  const std::string option = text.substr(0, text.find_first_of(": "));
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ArgumentMismatch)) {
    const std::string_view repeated = ": At Most 1 required but received ", no_value = " missing";
    if (const auto at = text.find(repeated); at != text.npos)
      return {fmt::format("{} was given {} times, expected once", option,
                          text.substr(at + repeated.size())),
              option};
    if (text.ends_with(no_value)) return {fmt::format("{} needs a value", option), option};
  }
  return {text, option};
}

/// What is wrong with a command line that begins with `first`. Without a command CLI11 says only
/// that one is required; where one is missing and another misspelt, only that it is missing.
Complaint complaint(const CLI::App& program, const CLI::ParseError& error,
                    const std::string& first) {
  const auto commands = program.get_subcommands();
  if (!commands.empty()) {
    for (const std::string& word : commands.front()->remaining())
      if (word.starts_with('-'))
        return unknown_option(word.substr(0, word.find('=')), *commands.front());
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) {
      // What follows "--" is the program's.
      std::vector<std::string> words = program.remaining(true);
      std::erase(words, "--");
      if (!words.empty()) return {fmt::format("unexpected argument '{}'", words.front()), ""};
    }
    return about_option(error.what(), error);
  }
  if (first.starts_with('-'))
    if (Complaint unknown = unknown_option(first, program); !unknown.option.empty()) return unknown;
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  return {fmt::format("{} '{}'{}",
                      first.starts_with('-') ? "expected a command before" : "unknown command",
                      first, did_you_mean(first, names)),
          ""};
}

}  // namespace

int run_program(int argc, const char* const* argv) {
  use_command_line_names() = true;
  CLI::App program(
      "bertcl runs BERT on any OpenCL device, in int8 and in float; makes the int8 model; and "
      "measures its accuracy and speed.",
      "bertcl");
  program.set_version_flag("--version", "bertcl " BERTCL_VERSION);
  program.formatter(help_formatter());
  program.require_subcommand(1);
  program.footer(
      "bertcl help COMMAND, or bertcl COMMAND --help, explains a command.\nExit codes: 0 success, "
      "1 a check failed, 2 bad "
      "usage or input.");
  Action action;
#define BERTCL_ADD_COMMAND(name) add_##name(program, action);
  BERTCL_COMMANDS(BERTCL_ADD_COMMAND)

  if (argc < 2) {
    std::fputs(program.help().c_str(), stderr);
    return kBadUse;
  }
  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& done) {  // --help, --version
    program.exit(done);
    return std::cout.flush() ? 0 : failed("standard output: cannot write");
  } catch (const CLI::ParseError& error) {
    const Complaint wrong = complaint(program, error, argv[1]);
    return failed(fmt::format("{}; see {}", wrong.text, help_command(program, wrong)));
  } catch (const std::out_of_range&) {  // of CLI11, which reads values of flags as integers
    return failed("the value of a flag is neither true nor false");
  }
  try {
    check_files(*program.get_subcommands().front());
    const int code = action();
    finish_output();
    return code;
  } catch (const std::bad_alloc&) {
    return failed(kOutOfMemory);
  } catch (const std::length_error&) {  // a size beyond any memory
    return failed(kOutOfMemory);
  } catch (const std::exception& error) {
    return failed(error.what());
  }
}

}  // namespace bertcl::tools
