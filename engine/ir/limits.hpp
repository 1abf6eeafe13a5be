// SPDX-License-Identifier: Apache-2.0
// Limits on what a model may cost, checked before the work: small files can demand any amount of
// it.
#pragma once
#include <algorithm>
#include <cstdint>

namespace bertcl::ir {

/// The defaults are far above all known models.
struct Limits {
  /// Nodes after inlining local functions and branches. Exports of the largest encoders have some
  /// ten thousand.
  std::int64_t nodes = 500'000;
  /// Elements of one tensor where the file fixes all of its extents; 4 TiB of float.
  std::int64_t elements = std::int64_t{1} << 40;
  /// Bytes of folded constants, and of the values of a run on the device. 0: constant_bytes() for
  /// constants, for values what the device has.
  std::int64_t memory = 0;

  /// Limit in bytes for constants computed from those of the file. int8 weights that become float
  /// are four times as large.
  std::int64_t constant_bytes(std::int64_t in_file) const {
    if (memory > 0) return memory;
    return (std::int64_t{512} << 20) + 8 * std::min(in_file, std::int64_t{1} << 50);
  }
};

}  // namespace bertcl::ir
