// SPDX-License-Identifier: Apache-2.0
// A progress line on a terminal, or JSON lines for a program that draws its own.
#pragma once
#include <chrono>
#include <string>

namespace bertcl::tools {

/// One line on standard error that is drawn over itself: a bar, the counts, the time left. Only
/// where standard error is a terminal; the destructor wipes it away. With BERTCL_PROGRESS=lines it
/// is a line {"progress": "int8", "done": 120, "total": 480, "unit": "questions"} each time
/// instead.
class Progress {
 public:
  /// `task` stands before the bar, `unit` after the counts: "int8 [====>   ] 120/480 questions".
  /// What is done before `silence` is over draws nothing.
  Progress(std::string task, std::string unit, std::chrono::milliseconds silence = {});
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Redraws the bar at most ten times a second. Where progress is JSON lines, the last call
  /// (`done`
  /// == `total`) always writes one. `note` follows the counts, as a rate does; may be empty.
  void update(std::size_t done, std::size_t total, const std::string& note = {});

  /// The line for `done` of `total` after `seconds`, for at most `columns` columns.
  std::string line(std::size_t done, std::size_t total, double seconds, const std::string& note,
                   std::size_t columns) const;

 private:
  using Clock = std::chrono::steady_clock;
  std::string task_, unit_;
  bool terminal_, lines_;
  bool drawn_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

}  // namespace bertcl::tools
