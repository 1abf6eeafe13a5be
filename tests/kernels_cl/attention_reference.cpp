// SPDX-License-Identifier: Apache-2.0
// Attention in plain loops, one row and one head at a time.
#include "attention_reference.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <tuple>

namespace bertcl::tests {
namespace {

/// Calls visit(row, head, keys, probabilities) with the softmax of `score(row, key, column of the
/// head)` plus bias for every row and head; a row without keys gets empty lists.
template <typename Score, typename Visit>
void for_each_softmax(const AttentionCase& c, const ScoreBias& bias, Score&& score, Visit&& visit) {
  const auto offsets = c.offsets();
  for (size_t s = 0; s + 1 < offsets.size(); ++s) {
    std::vector<int32_t> keys;
    for (int32_t key = offsets[s]; key < offsets[s + 1]; ++key)
      if (c.mask.empty() || c.mask[static_cast<size_t>(key)]) keys.push_back(key);
    for (int32_t row = offsets[s]; row < offsets[s + 1]; ++row)
      for (int32_t head = 0; head < c.heads; ++head) {
        std::vector<double> p(keys.size());
        for (size_t j = 0; j < keys.size(); ++j) {
          const int32_t column = head * c.head_size;
          p[j] = bias.at(c, row, keys[j], column);
          if (p[j] != -HUGE_VAL) p[j] += score(row, keys[j], column);
        }
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

/// q, k and v as integers: bytes minus their zero points.
std::vector<int16_t> decoded(const AttentionCase& c, const Quantization& z, const Bytes& qkv) {
  const auto hidden = static_cast<size_t>(c.hidden());
  std::vector<int16_t> values(qkv.size());
  for (size_t i = 0; i < qkv.size(); ++i) {
    const size_t part = i / hidden % 3;
    const Operand& operand = part == 0 ? z.q : part == 1 ? z.k : z.v;
    values[i] = static_cast<int16_t>(operand.value(qkv[i]));
  }
  return values;
}

std::vector<float> computed(const AttentionCase& c, const Quantization& z, const Bytes& bytes,
                            const ScoreBias& bias) {
  const size_t hidden = static_cast<size_t>(c.hidden()), stride = 3 * hidden;
  const std::vector<int16_t> qkv = decoded(c, z, bytes);
  std::vector<float> out(static_cast<size_t>(c.tokens()) * hidden, 0.0f);
  for_each_softmax(
      c, bias,
      [&](int32_t row, int32_t key, int32_t column) {
        const int16_t* q = &qkv[row * stride + column];
        const int16_t* k = &qkv[key * stride + hidden + c.key_column(column)];
        int32_t dot = 0;  // exact for up to 33,025 columns: factors are at most 255
        for (int32_t d = 0; d < c.head_size; ++d) dot += q[d] * k[d];
        int64_t sum = dot;
        if (z.score_inv_scale != 0.0f)
          sum = std::llrint(std::clamp(static_cast<float>(sum) * z.score_inv_scale,
                                       static_cast<float>(z.score_low),
                                       static_cast<float>(z.score_high)));
        return static_cast<double>(sum) * z.qk_scale;
      },
      [&](int32_t row, int32_t head, const std::vector<int32_t>& keys,
          const std::vector<double>& p) {
        const double most = p.empty() ? 0 : *std::max_element(p.begin(), p.end());
        const double one = z.unnormalized && most > 0 ? most : 1.0;
        std::vector<int64_t> p_q;
        for (const double x : p)
          p_q.push_back(std::min<int64_t>(std::llrint(x / one * z.p_inv_scale), z.p_max));
        const auto p_sum = std::accumulate(p_q.begin(), p_q.end(), int64_t{0});
        const float scale = z.unnormalized
                                ? z.pv_scale / static_cast<float>(std::max<int64_t>(p_sum, 1))
                                : z.pv_scale;
        std::vector<int64_t> sums(static_cast<size_t>(c.head_size), 0);
        for (size_t j = 0; j < keys.size(); ++j) {
          if (p_q[j] == 0) continue;
          const int16_t* v = &qkv[keys[j] * stride + 2 * hidden + c.key_column(head * c.head_size)];
          for (size_t d = 0; d < sums.size(); ++d) sums[d] += p_q[j] * v[d];
        }
        for (size_t d = 0; d < sums.size(); ++d)
          out[row * hidden + head * c.head_size + d] = static_cast<float>(sums[d]) * scale;
      });
  return out;
}

std::vector<double> computed(const AttentionCase& c, const std::vector<float>& qkv, float scale,
                             const ScoreBias& bias) {
  const size_t hidden = static_cast<size_t>(c.hidden()), stride = 3 * hidden;
  std::vector<double> out(static_cast<size_t>(c.tokens()) * hidden, 0.0);
  for_each_softmax(
      c, bias,
      [&](int32_t row, int32_t key, int32_t column) {
        double sum = 0;
        for (int32_t d = 0; d < c.head_size; ++d)
          sum += static_cast<double>(qkv[row * stride + column + d]) *
                 qkv[key * stride + hidden + c.key_column(column) + d];
        return sum * scale;
      },
      [&](int32_t row, int32_t head, const std::vector<int32_t>& keys,
          const std::vector<double>& p) {
        for (size_t j = 0; j < keys.size(); ++j)
          for (int32_t d = 0; d < c.head_size; ++d)
            out[row * hidden + head * c.head_size + d] +=
                p[j] * qkv[keys[j] * stride + 2 * hidden + c.key_column(head * c.head_size) + d];
      });
  return out;
}

/// Computed once for all variants of a kernel.
template <typename Result, typename... Arguments>
const std::vector<Result>& cached(const Arguments&... arguments) {
  static auto* known = new std::map<std::tuple<Arguments...>, std::vector<Result>>;
  const auto [place, is_new] = known->try_emplace(std::tuple(arguments...));
  if (is_new) place->second = computed(arguments...);
  return place->second;
}

}  // namespace

double ScoreBias::at(const AttentionCase& c, int32_t row, int32_t key, int32_t column) const {
  if (window != 0 && std::abs(row - key) > window) return -INFINITY;
  if (values.empty()) return 0.0;
  int32_t begin = 0;
  for (int32_t length : c.lengths) {
    if (row < begin + length) break;
    begin += length;
  }
  return values[static_cast<size_t>(column / c.head_size * head_step(c) + begin * token_step() +
                                    (row - begin) * row_step() + (key - begin) * key_step())];
}

const std::vector<double>& reference(const AttentionCase& c, const std::vector<float>& qkv,
                                     float scale, const ScoreBias& bias) {
  return cached<double>(c, qkv, scale, bias);
}

const std::vector<float>& reference(const AttentionCase& c, const Quantization& z, const Bytes& qkv,
                                    const ScoreBias& bias) {
  return cached<float>(c, z, qkv, bias);
}

}  // namespace bertcl::tests
