// SPDX-License-Identifier: Apache-2.0
// Whole files as text.
#include "text/base/file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "bertcl/error.hpp"
#include "support/check_path.hpp"
#include "support/read_all.hpp"

namespace bertcl::text {

std::string read_bytes(const std::filesystem::path& path) {
  check_path(path, "file");
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw Error(fmt::format("{}: is a directory, expected a file", path.string()), ErrorCode::io);
  }
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(fmt::format("{}: cannot open: {}", path.string(), std::strerror(errno)),
                ErrorCode::io);
  std::string content = read_all(file);
  if (file.bad())
    throw Error(fmt::format("{}: cannot read: {}", path.string(), std::strerror(errno)),
                ErrorCode::io);
  return content;
}

std::string read_file(const std::filesystem::path& path) {
  std::string content = read_bytes(path);
  if (content.starts_with(kByteOrderMark)) content.erase(0, kByteOrderMark.size());
  return content;
}

void check_regular_file(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status) || fs::is_directory(status)) return;
  throw Error(fmt::format("{}: not a regular file", path.string()), ErrorCode::io);
}

bool is_present(const std::filesystem::path& path) {
  std::error_code failure;
  return std::filesystem::exists(path, failure) || failure;
}

}  // namespace bertcl::text
