// SPDX-License-Identifier: Apache-2.0
// Tiles and build options of variants on a device: what fits its registers and its instructions.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/variants.hpp"

namespace bertcl::kernels {

/// The build options of a kernel that depend on the device: its instructions, as probed, and tiles
/// that fit its registers.
GemmVariant adapt_to_device(GemmVariant variant, const opencl::DeviceInfo& info,
                            const opencl::Capabilities& capabilities);

/// The same variant with tiles of `rows` x `columns`: "dot4_64x128".
GemmVariant with_tiles(GemmVariant variant, std::array<std::int32_t, 2> tiles);

/// The same variant with a tile and options of `tuned_options`: "mma_128x256", "mma_64x64_k64",
/// "mma_128x128_stages3", "mma_128x128_4x2" (4 sub-groups down, 2 across).
GemmVariant with_options(const GemmVariant& variant, const TileOptions& options);

/// The variants on the same weights for launches in which `variant`, a work-group variant, would
/// leave compute units idle; smallest tiles first.
std::vector<GemmVariant> with_all_smaller_tiles(const GemmVariant& variant,
                                                const opencl::DeviceInfo& info,
                                                const opencl::Capabilities& capabilities);

/// Weight prefetch: faster on Intel CPUs, not on AMD's (docs/performance-log.md).
bool gains_by_prefetch(const opencl::DeviceInfo& info);

/// Query rows of a work-group: 64, or 32 where 64 need more registers than there are (wide heads, a
/// bias or a window, AMD from gfx11 on, Intel, Arm, Qualcomm) or than two waves have (gfx906,
/// gfx908).
std::int32_t group_rows(const AttentionVariant& variant, std::int32_t head_size, bool has_bias,
                        const opencl::DeviceInfo& info, const opencl::Capabilities& capabilities);

}  // namespace bertcl::kernels
