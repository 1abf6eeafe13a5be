// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in plain C++: the oracle of the attention kernels.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "opencl/context.hpp"

namespace bertcl::tests {

/// One kernel file of the family and its options.
struct Implementation {
  std::string program;
  opencl::Defines defines = {};
  std::string name() const {
    std::string text = program;
    for (const auto& [key, value] : defines)
      text.append("_").append(key).append(std::to_string(value));
    return text;
  }
};

/// The shape of one test: packed sequences, heads, and which keys may be attended.
struct AttentionCase {
  std::vector<int32_t> lengths;
  int32_t heads = 2, head_size = 64;
  std::vector<uint8_t> mask = {};  ///< [tokens], empty: every key

  int32_t hidden() const { return heads * head_size; }
  int32_t tokens() const { return std::accumulate(lengths.begin(), lengths.end(), 0); }
  int32_t longest() const {
    return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  }
  std::vector<int32_t> offsets() const {
    std::vector<int32_t> result{0};
    for (int32_t length : lengths) result.push_back(result.back() + length);
    return result;
  }
  std::string name() const {
    std::string text = "lengths";
    for (int32_t length : lengths) text.append(" ").append(std::to_string(length));
    return text.append(", head size ")
        .append(std::to_string(head_size))
        .append(mask.empty() ? "" : ", masked");
  }
};

/// Calls visit(row, head, keys, probabilities) with the softmax of `score(row, key, column of the
/// head)` for every row and head; a row without keys gets empty lists.
template <typename Score, typename Visit>
void for_each_softmax(const AttentionCase& c, Score&& score, Visit&& visit) {
  const auto offsets = c.offsets();
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    std::vector<int32_t> keys;
    for (int32_t key = offsets[s]; key < offsets[s + 1]; ++key)
      if (c.mask.empty() || c.mask[static_cast<size_t>(key)]) keys.push_back(key);
    for (int32_t row = offsets[s]; row < offsets[s + 1]; ++row)
      for (int32_t head = 0; head < c.heads; ++head) {
        std::vector<double> p(keys.size());
        for (size_t j = 0; j < keys.size(); ++j) p[j] = score(row, keys[j], head * c.head_size);
        const double largest = p.empty() ? 0 : *std::max_element(p.begin(), p.end());
        double total = 0;
        for (double& value : p) total += value = std::exp(value - largest);
        for (double& value : p) value /= total;
        visit(row, head, keys, p);
      }
  }
}

}  // namespace bertcl::tests
