// SPDX-License-Identifier: Apache-2.0
// Options of `bertcl quantize` by their names, for callers that have no command line.
#include "quant/settings/settings.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

#include "bertcl/error.hpp"
#include "quant/settings/accuracy_checks.hpp"
#include "quant/settings/quantize_options.hpp"
#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"

namespace bertcl::quant {
namespace {

std::vector<std::string> long_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  return names;
}

/// The parser's message, with options named as the caller does.
std::string renamed(std::string message, const std::vector<std::string>& names) {
  const auto is_part = [](unsigned char c) {
    return c == '-' || std::islower(c) || std::isdigit(c);
  };
  for (std::size_t at = 0; (at = message.find("--", at)) != std::string::npos; ++at) {
    const auto end = std::find_if_not(message.begin() + at + 2, message.end(), is_part);
    const std::string name(message.begin() + at + 2, end);
    if (std::ranges::find(names, name) == names.end()) continue;
    const std::string as_field = option_name(name);
    message.replace(at, name.size() + 2, as_field);
    at += as_field.size();
  }
  return message;
}

/// did_you_mean() of options, each named as the caller does.
std::string meant(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::string> named;
  for (const std::string& known : names) named.push_back(option_name(known));
  return did_you_mean(option_name(name), named);
}

}  // namespace

void apply(const std::vector<Setting>& settings, const JobOptions& job, Options& options) {
  CLI::App command;
  command.set_help_flag();
  MarkedOptions marked;
  add_quantizer_options(command, options, marked);
  std::string overrides;
  command.add_option("--overrides", overrides);
  std::vector<std::string> words;  // the parser takes the last first
  const std::vector<std::string> names = long_names(command);
  std::set<std::string> given;
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting) {
    std::string bare = setting->first;
    std::ranges::replace(bare, '_', '-');
    const std::string name = "--" + bare;
    if (!command.get_option_no_throw(name))
      fail("unknown option {}{}", option_name(bare), meant(bare, names));
    // Without its value an option would take the next one as that.
    if (setting->second.empty() && command.get_option(name)->get_items_expected_min() > 0)
      fail("{} needs a value", option_name(bare));
    if (!given.insert(bare).second && command.get_option(name)->get_items_expected_max() == 1)
      fail("{} is given twice", option_name(bare));
    words.push_back(setting->second.empty() ? name : name + "=" + setting->second);
  }
  try {
    command.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw Error(renamed(error.what(), names));
  } catch (const std::out_of_range&) {  // of CLI11, which reads values of flags as integers
    throw Error("the value of a flag is neither true nor false");
  }
  if (!overrides.empty()) options.overrides = read_overrides(overrides);
  check_accuracy_options(explicit_options(command, marked, options), options, job);
}

std::map<std::string, std::string> flags() {
  CLI::App command;
  command.set_help_flag();
  Options options;
  MarkedOptions marked;
  add_quantizer_options(command, options, marked);
  std::map<std::string, std::string> undone_by;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_items_expected_max() > 0) continue;
    std::vector<std::string> names = option->get_lnames();
    for (std::string& name : names) std::ranges::replace(name, '-', '_');
    for (const std::string& name : names)
      undone_by[name] = names.size() == 1 ? "" : name == names[0] ? names[1] : names[0];
  }
  return undone_by;
}

}  // namespace bertcl::quant
