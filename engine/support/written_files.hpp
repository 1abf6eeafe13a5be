// SPDX-License-Identifier: Apache-2.0
// Files that belong together: all of them are written, or none.
#pragma once
#include <filesystem>
#include <list>
#include <optional>
#include <string>
#include <system_error>

#include "support/pending_file.hpp"

namespace bertcl {

/// Files under temporary names, which commit() renames. Unless keep() is called after it, the
/// destructor removes them and restores the files that they replaced.
class WrittenFiles {
 public:
  WrittenFiles() = default;
  WrittenFiles(const WrittenFiles&) = delete;
  WrittenFiles& operator=(const WrittenFiles&) = delete;
  ~WrittenFiles() {
    for (auto file = files_.rbegin(); file != files_.rend(); ++file) file->take_back();
  }

  /// A file in the making.
  PendingFile& add(const std::filesystem::path& path) { return files_.emplace_back(path).made; }

  /// A file of this content; a device or a pipe gets it at once and keeps it.
  void write(const std::filesystem::path& path, const std::string& content) {
    if (is_special_file(path)) return write_file(path, content);
    PendingFile& file = add(path);
    file.stream() << content;
    file.close();
  }

  /// Gives the files their names, in the order in which they were added. Throws Error.
  void commit() {
    for (File& file : files_) file.made.close();
    for (File& file : files_) file.commit();
  }
  void keep() { files_.clear(); }

 private:
  struct File {
    explicit File(const std::filesystem::path& path) : made(path) {}

    void commit() {
      std::error_code ignored;
      if (std::filesystem::exists(made.path(), ignored)) {
        replaced.emplace(made.path());
        std::filesystem::create_hard_link(made.path(), replaced->temporary(), ignored);
        if (ignored) std::filesystem::copy_file(made.path(), replaced->temporary(), ignored);
      }
      made.commit();
      committed = true;
    }
    /// Where neither a link nor a copy of the replaced file could be made, the new file stays.
    void take_back() noexcept {
      std::error_code ignored;
      if (!committed) return;
      if (replaced)
        std::filesystem::rename(replaced->temporary(), made.path(), ignored);
      else
        std::filesystem::remove(made.path(), ignored);
    }

    PendingFile made;
    std::optional<PendingName> replaced{};  // a second name of the file that was there
    bool committed = false;
  };

  std::list<File> files_;
};

}  // namespace bertcl
