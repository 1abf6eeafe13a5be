// SPDX-License-Identifier: Apache-2.0
// Entry of the program `bertcl`.
#include "tools/program.hpp"
#include "tools/terminal/terminal.hpp"

int main(int argc, char** argv) {
  bertcl::tools::open_standard_streams();
  return bertcl::tools::run_program(argc, argv);
}
