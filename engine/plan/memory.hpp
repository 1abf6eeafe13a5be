// SPDX-License-Identifier: Apache-2.0
// The arena layout of values with known lifetimes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bertcl::plan {

/// A value that lives from step `first` to step `last`, both included.
struct Lifetime {
  std::int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct ArenaLayout {
  std::vector<std::int64_t> offsets;  // one for each lifetime, multiples of the alignment
  std::int64_t arena_bytes = 0;
};

/// Buffers shared by values whose lifetimes do not overlap.
struct SharedBuffers {
  std::vector<std::size_t> of;      // of each value
  std::vector<std::int64_t> bytes;  // of each buffer: those of its largest value
};

/// Greedy by size (the "offsets" form of TFLite GPU's memory planner): the largest value first,
/// each at the lowest gap that fits between the values that live at the same time.
ArenaLayout plan_arena(const std::vector<Lifetime>& lifetimes, std::int64_t alignment);

/// The same for devices on which no two views of a buffer may overlap: the largest value first,
/// each in the first buffer that is free during its lifetime.
SharedBuffers share_buffers(const std::vector<Lifetime>& lifetimes);

}  // namespace bertcl::plan
