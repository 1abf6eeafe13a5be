// SPDX-License-Identifier: Apache-2.0
// A file mapped into memory for reading.
#pragma once
#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace bertcl::onnx_io {

/// The bytes of a file, mapped as long as somebody holds the object.
class MappedFile {
 public:
  /// Throws bertcl::Error naming the file if it cannot be read.
  static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  explicit MappedFile(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::span<const std::byte> bytes_;
};

}  // namespace bertcl::onnx_io
