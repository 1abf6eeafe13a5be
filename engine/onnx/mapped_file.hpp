// SPDX-License-Identifier: Apache-2.0
// A file mapped into memory for reading.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>

namespace bertcl::onnx_io {

/// A file as it was when it was opened.
struct FileStamp {
  std::filesystem::path path;
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t changed_ns = 0;

  /// Whether the same file has been written to since. False if another one, or none, has its name
  /// now: what is mapped stays as it was then.
  bool is_overwritten() const;
};

/// Throws bertcl::Error naming the first that is_overwritten(): reading it would return changed
/// data, or crash with SIGBUS if the file was truncated.
void check_not_overwritten(std::span<const FileStamp> files);

/// The bytes of a file, mapped for the lifetime of the object.
class MappedFile {
 public:
  /// Throws bertcl::Error naming the file if it cannot be read.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  const FileStamp& stamp() const { return stamp_; }

 private:
  MappedFile(std::span<const std::byte> bytes, FileStamp stamp)
      : bytes_(bytes), stamp_(std::move(stamp)) {}
  std::span<const std::byte> bytes_;
  FileStamp stamp_;
};

}  // namespace bertcl::onnx_io
