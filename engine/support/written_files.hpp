// SPDX-License-Identifier: Apache-2.0
// Files that belong together: all of them stay, or none.
#pragma once
#include <filesystem>
#include <system_error>
#include <vector>

namespace bertcl {

/// Removes the new files that were added, unless keep() was called: a later one of them failed.
class WrittenFiles {
 public:
  WrittenFiles() = default;
  WrittenFiles(const WrittenFiles&) = delete;
  WrittenFiles& operator=(const WrittenFiles&) = delete;
  ~WrittenFiles() {
    std::error_code ignored;
    for (const std::filesystem::path& path : paths_) std::filesystem::remove(path, ignored);
  }

  /// Call it before `path` is written: what is there already, another's or an older result, stays.
  void add_new(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) paths_.push_back(path);
  }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::filesystem::path> paths_;
};

}  // namespace bertcl
