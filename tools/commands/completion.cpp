// SPDX-License-Identifier: Apache-2.0
// bertcl completion: a script that completes command lines.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "support/option_checks.hpp"
#include "tools/help/command_tree.hpp"
#include "tools/options/command.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {

void add_completion(CLI::App& program, Action& action) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand(
      "completion",
      "Print a shell completion script\n\n"
      "bash: put it into ~/.local/share/bash-completion/completions/bertcl; zsh: as _bertcl into a "
      "folder of $fpath; fish: into ~/.config/fish/completions/bertcl.fish.");
  command->group("Commands");
  command->footer("Example:\n  bertcl completion bash\n");
  one_of(command->add_option("SHELL", *shell, "The shell"), {"bash", "zsh", "fish"})->required();
  command->callback([&program, &action, shell] {
    action = [&program, shell] {
      write_output(completion_script(command_tree(program), *shell));
      return kOk;
    };
  });
}

}  // namespace bertcl::tools
