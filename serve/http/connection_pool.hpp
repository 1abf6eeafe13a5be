// SPDX-License-Identifier: Apache-2.0
// Threads that serve connections, started as they are needed, and a bounded queue of connections
// without one.
#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace bertcl::serve {

class ConnectionPool {
 public:
  /// `no_thread` is called for each connection that has to wait for a thread.
  ConnectionPool(std::size_t max_threads, std::size_t max_waiting, std::function<void()> no_thread)
      : max_threads_(std::max<std::size_t>(max_threads, 1)),
        max_waiting_(max_waiting),
        no_thread_(std::move(no_thread)) {}
  ~ConnectionPool() { shutdown(); }

  /// Waits for room: until then the system keeps further connections, and refuses them in the end.
  void enqueue(std::function<void()> serve) {
    std::unique_lock lock(mutex_);
    taken_.wait(lock, [&] { return stopping_ || waiting_.size() < max_waiting_; });
    waiting_.push_back(std::move(serve));
    if (waiting_.size() > free_ && !start_thread()) no_thread_();
    added_.notify_one();
  }

  /// enqueue() waits no longer, so that its caller can go on to close().
  void stop_waiting() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    taken_.notify_all();
  }

  /// Takes no further connections; true if all that it has end within `grace`.
  bool close(std::chrono::milliseconds grace) {
    std::unique_lock lock(mutex_);
    closed_ = true;
    added_.notify_all();
    return ended_.wait_for(lock, grace,
                           [&] { return waiting_.empty() && free_ == threads_.size(); });
  }

  /// Serves all that wait, then ends the threads.
  void shutdown() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    added_.notify_all();
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }

  /// True while connections wait that no free thread will take.
  bool is_full() const {
    const std::lock_guard lock(mutex_);
    return waiting_.size() > free_;
  }

 private:
  /// False if there are as many as allowed, by the caller or by the system.
  bool start_thread() {
    if (threads_.size() >= max_threads_) return false;
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      if (threads_.empty()) throw;
      return false;
    }
    ++free_;
    return true;
  }

  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      added_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      const std::function<void()> serve = std::move(waiting_.front());
      waiting_.pop_front();
      --free_;
      lock.unlock();
      taken_.notify_one();
      serve();
      lock.lock();
      ++free_;
      if (closed_) ended_.notify_all();
    }
  }

  const std::size_t max_threads_, max_waiting_;
  const std::function<void()> no_thread_;
  mutable std::mutex mutex_;
  std::condition_variable added_;  // threads without a connection wait for it
  std::condition_variable taken_;  // a connection has got a thread
  std::condition_variable ended_;  // a connection has ended, once no others come
  std::deque<std::function<void()>> waiting_;
  std::size_t free_ = 0;   // threads without a connection
  bool stopping_ = false;  // enqueue() does not wait for room
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace bertcl::serve
