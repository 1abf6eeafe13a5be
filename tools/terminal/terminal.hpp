// SPDX-License-Identifier: Apache-2.0
// Output of the program on standard output and standard error.
#pragma once
#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace bertcl::tools {

/// `text` without terminal control sequences, since names and texts come from files: control
/// characters other than \n and \t as "\x1b", what is not UTF-8 as U+FFFD. Lines longer than
/// `longest` code points lose their middle, and say how much.
std::string printable(std::string_view text, std::size_t longest = static_cast<std::size_t>(-1));

/// Writes to standard output as it is, as required for JSON. Throws Error if it cannot be written.
void write_output(std::string_view text);

/// Throws Error if a write to standard output failed.
void finish_output();

/// "bertcl: MESSAGE" on standard error, lines cut at 1,000 characters.
void write_error(const std::string& message);

/// Writes to standard error as it is. Where it cannot be written, nobody could be told.
void write_to_stderr(std::string_view text);

/// Streams that the caller has closed become ones that fail; else the next file that is opened
/// takes their number, and what is printed goes into it. For the start of the program.
void open_standard_streams();

/// Prints to standard output, printable. Throws Error if it cannot be written.
template <typename... T>
void print_text(fmt::format_string<T...> format, T&&... values) {
  write_output(printable(fmt::format(format, std::forward<T>(values)...)));
}

/// write_error() of a formatted message.
template <typename... T>
void warn(fmt::format_string<T...> format, T&&... values) {
  write_error(fmt::format(format, std::forward<T>(values)...));
}

/// Warns of texts that lost tokens, if there are any.
inline void warn_of_truncation(std::size_t cut, std::size_t all, std::string_view unit,
                               int length) {
  if (cut > 0) warn("truncated {} of {} {} to {} tokens", cut, all, unit, length);
}

}  // namespace bertcl::tools
