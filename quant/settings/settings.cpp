// SPDX-License-Identifier: Apache-2.0
// Options of `bertcl quantize` by their names, for callers that have no command line.
#include "quant/settings/settings.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "bertcl/error.hpp"
#include "quant/settings/quantize_options.hpp"
#include "support/did_you_mean.hpp"

namespace bertcl::quant {
namespace {

std::vector<std::string> long_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

}  // namespace

void apply(const std::vector<Setting>& settings, const RangeSource& source, Options& options) {
  CLI::App command;
  command.set_help_flag();
  add_quantizer_options(command, options);
  std::string overrides;
  command.add_option("--overrides", overrides);
  std::vector<std::string> words;  // the parser takes the last first
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting) {
    const std::string name = "--" + setting->first;
    if (!command.get_option_no_throw(name))
      throw Error(
          fmt::format("unknown option '{}'{}", name, did_you_mean(name, long_names(command))));
    // Without its value an option would take the next one as that.
    if (setting->second.empty() && command.get_option(name)->get_items_expected_min() > 0)
      throw Error(fmt::format("{} needs a value", name));
    words.push_back(setting->second.empty() ? name : name + "=" + setting->second);
  }
  try {
    command.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw Error(error.what());
  }
  if (!overrides.empty()) options.overrides = read_overrides(overrides);
  check_accuracy(asked_accuracy(command, options.accuracy), options, source);
}

}  // namespace bertcl::quant
