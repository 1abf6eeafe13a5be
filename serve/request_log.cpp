// SPDX-License-Identifier: Apache-2.0
// Lines of the log, by spdlog.
#include "serve/request_log.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/async_logger.h>
#include <spdlog/details/null_mutex.h>
#include <spdlog/details/thread_pool.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

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

/// One thread, with all signals blocked.
std::shared_ptr<spdlog::details::thread_pool> writer_thread() {
  constexpr std::size_t kWaitingLines = 4096;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto restore = [](const sigset_t* mask) { pthread_sigmask(SIG_SETMASK, mask, nullptr); };
  const std::unique_ptr<const sigset_t, decltype(restore)> masked(&before, restore);
  return std::make_shared<spdlog::details::thread_pool>(kWaitingLines, 1);
}

/// The writer is blocked in write(), and joining it would block, too: it is left running.
void leave_running(std::shared_ptr<spdlog::details::thread_pool> writer) {
  static std::mutex mutex;
  static auto& blocked = *new std::vector<std::shared_ptr<spdlog::details::thread_pool>>;
  const std::lock_guard lock(mutex);
  blocked.push_back(std::move(writer));
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

/// Writes without stdio: a thread blocked in it would hold the lock that exit() waits for.
class RequestLog::FileSink : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit FileSink(int file) : file_(file) {}
  std::size_t written() const { return written_; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string_view left(message.payload.data(), message.payload.size());
    while (!left.empty()) {
      const ssize_t bytes = ::write(file_, left.data(), left.size());
      if (bytes < 0 && errno == EINTR) continue;
      if (bytes < 0 && errno == EAGAIN) {  // another program has made the file non-blocking
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      if (bytes < 0) break;
      left.remove_prefix(static_cast<std::size_t>(bytes));
    }
    ++written_;
  }
  void flush_() override {}

  int file_;
  std::atomic<std::size_t> written_ = 0;
};

struct RequestLog::Impl {
  void add(const std::string& line) {
    ++added;
    logger->info("{}\n", line);
  }
  bool all_written() const { return sink->written() + writer->overrun_counter() >= added; }

  bool json;
  std::string level;
  std::shared_ptr<FileSink> sink;
  std::shared_ptr<spdlog::details::thread_pool> writer = writer_thread();
  std::shared_ptr<spdlog::async_logger> logger = std::make_shared<spdlog::async_logger>(
      "bertcl", sink, writer, spdlog::async_overflow_policy::overrun_oldest);
  std::atomic<std::size_t> added = 0;
};

RequestLog::RequestLog(bool json, std::string level, int file)
    : impl_(new Impl{json, std::move(level), std::make_shared<FileSink>(file)}) {}

RequestLog::~RequestLog() {
  drain();
  if (!impl_->all_written()) leave_running(impl_->writer);
}

void RequestLog::drain() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (!impl_->all_written() && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void RequestLog::message(const std::string& level, const std::string& text) {
  const std::string time = now();
  impl_->add(impl_->json ? dump({{"time", time}, {"level", level}, {"message", text}})
                         : time + ' ' + text);
}

void RequestLog::write(const AccessLogEntry& answered) {
  if (!is_logged(answered, impl_->level)) return;
  const std::string time = now();
  impl_->add(impl_->json ? log_json(answered, time) : time + ' ' + log_text(answered));
}

}  // namespace bertcl::serve
