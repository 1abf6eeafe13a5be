// SPDX-License-Identifier: Apache-2.0
// The help of the program and of its commands.
#include "tools/help/help_formatter.hpp"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace bertcl::tools {
namespace {

constexpr std::size_t kLongestChoices = 60;  // characters of "a|b|c"
constexpr std::size_t kWidth = 100, kColumn = 26;

/// Lines of at most `width` bytes, broken at spaces. Lines that are indented keep their form.
std::string wrapped(const std::string& text, std::size_t width) {
  std::string result;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    while (line.size() > width && !line.starts_with(' ')) {
      const std::size_t space = line.rfind(' ', width);
      if (space == std::string::npos) break;
      result += line.substr(0, space) + '\n';
      line.erase(0, space + 1);
    }
    result += line + '\n';
  }
  if (!result.empty()) result.pop_back();
  return result;
}

/// Help with one line for each command; all of its text is shown by `bertcl COMMAND --help`.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    label("SUBCOMMAND", "COMMAND");
    column_width(kColumn);
  }
  std::string make_description(const CLI::App* app) const override {
    return wrapped(Formatter::make_description(app), kWidth) + '\n';
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(Formatter::make_option_desc(option), kWidth - kColumn);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    const std::string text = command->get_description();
    std::stringstream line;
    CLI::detail::format_help(line, command->get_name(), text.substr(0, text.find('\n')),
                             column_width_);
    return line.str();
  }
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    std::string text = Formatter::make_help(app, std::move(name), mode);
    for (std::size_t at; (at = text.find("\n\n\n")) != std::string::npos;) text.erase(at, 1);
    return text;
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
    return HelpFormatter::make_help(app, std::move(name), mode);
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() { return std::make_shared<HelpFormatter>(); }

void shorten_help(CLI::App& command) {
  command.set_help_all_flag("--help-all", "Print help for all options");
  command.formatter(std::make_shared<ShortHelpFormatter>());
}

}  // namespace bertcl::tools
