// SPDX-License-Identifier: Apache-2.0
// Ends long work on SIGHUP, SIGINT and SIGTERM and removes its temporary files.
#include "tools/terminal/interruption.hpp"

#include <csignal>

namespace bertcl::tools {
namespace {

struct Interrupted {
  int signal;
};

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
  } catch (const Interrupted& interrupted) {
    return std::raise(interrupted.signal);  // its action is the default one again: to end
  }
}

void throw_if_interrupted() {
  if (interrupting_signal != 0) throw Interrupted{interrupting_signal};
}

}  // namespace bertcl::tools
