// SPDX-License-Identifier: Apache-2.0
// The socket of a connection that is known by its addresses only, as the HTTP library tells them.
#pragma once
#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

namespace bertcl::serve {

/// Looked for when it is first asked for something; a thread remembers the last one. The thread
/// that serves the connection may use it, which keeps the socket open meanwhile.
class Connection {
 public:
  Connection(std::string remote_address, int remote_port, int local_port)
      : remote_address_(std::move(remote_address)),
        remote_port_(remote_port),
        local_port_(local_port) {}

  /// True if the client has closed it, or its sending half.
  bool is_disconnected();
  /// Ends it once all that was written has been sent; what the client has sent is dropped.
  void close();
  /// What ended a wait.
  enum class WakeReason { client, event, timeout };
  /// Sleeps until the client has sent more or has gone, one of the descriptors `events` can be
  /// read, or `most` has passed. Does not sleep while the client has not taken what was written.
  WakeReason wait(std::chrono::milliseconds most, std::array<int, 2> events);

 private:
  int socket();
  bool is_this_connection(int descriptor) const;

  std::string remote_address_;
  int remote_port_, local_port_;
  std::optional<int> socket_;  // -1: there is none
};

/// The connections whose requests have been read in full and are not answered yet.
class RequestsInWork {
 public:
  void add(const std::string& remote_address, int remote_port);
  void remove(const std::string& remote_address, int remote_port);
  /// Ends reading on all other connections of the server's port. They get no reply: the library
  /// treats their clients as gone.
  void stop_reading_others(int local_port);

 private:
  std::mutex mutex_;
  std::set<std::pair<std::string, int>> remotes_;
};

}  // namespace bertcl::serve
