// SPDX-License-Identifier: Apache-2.0
// A connection as the HTTP library reads and writes it, and those that wait for a request.
#pragma once
#include <httplib.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "support/parse_number.hpp"

namespace bertcl::serve {

/// Of the thread that serves it. The library's own is not declared, and drops what a client has
/// sent beyond a request. Without `override` stands what some releases of the library lack.
class Connection : public httplib::Stream {
 public:
  /// Ends where nothing can be read or written for `io_time`.
  Connection(int socket, std::chrono::milliseconds io_time) : socket_(socket), io_time_(io_time) {}
  /// All that was written is sent.
  ~Connection() override {
    shutdown(socket_, SHUT_RDWR);
    // The system would reset a connection with bytes left to read, and the reply with it.
    while (recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT) > 0) {
    }
    close(socket_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// True if the client has closed it, or its sending half.
  bool is_disconnected() const {
    return (events(POLLRDHUP, {}) & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  }
  /// What ended a wait.
  enum class WakeReason { client, event, timeout };
  /// Sleeps until the client has sent more or has gone, one of the descriptors `others` can be
  /// read, or `most` has passed. Does not sleep while the client has not taken what was written.
  WakeReason wait(std::chrono::milliseconds most, std::array<int, 2> others) const {
    if (is_readable() || (events(POLLOUT, {}) & POLLOUT) == 0) return WakeReason::client;
    pollfd ends[] = {
        {socket_, POLLIN | POLLRDHUP, 0}, {others[0], POLLIN, 0}, {others[1], POLLIN, 0}};
    const int ready = poll(ends, std::size(ends), static_cast<int>(most.count()));
    if (ready == 0) return WakeReason::timeout;
    return ready < 0 || ends[0].revents != 0 ? WakeReason::client : WakeReason::event;
  }

  /// Keeps what is read from now on, until it is taken.
  void keep_head() {
    head_.clear();
    keeps_head_ = true;
  }
  std::string take_head() {
    keeps_head_ = false;
    return std::exchange(head_, {});
  }

  bool is_readable() const override { return begin_ < end_; }
  bool wait_readable() const { return is_readable() || events(POLLIN, io_time_) != 0; }
  bool wait_writable() const { return (events(POLLOUT, io_time_) & POLLOUT) != 0 && is_open(); }
  bool is_writable() const { return wait_writable(); }
  ssize_t read(char* to, std::size_t size) override {
    if (!wait_readable()) return -1;
    if (!is_readable()) {
      const ssize_t read = recv(socket_, buffer_.data(), buffer_.size(), 0);
      if (read <= 0) return read;
      begin_ = 0;
      end_ = static_cast<std::size_t>(read);
    }
    size = std::min(size, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, size);
    begin_ += size;
    if (keeps_head_) head_.append(to, size);
    return static_cast<ssize_t>(size);
  }
  ssize_t write(const char* from, std::size_t size) override {
    return wait_writable() ? send(socket_, from, size, MSG_NOSIGNAL) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    name_end(getpeername, ip, port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    name_end(getsockname, ip, port);
  }
  int socket() const override { return socket_; }
  time_t duration() const { return 0; }

 private:
  /// Of `wanted`, and errors, once there are any; 0 after `time`.
  int events(short wanted, std::chrono::milliseconds time) const {
    pollfd end{socket_, wanted, 0};
    while (poll(&end, 1, static_cast<int>(time.count())) < 0 && errno == EINTR) {
    }
    return end.revents;
  }
  /// True until the client has closed it, or its sending half, and all that it sent was read.
  bool is_open() const {
    char next;
    const ssize_t read = recv(socket_, &next, 1, MSG_PEEK | MSG_DONTWAIT);
    return read > 0 || (read < 0 && (errno == EAGAIN || errno == EWOULDBLOCK));
  }
  /// Leaves them as they are if the client has reset the connection.
  void name_end(int (*get_name)(int, sockaddr*, socklen_t*), std::string& ip, int& port) const {
    sockaddr_storage storage{};
    socklen_t size = sizeof(storage);
    auto* address = reinterpret_cast<sockaddr*>(&storage);
    char host[NI_MAXHOST], service[NI_MAXSERV];
    if (get_name(socket_, address, &size) != 0 ||
        getnameinfo(address, size, host, sizeof(host), service, sizeof(service),
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
      return;
    ip = host;
    port = parse_number<int>(service).value_or(port);
  }

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
  void add(const Connection& connection) {
    const std::lock_guard lock(mutex_);
    if (stopped_) shutdown(connection.socket(), SHUT_RD);
    sockets_.insert(connection.socket());
  }
  void remove(const Connection& connection) {
    const std::lock_guard lock(mutex_);
    sockets_.erase(connection.socket());
  }
  /// Ends reading. They get no reply: the library treats their clients as gone.
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    for (const int socket : sockets_) shutdown(socket, SHUT_RD);
  }

 private:
  std::mutex mutex_;
  std::set<int> sockets_;
  bool stopped_ = false;
};

}  // namespace bertcl::serve
