// SPDX-License-Identifier: Apache-2.0
// Files that belong together: all of them stay, or none.
#pragma once
#include <filesystem>
#include <system_error>
#include <vector>

namespace bertcl {

/// Removes what was added, unless keep() was called: a later file of the same result failed.
class WrittenFiles {
 public:
  WrittenFiles() = default;
  WrittenFiles(const WrittenFiles&) = delete;
  WrittenFiles& operator=(const WrittenFiles&) = delete;
  ~WrittenFiles() {
    std::error_code ignored;
    for (const std::filesystem::path& path : paths_) std::filesystem::remove(path, ignored);
  }

  /// Of a link, what it leads to, as PendingName writes it.
  void add(const std::filesystem::path& path) {
    paths_.push_back(std::filesystem::weakly_canonical(path));
  }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::filesystem::path> paths_;
};

}  // namespace bertcl
