// SPDX-License-Identifier: Apache-2.0
// Int8 attention in plain C++, as the Q/DQ graph says, and by a kernel.
#pragma once
#include <algorithm>
#include <compare>
#include <map>
#include <tuple>

#include "attention_reference.hpp"
#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/attention.hpp"

namespace bertcl::tests {

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

inline std::vector<float> computed_reference(const AttentionCase& c, const Quantization& z,
                                             const Bytes& qkv, const ScoreBias& bias) {
  const size_t hidden = static_cast<size_t>(c.hidden()), stride = 3 * hidden;
  std::vector<float> out(static_cast<size_t>(c.tokens()) * hidden, 0.0f);
  for_each_softmax(
      c,
      [&](int32_t row, int32_t key, int32_t column) {
        int64_t sum = 0;
        for (int32_t d = 0; d < c.head_size; ++d)
          sum += z.q.value(qkv[row * stride + column + d]) *
                 z.k.value(qkv[key * stride + hidden + column + d]);
        if (z.score_inv_scale != 0.0f)
          sum = std::llrint(std::clamp(static_cast<float>(sum) * z.score_inv_scale,
                                       static_cast<float>(z.score_low),
                                       static_cast<float>(z.score_high)));
        return static_cast<double>(sum) * z.qk_scale + bias.at(c, row, key, column);
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
        for (int32_t d = 0; d < c.head_size; ++d) {
          int64_t sum = 0;
          const size_t column = 2 * hidden + head * c.head_size + d;
          for (size_t j = 0; j < keys.size(); ++j)
            sum += p_q[j] * z.v.value(qkv[keys[j] * stride + column]);
          out[row * hidden + head * c.head_size + d] = static_cast<float>(sum) * scale;
        }
      });
  return out;
}

/// Computed once for all variants.
inline const std::vector<float>& reference(const AttentionCase& c, const Quantization& z,
                                           const Bytes& qkv, const ScoreBias& bias = {}) {
  using Key = std::tuple<AttentionCase, Quantization, Bytes, ScoreBias>;
  static auto* known = new std::map<Key, std::vector<float>>;
  const auto [place, is_new] = known->try_emplace(Key{c, z, qkv, bias});
  if (is_new) place->second = computed_reference(c, z, qkv, bias);
  return place->second;
}

struct OutputType {
  int32_t type = kF32;
  float inv_scale = 1.0f;
  int32_t zero_point = 0;
};

template <typename T>
std::vector<T> attend(const Implementation& program, const AttentionCase& c, const Quantization& z,
                      const Bytes& qkv, OutputType to = {}, int32_t block_rows = 32,
                      const ScoreBias& bias = {}) {
  const auto input = upload(qkv), offsets = upload(c.offsets()), mask = upload(c.mask),
             added = bias.values.empty() ? opencl::Buffer() : upload(bias.values);
  Output<T> out(static_cast<size_t>(c.tokens()) * static_cast<size_t>(c.hidden()));
  const int32_t hidden = c.hidden(), stride = 3 * hidden, use_mask = !c.mask.empty();
  auto kernel = kernel_for(program, "attention_s8", c, bias);
  kernels::set(kernel, kernels::AttentionS8<KernelArgument>{.q = input,
                                                            .q_stride = stride,
                                                            .q_offset = 0,
                                                            .q_type = z.q.type,
                                                            .q_zero_point = z.q.zero_point,
                                                            .k = input,
                                                            .k_stride = stride,
                                                            .k_offset = hidden,
                                                            .k_type = z.k.type,
                                                            .k_zero_point = z.k.zero_point,
                                                            .v = input,
                                                            .v_stride = stride,
                                                            .v_offset = 2 * hidden,
                                                            .v_type = z.v.type,
                                                            .v_zero_point = z.v.zero_point,
                                                            .out = out.buffer(),
                                                            .out_type = to.type,
                                                            .out_inv_scale = to.inv_scale,
                                                            .out_zero_point = to.zero_point,
                                                            .seq_offsets = offsets,
                                                            .key_mask = mask,
                                                            .use_mask = use_mask,
                                                            .heads = c.heads,
                                                            .head_size = c.head_size,
                                                            .qk_scale = z.qk_scale,
                                                            .p_inv_scale = z.p_inv_scale,
                                                            .p_max = z.p_max,
                                                            .unnormalized = z.unnormalized,
                                                            .pv_scale = z.pv_scale,
                                                            .score_inv_scale = z.score_inv_scale,
                                                            .score_low = z.score_low,
                                                            .score_high = z.score_high,
                                                            .block_rows = block_rows,
                                                            .bias = added,
                                                            .bias_row = bias.row_step(),
                                                            .bias_key = bias.key_step(),
                                                            .bias_head = bias.head_step(c),
                                                            .bias_token = bias.token_step(),
                                                            .window = bias.window});
  run_attention(program, kernel, c, block_rows);
  return out.values();
}

}  // namespace bertcl::tests
