// SPDX-License-Identifier: Apache-2.0
// A line for each request, for people or as JSON.
#pragma once
#include <unistd.h>

#include <memory>
#include <string>

#include "serve/server.hpp"

namespace bertcl::serve {

/// Any thread may call it without waiting for a slow reader: one thread writes the lines, in order.
/// If more than 4,096 wait, the oldest are dropped.
class RequestLog {
 public:
  /// `level`: "all", "requests" (no answers of health and metrics), "errors" (requests that
  /// failed), "none". `file`: where the lines go.
  RequestLog(bool json, std::string level, int file = STDERR_FILENO);
  ~RequestLog();  ///< after drain()

  /// Waits until all lines are written, a second at most.
  void drain();

  /// A line that is about no request; `level` is "info" or "error".
  void message(const std::string& level, const std::string& text);

  void write(const AccessLogEntry& answered);

 private:
  class FileSink;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether an entry is logged at one of the levels of RequestLog.
bool is_logged(const AccessLogEntry& answered, const std::string& level);
/// {"time": .., "level": .., "method": .., "path": .., ..} in one line.
std::string log_json(const AccessLogEntry& answered, const std::string& time);
/// "POST /embed 200 12.3 ms texts=4 tokens=120 minilm"
std::string log_text(const AccessLogEntry& answered);

}  // namespace bertcl::serve
