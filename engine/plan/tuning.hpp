// SPDX-License-Identifier: Apache-2.0
// Measured GEMM variants: what `bertcl tune` stores and the planner reads.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::opencl {
class Context;
}

namespace bertcl::plan {

/// The fastest variant for launches of about `rows` rows, its time and that of the default.
struct TunedRows {
  std::int64_t rows = 0;
  std::string variant;
  double us = 0, default_us = 0;
};

/// A GEMM with constant weights [k, n], by rows in ascending order. All its variants read
/// the same prepacked weights.
struct TunedGemm {
  std::string op, type;  // of its step
  std::int64_t n = 0, k = 0;
  std::vector<TunedRows> by_rows;

  /// Geometric mean of default_us / us.
  double gain() const;
};

struct Tuning {
  std::string device, driver;  // where it was measured; used nowhere else
  std::string date;
  std::vector<TunedGemm> gemms;

  /// Null if nothing is stored for that GEMM.
  const TunedGemm* find(std::string_view op, std::string_view type, std::int64_t n,
                        std::int64_t k) const;
  void erase(std::string_view op, std::string_view type, std::int64_t n, std::int64_t k);
  /// Replaces what is stored for the same GEMM.
  void put(TunedGemm gemm);
};

/// Throws Error naming what is wrong, such as another format.
Tuning parse_tuning(const std::string& text);
/// Written atomically. Throws Error if it cannot be written.
void write_tuning(const std::filesystem::path& path, const Tuning& tuning);

/// The tuning file of this device: beside the program cache, named after device, driver and the
/// sources of the GEMMs. The environment variable BERTCL_TUNING names another file, or none: "off".
/// Empty: nowhere.
std::filesystem::path tuning_file(const opencl::Context& context);

/// Throws Error if `path` holds something other than a tuning file, which is not to be overwritten.
void check_tuning_file(const std::filesystem::path& path);

/// The stored tuning for the device of `context`. Empty if there is none, or if the file is
/// unusable or of another device or BERTCL_TUNING names none, with the reason in `note`.
Tuning stored_tuning(const opencl::Context& context, std::string& note);

}  // namespace bertcl::plan
