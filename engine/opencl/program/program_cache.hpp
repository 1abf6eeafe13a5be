// SPDX-License-Identifier: Apache-2.0
// Built programs on disk: one file per key, written by rename, rebuilt on any damage.
#pragma once
#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "opencl/device/device.hpp"

namespace bertcl::opencl {

/// A folder of files `<key>.clbin`: a header (magic, format version, payload length, SHA-256 of key
/// and payload), then the payload. Many processes may use one folder at once.
///
/// The cache never makes a program fail: unreadable entries count as absent, unwritable ones are
/// dropped.
///
/// Environment: BERTCL_CACHE=off turns it off, BERTCL_CACHE=DIR moves it from
/// XDG_CACHE_HOME/bertcl; BERTCL_CACHE_DEBUG=1 reports hits and misses, with reasons, on standard
/// error.
class ProgramCache {
 public:
  explicit ProgramCache(const DeviceInfo& device);

  bool enabled() const { return !folder_.empty(); }
  const std::filesystem::path& folder() const { return folder_; }

  /// SHA-256, in hexadecimal, of everything that determines the compiler's output: format version,
  /// final source, options, platform, device and driver with their versions, on a CPU device the
  /// features of this CPU (PoCL's device name does not tell the chip), and with NVIDIA's driver
  /// kPtxFormat.
  std::string key(std::string_view source, std::string_view options) const;

  /// The payload stored under `key`; `name` names it in the debug output.
  std::optional<std::vector<std::byte>> load(const std::string& key, std::string_view name) const;

  void store(const std::string& key, std::string_view name,
             std::span<const std::byte> payload) const;

  std::filesystem::path file(const std::string& key) const { return folder_ / (key + ".clbin"); }

  /// One line on standard error where BERTCL_CACHE_DEBUG is set.
  void report(std::string_view name, std::string_view what) const;

 private:
  std::filesystem::path folder_;  // empty: off
  std::string device_identity_;
  bool debug_ = false;
};

}  // namespace bertcl::opencl
