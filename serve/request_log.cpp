// SPDX-License-Identifier: Apache-2.0
// Lines of the log, by spdlog.
#include "serve/request_log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "serve/json_text.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::serve {
namespace {

/// What a client sends stays on its line and leaves the terminal alone: without control characters,
/// and as valid UTF-8 of about 200 bytes.
std::string plain(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  std::string shown;
  for (std::size_t at = 0; at < text.size();) {
    if (shown.size() >= kLongest) return shown + "..";
    const char32_t c = text::next_code_point(text, at);
    const bool steers = c < 0x20 || (c >= 0x7F && c < 0xA0);
    text::append_code_point(shown, steers ? U'?' : c);
  }
  return shown;
}

/// What orchestrators and Prometheus ask for all the time.
bool is_probe(const std::string& route) {
  const auto probes = {"/health",
                       "/ping",
                       "/metrics",
                       "/v2/health/live",
                       "/v2/health/ready",
                       "/v2/models/{}/ready",
                       "/v2/models/{}/versions/{}/ready"};
  return std::find(probes.begin(), probes.end(), route) != probes.end();
}

std::string now() {
  const auto time = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch());
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(time)),
                     ms.count() % 1000);
}

}  // namespace

std::string log_json(const AccessLogEntry& answered, const std::string& time) {
  const char* level = answered.status >= 500 || answered.status == 424 ? "error"
                      : answered.status >= 400                         ? "warning"
                                                                       : "info";
  nlohmann::ordered_json line = {{"time", time},
                                 {"level", level},
                                 {"method", answered.method},
                                 {"path", answered.path},
                                 {"status", answered.status},
                                 {"ms", 1000 * answered.seconds},
                                 {"client", answered.client},
                                 {"model", answered.record.model},
                                 {"texts", answered.record.texts},
                                 {"tokens", answered.record.tokens}};
  if (!answered.id.empty()) line["id"] = answered.id;
  if (!answered.record.error.empty()) line["error"] = answered.record.error;
  return dump(line);
}

bool is_logged(const AccessLogEntry& answered, const std::string& level) {
  if (level == "none") return false;
  if (answered.status >= 400) return true;
  return level == "all" || (level == "requests" && !is_probe(answered.record.route));
}

std::string log_text(const AccessLogEntry& answered) {
  const RequestRecord& record = answered.record;
  std::string line = fmt::format("{} {} {} {:.1f} ms", plain(answered.method), plain(answered.path),
                                 answered.status, 1000 * answered.seconds);
  if (record.texts > 0) line += fmt::format(" texts={} tokens={}", record.texts, record.tokens);
  if (!record.model.empty()) line += ' ' + plain(record.model);
  if (!answered.id.empty()) line += " id=" + plain(answered.id);
  if (!record.error.empty()) line += ": " + plain(record.error);
  return line;
}

struct RequestLog::Impl {
  bool json;
  std::string level;
  spdlog::logger logger{"bertcl", std::make_shared<spdlog::sinks::stderr_sink_mt>()};
};

RequestLog::RequestLog(bool json, std::string level)
    : impl_(std::make_unique<Impl>(Impl{json, std::move(level)})) {
  impl_->logger.set_pattern("%v");
  impl_->logger.flush_on(spdlog::level::info);
}

RequestLog::~RequestLog() = default;

void RequestLog::message(const std::string& level, const std::string& text) {
  const std::string time = now();
  impl_->logger.info(impl_->json ? dump({{"time", time}, {"level", level}, {"message", text}})
                                 : time + ' ' + text);
}

void RequestLog::write(const AccessLogEntry& answered) {
  if (!is_logged(answered, impl_->level)) return;
  const std::string time = now();
  impl_->logger.info(impl_->json ? log_json(answered, time) : time + ' ' + log_text(answered));
}

}  // namespace bertcl::serve
