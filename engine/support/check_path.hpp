// SPDX-License-Identifier: Apache-2.0
// Paths that cannot name a file.
#pragma once
#include <climits>
#include <cstddef>
#include <filesystem>
#include <string>

#include "bertcl/error.hpp"

namespace bertcl {

/// Throws Error of an empty path, and of one that no system call takes, which is a file's content
/// sooner than its name: no message should repeat it.
inline void check_path(const std::filesystem::path& path, const std::string& what) {
  const std::size_t bytes = path.native().size();
  if (bytes == 0) throw Error("the path of the " + what + " is empty", ErrorCode::io);
  if (path.native().find('\0') != std::string::npos)
    throw Error("the path of the " + what + " holds a zero byte", ErrorCode::io);
  if (bytes >= PATH_MAX)
    throw Error("the path of the " + what + " has " + std::to_string(bytes) +
                    " bytes, expected less than " + std::to_string(PATH_MAX),
                ErrorCode::io);
}

}  // namespace bertcl
