// SPDX-License-Identifier: Apache-2.0
// Whether two names are those of one file.
#pragma once
#include <filesystem>
#include <system_error>

#include "support/pending_file.hpp"

namespace bertcl {

/// True for two names of one file, there or not. Devices and pipes may be written to by many.
inline bool same_file(const std::filesystem::path& one, const std::filesystem::path& other) {
  namespace fs = std::filesystem;
  if (one.empty() || other.empty() || is_special_file(one) || is_special_file(other)) return false;
  std::error_code error;
  if (fs::equivalent(one, other, error)) return true;
  const auto whole = [&](const fs::path& path) {
    const fs::path given = fs::absolute(path), found = fs::weakly_canonical(given, error);
    return error ? given : found;
  };
  return whole(one) == whole(other);
}

}  // namespace bertcl
