// SPDX-License-Identifier: Apache-2.0
// The largest of many values, in an order that is the same on every machine.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace bertcl {

/// Indexes of the `count` largest values, largest first; equal ones by lower index, NaN last.
template <class T>
std::vector<std::size_t> best_indexes(std::span<const T> values, std::size_t count) {
  std::vector<std::size_t> indexes(values.size());
  std::iota(indexes.begin(), indexes.end(), std::size_t{0});
  count = std::min(count, indexes.size());
  const auto end = indexes.begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(indexes.begin(), end, indexes.end(), [&](std::size_t a, std::size_t b) {
    if (std::isnan(values[a]) != std::isnan(values[b])) return std::isnan(values[b]);
    if (values[a] > values[b] || values[b] > values[a]) return values[a] > values[b];
    return a < b;
  });
  indexes.resize(count);
  return indexes;
}

}  // namespace bertcl
