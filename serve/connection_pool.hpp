// SPDX-License-Identifier: Apache-2.0
// Threads that serve connections, and a bounded queue of connections without one.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace bertcl::serve {

class ConnectionPool {
 public:
  /// `no_thread` is called for each connection that has to wait for a thread.
  ConnectionPool(std::size_t threads, std::size_t most_waiting, std::function<void()> no_thread)
      : most_waiting_(most_waiting),
        no_thread_(std::move(no_thread)),
        free_(std::max<std::size_t>(threads, 1)) {
    const std::size_t count = free_;  // threads change it
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  }
  ~ConnectionPool() { shutdown(); }

  /// Waits for room: until then the system keeps further connections, and refuses them in the end.
  void enqueue(std::function<void()> serve) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || waiting_.size() < most_waiting_; });
    waiting_.push_back(std::move(serve));
    changed_.notify_all();
    if (waiting_.size() > free_) no_thread_();
  }

  /// Serves all that wait, then ends the threads.
  void shutdown() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  /// True while connections wait that no free thread will take.
  bool is_full() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size() > free_;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::function<void()> serve = std::move(waiting_.front());
      waiting_.pop_front();
      --free_;
      lock.unlock();
      changed_.notify_all();
      serve();
      lock.lock();
      ++free_;
    }
  }

  const std::size_t most_waiting_;
  const std::function<void()> no_thread_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  std::size_t free_;  // threads without a connection
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bertcl::serve
