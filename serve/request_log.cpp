// SPDX-License-Identifier: Apache-2.0
// Lines of the log, by spdlog.
#include "serve/request_log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "serve/json_text.hpp"

namespace bertcl::serve {
namespace {

/// What a client sends stays on its line and leaves the terminal alone.
std::string plain(std::string text) {
  constexpr std::size_t kLongest = 200;
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "..";
  return text;
}

std::string now() {
  const auto time = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch());
  return fmt::format("{:%FT%T}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(time)),
                     ms.count() % 1000);
}

}  // namespace

std::string log_json(const Answered& answered, const std::string& time) {
  nlohmann::ordered_json line = {{"time", time},
                                 {"method", answered.method},
                                 {"path", answered.path},
                                 {"status", answered.status},
                                 {"ms", 1000 * answered.seconds},
                                 {"client", answered.client},
                                 {"model", answered.record.model},
                                 {"texts", answered.record.texts},
                                 {"tokens", answered.record.tokens}};
  if (!answered.record.error.empty()) line["error"] = answered.record.error;
  return dump(line);
}

std::string log_text(const Answered& answered) {
  const RequestRecord& record = answered.record;
  std::string line = fmt::format("{} {} {} {:.1f} ms", plain(answered.method), plain(answered.path),
                                 answered.status, 1000 * answered.seconds);
  if (record.texts > 0) line += fmt::format(" {} texts {} tokens", record.texts, record.tokens);
  if (!record.model.empty()) line += ' ' + plain(record.model);
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

void RequestLog::write(const Answered& answered) {
  if (impl_->level == "none" || (impl_->level == "errors" && answered.status < 400)) return;
  const std::string time = now();
  impl_->logger.info(impl_->json ? log_json(answered, time) : time + ' ' + log_text(answered));
}

}  // namespace bertcl::serve
