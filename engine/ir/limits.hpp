// SPDX-License-Identifier: Apache-2.0
// What a model may cost, checked before the work: small files can ask for any amount of it.
#pragma once
#include <algorithm>
#include <cstdint>

namespace bertcl::ir {

/// The defaults lie far above all models that are known to exist.
struct Limits {
  /// Nodes with local functions and branches put in the places of their calls. Exports of the
  /// largest encoders have some ten thousand.
  std::int64_t nodes = 500'000;
  /// Elements of one tensor where the file fixes all of its extents; 4 TiB of float.
  std::int64_t elements = std::int64_t{1} << 40;
  /// Bytes of the constants that compiling makes, and of the values of a run on the device. 0: of
  /// constants what constant_bytes() says, of values what the device gives.
  std::int64_t memory = 0;

  /// Bytes that constants may take which are made of those of the file. Weights in int8 that become
  /// float are four times as large.
  std::int64_t constant_bytes(std::int64_t in_file) const {
    if (memory > 0) return memory;
    return (std::int64_t{512} << 20) + 8 * std::min(in_file, std::int64_t{1} << 50);
  }
};

}  // namespace bertcl::ir
