// SPDX-License-Identifier: Apache-2.0
// The exit handler and its flag.
#include "opencl/exit_guard.hpp"

#include <atomic>
#include <cstdlib>

namespace bertcl::opencl {
namespace {
std::atomic<bool> ending{false};
}

void watch_exit() {
  std::atexit([] { ending = true; });
}

bool process_is_ending() { return ending; }

}  // namespace bertcl::opencl
