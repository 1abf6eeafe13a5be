// SPDX-License-Identifier: Apache-2.0
// Ends long work on SIGHUP, SIGINT and SIGTERM and removes its temporary files.
#include "tools/terminal/interruption.hpp"

#include <csignal>
#include <cstdlib>
#include <iterator>

namespace bertcl::tools {
namespace {

struct Interrupted {};

using Handler = void (*)(int);

constexpr int kSignals[] = {SIGHUP, SIGINT, SIGTERM};

volatile std::sig_atomic_t interrupting_signal = 0;
Handler earlier[std::size(kSignals)];  // what a signal would have done

void remember_signal(int signal) {
  interrupting_signal = signal;
  for (std::size_t i = 0; i < std::size(kSignals); ++i)
    if (kSignals[i] == signal) std::signal(signal, earlier[i]);
}

}  // namespace

int run_interruptibly(const std::function<int()>& work) {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    const Handler before = std::signal(kSignals[i], remember_signal);
    if (before == SIG_IGN) std::signal(kSignals[i], SIG_IGN);
    if (before != remember_signal) earlier[i] = before;
  }
  try {
    return work();
  } catch (...) {
    // An error after a signal follows from it: LLVM in a driver removes the file that it writes.
    if (interrupting_signal == 0) throw;
    std::raise(interrupting_signal);  // its action is the earlier one again: to end
    std::_Exit(128 + interrupting_signal);
  }
}

void throw_if_interrupted() {
  if (interrupting_signal != 0) throw Interrupted{};
}

}  // namespace bertcl::tools
