// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in plain C++: the oracle of the attention kernels. Includes no
// OpenCL, so it compiles quickly at -O3.
#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "type_codes.hpp"

namespace bertcl::tests {

/// The shape of one test: packed sequences, heads, and which keys may be attended.
struct AttentionCase {
  std::vector<int32_t> lengths;
  int32_t heads = 2, head_size = 64;
  std::vector<uint8_t> mask = {};  ///< [tokens], empty: every key
  int32_t heads_per_key = 1;       ///< query heads that share one of k and v
  auto operator<=>(const AttentionCase&) const = default;

  int32_t hidden() const { return heads * head_size; }
  /// First column in k and v for the head that begins at `column`.
  int32_t key_column(int32_t column) const {
    return column / head_size / heads_per_key * head_size;
  }
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

  /// What is added to the score of a row and a key, in the head that begins at `column`.
  double at(const AttentionCase& c, int32_t row, int32_t key, int32_t column) const;
};

/// One int8 operand: bytes, type code and zero point.
struct Operand {
  int32_t type = kS8, zero_point = 0;
  auto operator<=>(const Operand&) const = default;
  int value(uint8_t byte) const {
    return (type == kS8 ? static_cast<int8_t>(byte) : static_cast<int>(byte)) - zero_point;
  }
};

struct Quantization {
  Operand q = {}, k = {}, v = {};
  float qk_scale = 2e-5f, p_inv_scale = 255.0f;
  int32_t p_max = 255;
  float pv_scale = 1e-4f;
  int32_t unnormalized = 0;
  float score_inv_scale = 0.0f;  // scores are quantized where it is not 0
  int32_t score_low = 0, score_high = 0;
  auto operator<=>(const Quantization&) const = default;

  /// The same operands with the normalization after the product.
  Quantization unnormalizing() const {
    Quantization z = *this;
    z.unnormalized = 1;
    z.pv_scale *= p_inv_scale;  // the scale of v alone
    return z;
  }
};

using Bytes = std::vector<uint8_t>;  // [tokens][3 * hidden]

/// Attention of qkv [tokens][3 * hidden], in double. Computed once per set of arguments and kept
/// until the program ends.
const std::vector<double>& reference(const AttentionCase& c, const std::vector<float>& qkv,
                                     float scale, const ScoreBias& bias = {});

/// Int8 attention as the Q/DQ graph says; kept likewise.
const std::vector<float>& reference(const AttentionCase& c, const Quantization& z, const Bytes& qkv,
                                    const ScoreBias& bias = {});

}  // namespace bertcl::tests
