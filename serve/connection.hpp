// SPDX-License-Identifier: Apache-2.0
// The socket of a connection that is known by its addresses only, as the HTTP library tells them.
#pragma once
#include <optional>
#include <string>

namespace bertcl::serve {

/// Looked for when it is first asked for something. The thread that serves the connection may use
/// it, which keeps the socket open meanwhile.
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

 private:
  int socket();

  std::string remote_address_;
  int remote_port_, local_port_;
  std::optional<int> socket_;  // -1: there is none
};

}  // namespace bertcl::serve
