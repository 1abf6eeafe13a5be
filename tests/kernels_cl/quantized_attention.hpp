// SPDX-License-Identifier: Apache-2.0
// Int8 attention by a kernel.
#pragma once
#include "attention_kernel.hpp"
#include "attention_reference.hpp"
#include "device_test.hpp"
#include "kernels/bind.hpp"
#include "kernels/contracts/attention.hpp"

namespace bertcl::tests {

struct OutputType {
  int32_t type = kF32;
  float inv_scale = 1.0f;
  int32_t zero_point = 0;
};

template <typename T>
std::vector<T> attend(const AttentionKernel& program, const AttentionCase& c, const Quantization& z,
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
