// SPDX-License-Identifier: Apache-2.0
// bertcl help: what --help prints, for those who ask without dashes.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "tools/options/option_checks.hpp"
#include "tools/program.hpp"
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
  one_of(command->add_option("COMMAND", *name, "The command; by default all are listed"), names);
  command->callback([&program, &action, name] {
    action = [&program, name] {
      // help() of a program explains the command that was parsed, which is this one.
      program.clear();
      write_output(name->empty() ? program.help()
                                 : program.get_subcommand(*name)->help(program.get_name()));
      return kOk;
    };
  });
}

}  // namespace bertcl::tools
