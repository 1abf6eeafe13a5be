// SPDX-License-Identifier: Apache-2.0
// Which kernels the persistent kernel can run as steps.
#include "kernels/mergeable.hpp"

#include <algorithm>
#include <utility>

namespace bertcl::kernels {
namespace {

constexpr MergeableKernel kMergeable[] = {
    {"add_norm", "add_norm", true},
    {"attention_bf16_x86", "attention_bf16"},
    {"attention_f32_x86", "attention_f32"},
    {"attention_s8_portable", "attention_s8"},
    {"attention_s8_x86_avx2", "attention_s8"},
    {"attention_s8_x86_vnni", "attention_s8"},
    {"copy_strided", "copy_strided_1", true},
    {"copy_strided", "copy_strided_2", true},
    {"copy_strided", "copy_strided_4", true},
    {"copy_strided", "copy_strided_8", true},
    {"embed_norm", "embed_norm", true},
    {"gated", "gated"},
    {"gemm_bf16_x86", "gemm_bf16"},
    {"gemm_f32_portable", "gemm_f32"},
    {"gemm_f32_x86", "gemm_f32"},
    {"gemm_f32_x86_small_m", "gemm_f32"},
    {"gemm_s8_arm_sdot", "gemm_s8"},
    {"gemm_s8_portable", "gemm_s8"},
    {"gemm_s8_x86_avx2", "gemm_s8"},
    {"gemm_s8_x86_avx_vnni", "gemm_s8"},
    {"gemm_s8_x86_vnni", "gemm_s8"},
    {"gemm_s8_x86_vnni_small_m", "gemm_s8"},
    {"pack", "pack", true},
    {"pool", "pool"},
    {"position_scores_f32_x86", "position_scores"},
    {"position_scores_s8_x86_vnni", "position_scores_s8"},
    {"quantize", "dequantize", true},
    {"quantize", "quantize", true},
    {"rotary", "rotary"},
    {"unpack", "unpack", true},
};

constexpr auto name_of = [](const MergeableKernel& entry) {
  return std::pair(entry.program, entry.kernel);
};
static_assert(std::ranges::is_sorted(kMergeable, {}, name_of));

}  // namespace

std::span<const MergeableKernel> mergeable_kernels() { return kMergeable; }

bool is_mergeable(std::string_view program, std::string_view kernel) {
  return std::ranges::binary_search(kMergeable, std::pair(program, kernel), {}, name_of);
}

}  // namespace bertcl::kernels
