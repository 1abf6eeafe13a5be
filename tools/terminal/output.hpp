// SPDX-License-Identifier: Apache-2.0
// Output of commands: tables, JSON, files.
#pragma once
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::tools {

/// Rows under a head, columns as wide as their widest cell. Columns whose head begins with '>' are
/// aligned to the right; their head is shown without it.
class Table {
 public:
  explicit Table(std::vector<std::string> head);
  /// Cells are made printable (terminal.hpp), on one line, and cut at 200 characters. Throws
  /// std::logic_error if the number of cells is not that of the head.
  void add(std::vector<std::string> row);
  std::string str() const;

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;  // the first is the head
};

/// "10,570"
std::string grouped(std::int64_t number);

/// "10,570 reviews", "1 review", "1 launch": `unit` in the plural.
std::string counted(std::int64_t number, std::string_view unit);

/// "1.5 GB", "45.3 MB", "512 B" (powers of 1000).
std::string bytes_text(std::uint64_t bytes);

/// The same for a computed sum; "" for none.
std::string bytes_cell(double bytes);

/// "1.2 GOP", "45 MOP", "0.5 kOP"; "" for none.
std::string operations_text(double operations);

/// "1 h 02 min", "3 min 05 s", "12.3 s", "45 ms".
std::string duration_text(double seconds);

/// Writes JSON to standard output for "-", to a file (under a temporary name first) for any other
/// name. What is not UTF-8 becomes U+FFFD.
void write_json(const std::string& target, const nlohmann::ordered_json& json);

/// True for a name of the file, pipe or terminal that is standard output, such as /dev/stdout.
bool is_standard_output(const std::filesystem::path& path);

/// Throw Error that names `path` if there is no file to read, or if none can be written there; for
/// the start of long work.
void check_readable(const std::filesystem::path& path);
void check_writable(const std::filesystem::path& path);

}  // namespace bertcl::tools
