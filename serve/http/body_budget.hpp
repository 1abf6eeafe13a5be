// SPDX-License-Identifier: Apache-2.0
// Bytes of bodies that are worked on at the same time, over all connections.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <optional>
#include <utility>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace bertcl::serve {

/// JSON takes up to 50 times its size once it is parsed, and as much again in tokens and a reply.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes) : bytes_(bytes) {}

  /// What a request has of the budget while it lives.
  class Share {
   public:
    Share(BodyBudget& budget, std::size_t bytes) : budget_(&budget), bytes_(bytes) {}
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(other.bytes_) {}
    Share& operator=(Share&&) = delete;
    ~Share() {
      if (budget_) budget_->give_back(bytes_);
    }

   private:
    BodyBudget* budget_;
    std::size_t bytes_;
  };

  /// Empty if there is no room within `time`. A body larger than the budget takes all of it.
  std::optional<Share> take(std::size_t bytes, std::chrono::milliseconds time) {
    bytes = std::min(bytes, bytes_);
    std::unique_lock lock(mutex_);
    if (!freed_.wait_for(lock, time, [&] { return taken_ + bytes <= bytes_; })) return std::nullopt;
    taken_ += bytes;
    return Share(*this, bytes);
  }

 private:
  void give_back(std::size_t bytes) {
    if (bytes == 0) return;
    {
      const std::lock_guard lock(mutex_);
      taken_ -= bytes;
    }
    freed_.notify_all();
#if defined(__GLIBC__)
    // glibc's arenas keep freed memory: gigabytes after large bodies in many threads.
    constexpr std::size_t large = 256 * 1024;
    if (bytes >= large) malloc_trim(0);
#endif
  }

  const std::size_t bytes_;
  std::mutex mutex_;
  std::condition_variable freed_;
  std::size_t taken_ = 0;
};

}  // namespace bertcl::serve
