// SPDX-License-Identifier: Apache-2.0
// Numbers that kernels define and the host repeats. tests/plan/test_shared_numbers.cpp reads both.
#pragma once
#include <cstdint>

namespace bertcl::kernels {

/// Largest number of elements of a kernel: the end of its last chunk, past them, must still fit an
/// int.
inline constexpr std::int64_t kMaxElements = (std::int64_t{1} << 31) - 1 - (1 << 16);

// PARTS of dynamic_quantize.cl and dynamic_quantize_group.cl, and ITEMS of the latter.
inline constexpr std::int32_t kRangeParts = 256, kRangeItems = 256;
// PANEL of matmul_*_batched.cl, SIDE and ITEMS of matmul_group.clh.
inline constexpr std::int32_t kMatMulPanel = 32, kMatMulSide = 64, kMatMulItems = 256;
// PANEL of position_scores.clh, HEAD_MAX of the kernels that copy tokens, and ITEMS of that with
// work-groups.
inline constexpr std::int32_t kPositionsPanel = 32, kPositionsColumns = 256, kPositionsItems = 256;
// OP_FMOD of elementwise_binary.cl.
inline constexpr std::int32_t kFmod = 8;

}  // namespace bertcl::kernels
