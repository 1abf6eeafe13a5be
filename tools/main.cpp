// SPDX-License-Identifier: Apache-2.0
// Entry of the program `bertcl`.
#include "tools/program.hpp"

int main(int argc, char** argv) { return bertcl::tools::run_program(argc, argv); }
