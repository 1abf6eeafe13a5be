// SPDX-License-Identifier: Apache-2.0
// A model file that goes when it is no longer needed.
#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>

namespace bertcl::quant {

/// The name of a model beside `output`, for this process alone. The destructor removes the file and
/// the weights beside it, if they were written; what a killed process has left goes by
/// remove_abandoned().
class TemporaryModel {
 public:
  TemporaryModel(const std::filesystem::path& output, std::string_view ending)
      : path_(fmt::format("{}.{}.{}.tmp", output.string(), ::getpid(), ending)) {}
  TemporaryModel(const TemporaryModel&) = delete;
  TemporaryModel& operator=(const TemporaryModel&) = delete;
  ~TemporaryModel() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(path_.string() + ".data", ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace bertcl::quant
