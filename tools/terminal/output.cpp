// SPDX-License-Identifier: Apache-2.0
// Output of commands: tables, JSON, files.
#include "tools/terminal/output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/json_text.hpp"
#include "support/pending_file.hpp"
#include "text/base/unicode.hpp"
#include "tools/terminal/terminal.hpp"

namespace bertcl::tools {
namespace {

constexpr std::size_t kLongestCell = 200;

}  // namespace

Table::Table(std::vector<std::string> head) {
  for (std::string& cell : head) {
    right_.push_back(cell.starts_with('>'));
    if (right_.back()) cell.erase(0, 1);
  }
  rows_.push_back(std::move(head));
}

void Table::add(std::vector<std::string> row) {
  if (row.size() != right_.size()) throw std::logic_error("a table row of another length");
  for (std::string& cell : row) {
    cell = printable(cell, kLongestCell);
    std::ranges::replace(cell, '\n', ' ');
  }
  rows_.push_back(std::move(row));
}

std::string Table::str() const {
  std::vector<std::size_t> widths(right_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], text::count_code_points(row[i]));
    }
  }
  std::string result;
  for (const auto& row : rows_) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string space(widths[i] - text::count_code_points(row[i]), ' ');
      line += i == 0 ? "" : "  ";
      line += right_[i] ? space + row[i] : row[i] + space;
    }
    line.resize(line.find_last_not_of(' ') + 1);
    result += line + '\n';
  }
  return result;
}

std::string grouped(std::int64_t number) {
  const std::string digits = std::to_string(number < 0 ? -number : number);
  std::string result = number < 0 ? "-" : "";
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) result += ',';
    result += digits[i];
  }
  return result;
}

std::string counted(std::int64_t number, std::string_view unit) {
  const bool by_es = unit.ends_with("ches") || unit.ends_with("ses");  // launches, biases
  if (number == 1) unit.remove_suffix(by_es ? 2 : 1);
  return fmt::format("{} {}", grouped(number), unit);
}

std::string bytes_text(std::uint64_t bytes) {
  double value = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (value < 999.5) break;
    value /= 1000;
    unit = next;
  }
  return fmt::format("{:.{}f} {}", value, value < 99.95 && bytes >= 1000 ? 1 : 0, unit);
}

std::string bytes_cell(double bytes) {
  return bytes > 0 ? bytes_text(static_cast<std::uint64_t>(bytes)) : "";
}

std::string operations_text(double operations) {
  for (const auto& [unit, factor] : {std::pair{"GOP", 1e9}, std::pair{"MOP", 1e6}})
    if (operations >= 0.9995 * factor) return fmt::format("{:.3g} {}", operations / factor, unit);
  return operations > 0 ? fmt::format("{:.3g} kOP", operations / 1e3) : "";
}

std::string duration_text(double seconds) {
  if (seconds < 0.9995) return fmt::format("{:.0f} ms", seconds * 1000);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<std::int64_t>(std::llround(seconds));
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

void write_json(const std::string& target, const nlohmann::ordered_json& json) {
  const std::string text = json_text(json, 2) + '\n';
  if (target == "-") {
    write_output(text);
  } else {
    write_file(target, text);
  }
}

bool is_standard_output(const std::filesystem::path& path) {
  struct stat named = {}, open = {};
  return ::stat(path.c_str(), &named) == 0 && ::fstat(STDOUT_FILENO, &open) == 0 &&
         named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

void check_readable(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    fail("{}: is a directory, expected a file", path.string());
  }
  if (access(path.c_str(), R_OK) != 0) {
    fail("{}: cannot open: {}", path.string(), std::strerror(errno));
  }
}

void check_writable(const std::filesystem::path& path) {
  if (path == "-") throw Error("'-' is not a file; only --json - writes to the terminal");
  if (access(path.c_str(), F_OK) != 0 && errno == ELOOP)
    fail("{}: cannot write: {}", path.string(), std::strerror(ELOOP));
  bertcl::check_writable(path);
}

}  // namespace bertcl::tools
