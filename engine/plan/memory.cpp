// SPDX-License-Identifier: Apache-2.0
// Placement of values with known lifetimes in one arena.
#include "plan/memory.hpp"

#include <algorithm>
#include <numeric>

namespace bertcl::plan {

Placement place(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return lifetimes[a].bytes > lifetimes[b].bytes;
  });

  Placement result;
  result.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    const Lifetime& now = lifetimes[i];
    const std::int64_t bytes = (now.bytes + alignment - 1) / alignment * alignment;
    std::int64_t offset = 0;
    for (const std::size_t j : placed) {
      const Lifetime& other = lifetimes[j];
      if (other.last < now.first || other.first > now.last) continue;
      if (result.offsets[j] - offset >= bytes) break;
      const std::int64_t end =
          (result.offsets[j] + other.bytes + alignment - 1) / alignment * alignment;
      offset = std::max(offset, end);
    }
    result.offsets[i] = offset;
    result.arena_bytes = std::max(result.arena_bytes, offset + bytes);
    const auto position = std::find_if(placed.begin(), placed.end(),
                                       [&](std::size_t j) { return result.offsets[j] > offset; });
    placed.insert(position, i);
  }
  return result;
}

}  // namespace bertcl::plan
