// SPDX-License-Identifier: Apache-2.0
// Entry of the program `bertcl`.
#include <unistd.h>

#include <thread>

#include "tools/container.hpp"
#include "tools/program.hpp"
#include "tools/terminal/terminal.hpp"

int main(int argc, char** argv) {
  using namespace bertcl::tools;
  open_standard_streams();
  limit_cpu_threads(cpu_quota(), static_cast<int>(std::thread::hardware_concurrency()));
  if (getpid() == 1) end_by_signals();
  return run_program(argc, argv);
}
