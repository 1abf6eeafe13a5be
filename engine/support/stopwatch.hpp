// SPDX-License-Identifier: Apache-2.0
// Elapsed time by a monotonic clock.
#pragma once
#include <chrono>

namespace bertcl {

/// Starts when it is made.
class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  double milliseconds() const { return 1000 * seconds(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace bertcl
