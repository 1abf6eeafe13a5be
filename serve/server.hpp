// SPDX-License-Identifier: Apache-2.0
// The HTTP server in front of a Service.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "serve/service.hpp"

namespace bertcl::serve {

struct ServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;  ///< 0 picks a free one
  /// Connections that are served at a time. A request keeps its thread while it is queued: with
  /// fewer threads than the queues have places, health is not answered under full load.
  std::size_t threads = 1024;
  std::size_t waiting_connections = 256;  ///< accepted, without a thread
  std::size_t payload_limit = 2'000'000;  ///< bytes of a request body, unpacked
  /// Until an idle connection is closed. Proxies reuse theirs for 60 s, and do not send a POST
  /// again that meets the close: theirs must end first.
  int keep_alive_seconds = 75;
  int io_seconds = 30;       ///< between two pieces of a request or an answer
  double body_seconds = 60;  ///< for all of a request body
};

/// A request that was answered, for logs.
struct AccessLogEntry {
  std::string method, path, client;
  int status = 0;
  double seconds = 0;
  RequestRecord record;
  std::string id = {};  ///< that the client or a proxy gave it (X-Request-Id)
};

class Server {
 public:
  Server(Service& service, ServerOptions options, std::function<void(const AccessLogEntry&)> log);
  ~Server();

  /// Returns the port. Throws Error if it is in use, or the host is not one of this machine.
  int bind();
  /// Serves until stop(), then what is being served.
  void listen();
  void stop();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace bertcl::serve
