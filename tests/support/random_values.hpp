// SPDX-License-Identifier: Apache-2.0
// Random operands; a seed gives the same ones each time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bertcl::tests {

/// Normally distributed around 0, with standard deviation `scale`.
std::vector<float> normal_values(size_t count, unsigned seed, float scale = 1.0f);

/// For integers() of any type.
std::vector<int64_t> random_integers(size_t count, unsigned seed, int64_t low, int64_t high);
/// Uniformly distributed over low .. high, both included.
template <typename T>
std::vector<T> integers(size_t count, unsigned seed, int64_t low, int64_t high) {
  const std::vector<int64_t> values = random_integers(count, seed, low, high);
  return {values.begin(), values.end()};
}

}  // namespace bertcl::tests
