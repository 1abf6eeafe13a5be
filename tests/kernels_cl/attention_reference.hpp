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
#include "tests/kernels_cl/device_test.hpp"

namespace bertcl::tests {

/// One kernel file of the variant and its options.
struct Implementation {
  std::string program;
  opencl::Defines defines = {};
  bool groups = false;  ///< made by work-groups, for heads of up to HEAD_MAX columns

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
  auto operator<=>(const AttentionCase&) const = default;

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

/// What is added to the scores: by head, place of the row and of the key, and only near the row.
struct ScoreBias {
  int32_t seq = 0, window = 0;
  std::vector<float> values = {};  ///< [heads][seq][seq]; empty: none
  bool of_tokens = false;          ///< [heads][tokens][seq]: by key and place of the row
  auto operator<=>(const ScoreBias&) const = default;

  int32_t row_step() const { return of_tokens ? 1 : seq; }
  int32_t key_step() const { return of_tokens ? seq : 1; }
  int32_t head_step(const AttentionCase& c) const { return (of_tokens ? c.tokens() : seq) * seq; }
  int32_t token_step() const { return of_tokens ? seq : 0; }

  double at(const AttentionCase& c, int32_t row, int32_t key, int32_t column) const {
    int32_t begin = 0;
    for (int32_t length : c.lengths) {
      if (row < begin + length) break;
      begin += length;
    }
    if (window != 0 && std::abs(row - key) > window) return -INFINITY;
    if (values.empty()) return 0.0;
    return values[static_cast<size_t>(column / c.head_size * head_step(c) + begin * token_step() +
                                      (row - begin) * row_step() + (key - begin) * key_step())];
  }
};

/// The kernel for a case, as the planner asks for it.
inline opencl::Kernel kernel_for(const Implementation& variant, std::string_view name,
                                 const AttentionCase& c, const ScoreBias& bias = {}) {
  opencl::Defines defines = variant.defines;
  if (variant.groups) defines["BIAS"] = !bias.values.empty() || bias.window > 0;
  for (int size = 256; variant.groups && size >= 32 && size >= c.head_size; size /= 2)
    defines["HEAD_MAX"] = size;
  // Most tests have heads of up to 64 columns.
  return variant.groups && c.head_size > 64 ? group_kernel(variant.program, name, defines)
                                            : device().kernel(variant.program, name, defines);
}

/// Those to try: work-groups do not read them.
inline std::vector<int32_t> block_rows_of(const Implementation& variant, std::vector<int32_t> all) {
  if (variant.groups) all.resize(1);
  return all;
}

/// Launches it, with work-groups or with work-items of `block_rows` rows, and waits.
inline void run_attention(const Implementation& variant, const opencl::Kernel& kernel,
                          const AttentionCase& c, int32_t block_rows) {
  const auto blocks = [&](int32_t rows) {
    return ceil_div(static_cast<size_t>(c.longest()), static_cast<size_t>(rows));
  };
  const auto heads = static_cast<size_t>(c.heads);
  if (!variant.groups) return run(kernel, blocks(block_rows), heads, c.lengths.size());
  const bool given = variant.defines.contains("ROWS");
  const int32_t rows = given ? variant.defines.at("ROWS") : c.head_size > 64 ? 32 : 64;
  const size_t items = variant.program.ends_with("_mma") ? 2 * static_cast<size_t>(rows) : 256;
  device().queue().launch(kernel, {items * blocks(rows), heads, c.lengths.size()}, {items, 1, 1});
  device().queue().finish();
}

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
        // A row without keys in its window attends none.
        for (double& value : p)
          total += value = largest == -HUGE_VAL ? 0 : std::exp(value - largest);
        for (double& value : p) value /= total > 0 ? total : 1;
        visit(row, head, keys, p);
      }
  }
}

}  // namespace bertcl::tests
