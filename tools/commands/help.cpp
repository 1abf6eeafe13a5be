// SPDX-License-Identifier: Apache-2.0
// bertcl help: what --help prints, for those who ask without dashes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/did_you_mean.hpp"
#include "support/fail.hpp"
#include "tools/options/command.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {

void add_help(CLI::App& program, Action& action) {
  const auto name = std::make_shared<std::string>();
  std::vector<std::string> names;
  for (const CLI::App* command : program.get_subcommands({})) names.push_back(command->get_name());
  CLI::App* command = program.add_subcommand("help", "Explain a command, as COMMAND --help does");
  names.emplace_back("help");
  command->group("Commands");
  command->footer("Example:\n  bertcl help quantize\n");
  command->add_option("COMMAND", *name, "The command; by default all are listed")
      ->type_name(fmt::format("{}", fmt::join(names, "|")));
  command->callback([&program, &action, name, names] {
    action = [&program, name, names] {
      if (!name->empty() && std::ranges::find(names, *name) == names.end())
        fail("unknown command '{}'{}; see bertcl --help", *name, did_you_mean(*name, names));
      // help() of a program explains the command that was parsed, which is this one.
      program.clear();
      write_output(name->empty() ? program.help()
                                 : program.get_subcommand(*name)->help(program.get_name()));
      return kOk;
    };
  });
}

}  // namespace bertcl::tools
