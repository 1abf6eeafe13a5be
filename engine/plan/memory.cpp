// SPDX-License-Identifier: Apache-2.0
// The arena layout of values with known lifetimes.
#include "plan/memory.hpp"

#include <algorithm>
#include <numeric>

#include "support/ceil_div.hpp"

namespace bertcl::plan {

namespace {

std::vector<std::size_t> largest_first(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return lifetimes[a].bytes > lifetimes[b].bytes; });
  return order;
}

bool meet(const Lifetime& a, const Lifetime& b) { return a.last >= b.first && a.first <= b.last; }

}  // namespace

ArenaLayout plan_arena(const std::vector<Lifetime>& lifetimes, std::int64_t alignment) {
  ArenaLayout result;
  result.offsets.assign(lifetimes.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : largest_first(lifetimes)) {
    const Lifetime& now = lifetimes[i];
    const std::int64_t bytes = round_up(now.bytes, alignment);
    std::int64_t offset = 0;
    for (const std::size_t j : placed) {
      const Lifetime& other = lifetimes[j];
      if (!meet(other, now)) continue;
      if (result.offsets[j] - offset >= bytes) break;
      const std::int64_t end = round_up(result.offsets[j] + other.bytes, alignment);
      offset = std::max(offset, end);
    }
    result.offsets[i] = offset;
    result.arena_bytes = std::max(result.arena_bytes, offset + bytes);
    const auto position =
        std::ranges::find_if(placed, [&](std::size_t j) { return result.offsets[j] > offset; });
    placed.insert(position, i);
  }
  return result;
}

SharedBuffers share_buffers(const std::vector<Lifetime>& lifetimes) {
  SharedBuffers result;
  result.of.assign(lifetimes.size(), 0);
  std::vector<std::vector<std::size_t>> values;  // of each buffer
  for (const std::size_t i : largest_first(lifetimes)) {
    const auto is_free = [&](const std::vector<std::size_t>& others) {
      return std::ranges::none_of(others,
                                  [&](std::size_t j) { return meet(lifetimes[i], lifetimes[j]); });
    };
    const auto found = std::ranges::find_if(values, is_free);
    result.of[i] = static_cast<std::size_t>(found - values.begin());
    if (found == values.end()) {
      values.emplace_back();
      result.bytes.push_back(lifetimes[i].bytes);
    }
    values[result.of[i]].push_back(i);
  }
  return result;
}

}  // namespace bertcl::plan
