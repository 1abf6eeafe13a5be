// SPDX-License-Identifier: Apache-2.0
// The content of files and streams.
#pragma once
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <string>
#include <system_error>

#include "bertcl/error.hpp"
#include "support/check_path.hpp"

namespace bertcl {

/// All that is left of a stream; bad() afterwards where reading fails. An iterator over its buffer
/// would throw what names neither the file nor the reason.
inline std::string read_all(std::istream& stream) {
  std::string content;
  std::array<char, std::size_t{1} << 16> part;
  while (stream.read(part.data(), part.size()) || stream.gcount() > 0)
    content.append(part.data(), static_cast<std::size_t>(stream.gcount()));
  return content;
}

/// Content of a file, byte for byte. Throws Error that names it.
inline std::string read_bytes(const std::filesystem::path& path) {
  check_path(path, "file");
  const auto refuse = [&](const std::string& reason) {
    throw Error(path.string() + ": " + reason, ErrorCode::io);
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) refuse("is a directory, expected a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) refuse(std::string("cannot open: ") + std::strerror(errno));
  std::string content = read_all(file);
  if (file.bad()) refuse(std::string("cannot read: ") + std::strerror(errno));
  return content;
}

}  // namespace bertcl
