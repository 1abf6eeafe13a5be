// SPDX-License-Identifier: Apache-2.0
// A progress line on a terminal, or JSON lines for a program that draws its own.
#include "tools/terminal/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "support/json_text.hpp"
#include "tools/terminal/output.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

bool lines_are_wanted() {
  const char* wanted = std::getenv("BERTCL_PROGRESS");
  return wanted && wanted == std::string_view("lines");
}

}  // namespace

Progress::Progress(std::string task, std::string unit, std::chrono::milliseconds silence)
    : task_(std::move(task)),
      unit_(std::move(unit)),
      terminal_(isatty(STDERR_FILENO) == 1),
      lines_(lines_are_wanted()),
      next_(start_ + silence) {}

Progress::~Progress() {
  if (drawn_) std::fputs("\r\033[K", stderr);
}

void Progress::update(std::size_t done, std::size_t total, const std::string& note) {
  if (!terminal_ && !lines_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_ && !(lines_ && done >= total)) return;
  next_ = now + std::chrono::milliseconds(100);
  if (lines_) {
    const nlohmann::ordered_json line = {
        {"progress", task_}, {"done", done}, {"total", total}, {"unit", unit_}};
    write_to_stderr(json_text(line) + "\n");
    return;
  }
  winsize size{};
  const std::size_t columns =
      ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  write_to_stderr(fmt::format("\r{}\033[K", line(done, total, seconds, note, columns - 1)));
  std::fflush(stderr);
  drawn_ = true;
}

std::string Progress::line(std::size_t done, std::size_t total, double seconds,
                           const std::string& note, std::size_t columns) const {
  const double share = static_cast<double>(std::min(done, total)) /
                       static_cast<double>(std::max<std::size_t>(1, total));
  std::string text = fmt::format(" {}/{} {}", grouped(static_cast<std::int64_t>(done)),
                                 grouped(static_cast<std::int64_t>(total)), unit_);
  if (!note.empty()) text += ", " + note;
  if (done > 0 && share < 1.0) {
    text += fmt::format(", {} left", duration_text(seconds / share - seconds));
  }
  // The bar takes what the words leave.
  const std::size_t words = task_.size() + text.size() + 3;
  const std::size_t width = std::min<std::size_t>(24, columns > words ? columns - words : 0);
  if (width >= 4) {
    const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
    std::string bar(full, '=');
    if (full < width) bar += '>';
    bar.resize(width, ' ');
    text = " [" + bar + "]" + text;
  }
  text = task_ + text;
  if (text.size() > columns) text.resize(columns);
  return text;
}

}  // namespace bertcl::tools
