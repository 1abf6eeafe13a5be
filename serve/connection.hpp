// SPDX-License-Identifier: Apache-2.0
// The socket of a connection that is known by its addresses only, as the HTTP library tells them.
#pragma once
#include <optional>
#include <string>

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
  bool hung_up();
  /// Ends it once all that was written has been sent.
  void close_after_reply();
  /// Waits, asleep, until more has come or the client has closed it. Ends it after `seconds`, or
  /// when the descriptor `stop` can be read.
  void wait_for_request(int seconds, int stop);

 private:
  int socket();
  bool is_mine(int descriptor) const;

  std::string remote_address_;
  int remote_port_, local_port_;
  std::optional<int> socket_;  // -1: there is none
};

}  // namespace bertcl::serve
