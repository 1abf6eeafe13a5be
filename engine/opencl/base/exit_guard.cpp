// SPDX-License-Identifier: Apache-2.0
// The exit handler with its flag, and the process that uses CL.
#include "opencl/base/exit_guard.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "bertcl/error.hpp"

namespace bertcl::opencl {
namespace {
std::atomic<bool> ending{false}, forked{false};
}  // namespace

void watch_exit() {
  std::atexit([] { ending = true; });
}

void refuse_fork() {
  static const int watched = pthread_atfork(nullptr, nullptr, [] { forked = true; });
  if (watched == 0 && forked)
    throw Error(
        "this process was forked from one that had used OpenCL, and OpenCL drivers do not survive "
        "a fork; spawn it instead (Python: multiprocessing.set_start_method(\"spawn\")), or fork "
        "before the first use of bertcl",
        ErrorCode::device);
}

bool process_was_forked() { return forked; }
bool process_is_ending() { return ending || forked; }

}  // namespace bertcl::opencl
