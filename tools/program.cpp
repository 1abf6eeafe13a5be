// SPDX-License-Identifier: Apache-2.0
// The program `bertcl`: its commands, and from exceptions to exit codes.
#include "tools/program.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "support/did_you_mean.hpp"
#include "support/for_each.hpp"
#include "support/option_name.hpp"
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

constexpr std::size_t kLongestChoices = 60;  // characters of "a|b|c"
constexpr const char* kUnknownOption = "unknown option ";
constexpr const char* kOutOfMemory = "out of memory; use a smaller batch";

int failed(const std::string& message) {
  write_error(message);
  return kBadUse;
}

/// Help with one line for each command; all of its text is shown by `bertcl COMMAND --help`.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    label("SUBCOMMAND", "COMMAND");
    column_width(26);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string text = command->get_description();
    std::stringstream line;
    CLI::detail::format_help(line, command->get_name(), text.substr(0, text.find('\n')),
                             column_width_);
    return line.str();
  }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    return "\n" + Formatter::make_usage(app, std::move(name));
  }
  /// Without the value that CLI11 gives to a negative flag: "--per-channel,--per-tensor{false}".
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    return without(Formatter::make_option_name(option, positional), "{false}");
  }
  /// Lists show by their type that they may go on: "OP,...". Many choices are told by the text.
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = Formatter::make_option_opts(option);
    if (const std::string type = option->get_type_name(); type.size() > kLongestChoices)
      if (const auto at = text.find(type); at != text.npos) text.replace(at, type.size(), "NAME");
    return text.ends_with(",... ...") ? without(text, " ...") : text;
  }

 private:
  static std::string without(std::string text, std::string_view part) {
    for (std::size_t at; (at = text.find(part)) != std::string::npos;) text.erase(at, part.size());
    return text;
  }
};

/// Help without the groups of options that have a title of their own, unless all is asked for.
class ShortHelpFormatter : public HelpFormatter {
 public:
  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (!is_positional && group != "Options") return "";
    return HelpFormatter::make_group(std::move(group), is_positional, std::move(options));
  }
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::All)
      return HelpFormatter().make_help(app, std::move(name), CLI::AppFormatMode::Normal);
    std::string text = HelpFormatter::make_help(app, std::move(name), mode);
    for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
    return text;
  }
};

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
      std::vector<std::string> words =
          program.remaining(true);  // what follows "--" is the program's
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

/// What is wrong with a size of memory; else it is put in bytes.
std::string as_bytes(std::string& text) {
  const std::string given = text;
  try {
    if (!text.starts_with('-') && CLI::AsSizeValue(false)(text).empty() && text != "0") {
      // Past the 64 bits of AsSizeValue it is their largest value.
      std::int64_t bytes = 0;
      const char* end = text.data() + text.size();
      if (std::from_chars(text.data(), end, bytes).ec == std::errc{}) return "";
      return fmt::format("'{}' is out of range", given);
    }
  } catch (const CLI::ValidationError&) {  // its message lists 30 units
  }
  return fmt::format("'{}' is not a size such as 500M or 4G", given);
}

}  // namespace

CLI::App* add_command(CLI::App& program, const std::string& name, const std::string& description,
                      const std::string& example, CommonOptions& options) {
  CLI::App* command = program.add_subcommand(name, description);
  options.command = name;
  command->group("Commands");
  command->footer("Example:\n  " + example + "\n");
  command
      ->add_option("--device", options.device,
                   "OpenCL device: index, cpu, gpu, or part of its name; by default "
                   "BERTCL_DEVICE,\nelse the first GPU, else the CPU")
      ->type_name("DEVICE");
  command
      ->add_option_function<std::uint64_t>(
          "--max-memory",
          [](const std::uint64_t& bytes) {
            // Also for sessions that a command makes for others, as the quantizer's.
            setenv("BERTCL_MAX_MEMORY", std::to_string(bytes).c_str(), 1);
          },
          "Memory limit, in bytes or as 500M or 4G, for weights and intermediate tensors on "
          "the\ndevice and for folded constants; by default BERTCL_MAX_MEMORY, else what the "
          "device has")
      ->transform(CLI::Validator(as_bytes, ""))
      ->type_name("SIZE");
  output_file(
      command->add_option(
          "--json", options.json,
          "Write the result as JSON to FILE (new, or an earlier report); - prints\nonly the JSON"),
      OutputFileKind::report_or_terminal);
  return command;
}

void shorten_help(CLI::App& command) {
  command.set_help_all_flag("--help-all", "Print help for all options");
  command.formatter(std::make_shared<ShortHelpFormatter>());
}

int run_program(int argc, const char* const* argv) {
  use_command_line_names() = true;
  CLI::App program(
      "bertcl runs BERT on any OpenCL device, in int8 and in float; makes the int8 model; "
      "and\nmeasures its accuracy and speed.",
      "bertcl");
  program.set_version_flag("--version", "bertcl " BERTCL_VERSION);
  program.formatter(std::make_shared<HelpFormatter>());
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
