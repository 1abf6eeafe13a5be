// SPDX-License-Identifier: Apache-2.0
// The interpreter's lock, released and taken so that threads survive its end.
#pragma once
#include <nanobind/nanobind.h>
#include <unistd.h>

/// Calls `take`, which takes the lock. When the interpreter has ended, Python before 3.14 ends
/// other threads there by pthread_exit, whose unwinding would abort the process at the first
/// noexcept function. Such a thread waits for the end of the process instead, as in 3.14.
template <class Take>
auto take_lock(const Take& take) {
  try {
    return take();
  } catch (...) {
    for (;;) pause();
  }
}

class LockReleased {
 public:
  LockReleased() = default;
  LockReleased(const LockReleased&) = delete;
  LockReleased& operator=(const LockReleased&) = delete;
  ~LockReleased() {
    take_lock([this] { PyEval_RestoreThread(state_); });
  }

 private:
  PyThreadState* state_ = PyEval_SaveThread();
};

class LockTaken {
 public:
  LockTaken() = default;
  LockTaken(const LockTaken&) = delete;
  LockTaken& operator=(const LockTaken&) = delete;
  ~LockTaken() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_ = take_lock([] { return PyGILState_Ensure(); });
};
