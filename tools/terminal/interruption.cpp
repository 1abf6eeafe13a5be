// SPDX-License-Identifier: Apache-2.0
// Ends long work on SIGHUP, SIGINT and SIGTERM and removes its temporary files.
#include "tools/terminal/interruption.hpp"

#include <csignal>

namespace bertcl::tools {
namespace {

struct Interrupted {};

volatile std::sig_atomic_t interrupting_signal = 0;

void remember_signal(int signal) {
  interrupting_signal = signal;
  std::signal(signal, SIG_DFL);
}

}  // namespace

int run_interruptibly(const std::function<int()>& work) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM})
    if (std::signal(signal, remember_signal) == SIG_IGN) std::signal(signal, SIG_IGN);
  try {
    return work();
  } catch (...) {
    // An error after a signal follows from it: LLVM in a driver removes the file that it writes.
    if (interrupting_signal == 0) throw;
    return std::raise(interrupting_signal);  // its action is the default one again: to end
  }
}

void throw_if_interrupted() {
  if (interrupting_signal != 0) throw Interrupted{};
}

}  // namespace bertcl::tools
