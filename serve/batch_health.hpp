// SPDX-License-Identifier: Apache-2.0
// Whether the batches of a model still run.
#pragma once
#include <chrono>
#include <mutex>
#include <optional>

namespace bertcl::serve {

/// Counts batches that failed one after the other. A few may be caused by bad requests; a
/// health-check batch decides.
class BatchHealth {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr int kSuspicious = 3;

  void count(bool failed) {
    const std::lock_guard lock(mutex_);
    if (!failed)
      failures_ = 0;
    else if (++failures_ == 1)
      since_ = Clock::now();
  }
  /// The first failure since a batch ran; none below kSuspicious of them.
  std::optional<Clock::time_point> failing_since() const {
    const std::lock_guard lock(mutex_);
    return failures_ < kSuspicious ? std::nullopt : std::optional(since_);
  }

 private:
  mutable std::mutex mutex_;
  int failures_ = 0;
  Clock::time_point since_;
};

}  // namespace bertcl::serve
