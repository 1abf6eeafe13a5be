// SPDX-License-Identifier: Apache-2.0
// A connection as the HTTP library reads and writes it, and those that wait for a request.
#pragma once
#include <httplib.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace bertcl::serve {

/// A connection, used by one thread. The library's own stream is private and drops pipelined bytes.
/// Functions without `override` are not virtual in all its releases.
class Connection : public httplib::Stream {
 public:
  /// Reads and writes fail after `io_time` without progress.
  Connection(int socket, std::chrono::milliseconds io_time) : socket_(socket), io_time_(io_time) {}
  /// Closes it once what was written is sent.
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// True if the client has closed it, or its sending half.
  bool is_disconnected() const;
  /// What ended a wait.
  enum class WakeReason { client, event, timeout };
  /// Sleeps until the client has sent more or has gone, one of the descriptors `others` can be
  /// read, or `max` has passed. Does not sleep while the client has not taken what was written.
  WakeReason wait(std::chrono::milliseconds max, std::array<int, 2> others) const;

  /// Bytes of a head: the library bounds neither its lines nor their number.
  static constexpr std::size_t kMaxHead = 64 * 1024;
  /// Keeps what is read from now on, until it is taken. After kMaxHead bytes reads give 0, as if
  /// the client had sent no more.
  void keep_head() {
    head_.clear();
    keeps_head_ = true;
  }
  std::string take_head() {
    keeps_head_ = false;
    return std::exchange(head_, {});
  }

  bool is_readable() const override { return begin_ < end_; }
  bool wait_readable() const;
  bool wait_writable() const;
  bool is_writable() const { return wait_writable(); }
  ssize_t read(char* to, std::size_t size) override;
  /// Bytes sent, maybe fewer than `size`; -1 also for a client that has ended its sending half.
  ssize_t write(const char* from, std::size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  int socket() const override { return socket_; }
  time_t duration() const { return 0; }

 private:
  /// Those of `wanted`, and errors, once there are any; 0 after `time`, whatever signals come.
  int events(short wanted, std::chrono::milliseconds time) const;
  /// True until the client has closed it, or its sending half, and all that it sent was read.
  bool is_open() const;

  const int socket_;
  const std::chrono::milliseconds io_time_;
  std::array<char, 4096> buffer_;  // what of it was read, but not taken, is [begin_, end_)
  std::size_t begin_ = 0, end_ = 0;
  std::string head_;
  bool keeps_head_ = false;
};

/// The connections whose next request has not been read in full.
class ReadingConnections {
 public:
  void add(const Connection& connection);
  void remove(const Connection& connection);
  /// Ends reading. They get no reply: Connection::write() takes their clients for gone.
  void stop();

 private:
  std::mutex mutex_;
  std::set<int> sockets_;
  bool stopped_ = false;
};

}  // namespace bertcl::serve
