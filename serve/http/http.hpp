// SPDX-License-Identifier: Apache-2.0
// Requests and responses as the routes see them, without the HTTP library.
#pragma once
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace bertcl::serve {

struct HttpRequest {
  std::string method, path, body;
  /// A header's value; "" if it is absent.
  std::function<std::string(const std::string& name)> header = [](const std::string&) {
    return std::string();
  };
  /// True once the client has closed the connection.
  std::function<bool()> is_disconnected = [] { return false; };
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string type = "application/json";
  Headers headers = {};
};

/// An answer with an error; `type` is one of text-embeddings-inference: "Validation", "Tokenizer",
/// "Empty", "Backend", "Overloaded", "Unhealthy".
struct HttpError : std::runtime_error {
  HttpError(int code, std::string kind, const std::string& what, Headers added = {})
      : std::runtime_error(what),
        status(code),
        type(std::move(kind)),
        message(what),
        headers(std::move(added)) {}
  int status;
  std::string type;
  std::string message;  ///< whole: what() ends at a zero byte, which a path may have
  Headers headers;
};

/// A code of metrics and logs only, as in nginx: the client closed the connection before the
/// answer.
constexpr int kClientClosedRequest = 499;

/// Nobody reads the answer: the client has gone.
struct ClientDisconnected : std::runtime_error {
  ClientDisconnected() : std::runtime_error("the client closed the connection") {}
};

}  // namespace bertcl::serve
