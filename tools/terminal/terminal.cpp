// SPDX-License-Identifier: Apache-2.0
// Output of the program on standard output and standard error.
#include "tools/terminal/terminal.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "support/fail.hpp"
#include "text/base/unicode.hpp"

namespace bertcl::tools {
namespace {

constexpr std::size_t kLongestError = 1000;

bool steers(char32_t c) { return (c < 0x20 && c != '\n' && c != '\t') || (c >= 0x7f && c < 0xa0); }

void append_printable(std::string& result, char32_t c) {
  if (steers(c))
    result += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
  else
    text::append_code_point(result, c);
}

void append_line(std::string& result, const std::u32string& line, std::size_t longest) {
  const std::size_t half = std::min(longest, line.size()) / 2;
  const bool cut = line.size() > longest;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (cut && i == half) {
      const std::size_t left_out = line.size() - 2 * half;
      result += fmt::format(" ... {} characters ... ", left_out);
      i += left_out;
    }
    append_printable(result, line[i]);
  }
}

[[noreturn]] void cannot_write(int error) {
  fail("standard output: cannot write: {}", std::strerror(error));
}

}  // namespace

std::string printable(std::string_view text, std::size_t longest) {
  std::string result;
  std::u32string line;
  for (std::size_t at = 0; at < text.size();) {
    const char32_t c = text::next_code_point(text, at);
    if (c != '\n') {
      line += c;
      continue;
    }
    append_line(result, line, longest);
    result += '\n';
    line.clear();
  }
  append_line(result, line, longest);
  return result;
}

void write_output(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) cannot_write(errno);
}

void finish_output() {
  if (std::fflush(stdout) != 0) cannot_write(errno);
  if (std::ferror(stdout)) cannot_write(EIO);
}

void write_error(const std::string& message) {
  write_to_stderr(fmt::format("bertcl: {}\n", printable(message, kLongestError)));
}

void write_to_stderr(std::string_view text) {
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

}  // namespace bertcl::tools
