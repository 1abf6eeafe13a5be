// SPDX-License-Identifier: Apache-2.0
// A file that appears whole or not at all.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <utility>

#include "bertcl/error.hpp"

namespace bertcl::quant {

/// A file that is written under a temporary name and gets its own by commit().
class PendingFile {
 public:
  explicit PendingFile(std::filesystem::path path)
      : path_(std::move(path)),
        temporary_(fmt::format("{}.{}.tmp", path_.string(), ::getpid())),
        stream_(temporary_, std::ios::binary | std::ios::trunc) {
    if (!stream_) fail();
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    std::error_code ignored;
    if (!committed_) std::filesystem::remove(temporary_, ignored);
  }

  std::ofstream& stream() { return stream_; }
  std::int64_t written() { return stream_.tellp(); }
  void close() {
    stream_.close();
    if (!stream_) fail();
  }
  void commit() {
    std::error_code error;
    std::filesystem::rename(temporary_, path_, error);
    if (error)
      throw Error(fmt::format("{}: cannot be written: {}", path_.string(), error.message()));
    committed_ = true;
  }
  [[noreturn]] void fail() const {
    throw Error(fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
  }

 private:
  std::filesystem::path path_, temporary_;
  std::ofstream stream_;
  bool committed_ = false;
};

}  // namespace bertcl::quant
