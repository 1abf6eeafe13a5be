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
  return attend_with<T>(program, "attention_s8", c, qkv,
                        kernels::AttentionS8<KernelArgument>{.q_type = z.q.type,
                                                             .q_zero_point = z.q.zero_point,
                                                             .k_type = z.k.type,
                                                             .k_zero_point = z.k.zero_point,
                                                             .v_type = z.v.type,
                                                             .v_zero_point = z.v.zero_point,
                                                             .out_type = to.type,
                                                             .out_inv_scale = to.inv_scale,
                                                             .out_zero_point = to.zero_point,
                                                             .qk_scale = z.qk_scale,
                                                             .p_inv_scale = z.p_inv_scale,
                                                             .p_max = z.p_max,
                                                             .unnormalized = z.unnormalized,
                                                             .pv_scale = z.pv_scale,
                                                             .score_inv_scale = z.score_inv_scale,
                                                             .score_low = z.score_low,
                                                             .score_high = z.score_high},
                        block_rows, bias);
}

}  // namespace bertcl::tests
