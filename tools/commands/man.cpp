// SPDX-License-Identifier: Apache-2.0
// bertcl man: the manual page.
#include <CLI/CLI.hpp>

#include "tools/help/command_tree.hpp"
#include "tools/options/command.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {

void add_man(CLI::App& program, Action& action) {
  CLI::App* command = program.add_subcommand(
      "man", "Print the manual page, bertcl(1), with all commands and options");
  command->group("Commands");
  command->footer("Example:\n  bertcl man | man -l -\n");
  command->callback([&program, &action] {
    action = [&program] {
      write_output(man_page(command_tree(program), BERTCL_VERSION));
      return kOk;
    };
  });
}

}  // namespace bertcl::tools
