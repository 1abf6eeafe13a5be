// SPDX-License-Identifier: Apache-2.0
// Whole files as text.
#include "text/base/file.hpp"

#include <fmt/format.h>

#include <system_error>

#include "bertcl/error.hpp"

namespace bertcl::text {

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
