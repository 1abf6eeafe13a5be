// SPDX-License-Identifier: Apache-2.0
// Variants of GEMMs as measured on a device: what `bertcl tune` stores and the planner
// reads.
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
  std::string device, driver, date;  // for the reader; the name of the file tells devices apart
  std::vector<TunedGemm> gemms;

  /// Null where nothing is stored for that GEMM.
  const TunedGemm* find(std::string_view op, std::string_view type, std::int64_t n,
                        std::int64_t k) const;
  /// Puts `GEMM` in the place of what is stored for the same one.
  void put(TunedGemm gemm);
};

/// Format 2. Throws Error naming what is wrong; a file of another format is one with a wrong
/// format.
Tuning parse_tuning(const std::string& text);
/// Written whole or not at all. Throws Error if it cannot be written.
void write_tuning(const std::filesystem::path& path, const Tuning& tuning);

/// Where choices of variants that were measured on this device are stored: a file beside the cache
/// of programs, named after device, driver and the sources of the GEMMs. The environment
/// variable BERTCL_TUNING names another file, or none: "off". Empty: nowhere.
std::filesystem::path tuning_file(const opencl::Context& context);

/// What is stored for the device of `context`. Empty if nothing is; a file
/// that cannot be used counts as nothing too, with the reason in `note`.
Tuning stored_tuning(const opencl::Context& context, std::string& note);

}  // namespace bertcl::plan
