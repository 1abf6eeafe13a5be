// SPDX-License-Identifier: Apache-2.0
// Random operands by the generators of <random>.
#include "tests/support/random_values.hpp"

#include <random>

namespace bertcl::tests {

std::vector<float> normal_values(size_t count, unsigned seed, float scale) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> distribution(0.0f, scale);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

std::vector<int64_t> random_integers(size_t count, unsigned seed, int64_t low, int64_t high) {
  std::mt19937_64 generator(seed);
  std::uniform_int_distribution<int64_t> distribution(low, high);
  std::vector<int64_t> values(count);
  for (int64_t& value : values) value = distribution(generator);
  return values;
}

}  // namespace bertcl::tests
