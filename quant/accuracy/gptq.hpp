// SPDX-License-Identifier: Apache-2.0
// Rounds a weight so that the error of its product, not of itself, is small.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "quant/parameters.hpp"

namespace bertcl::quant {

/// Rounds W [K][N] to integers of `scales` and `zero_points` (one, or one for each column) such
/// that sum over columns of (W - Q)^T H (W - Q) is small, H = x^T x [K][K] of the inputs x of the
/// product x W. Rows are rounded one after the other; each takes over what the rows before it have
/// missed, as far as H couples them (Frantar et al., "GPTQ", 2022, in the equivalent form of
/// Babai's nearest plane with H = L L^T). Rows of large H[k][k] come first. `damping` times the
/// mean of H's diagonal is added to the diagonal.
/// Returns integers [K][N] from `lowest` to `highest`. Throws Error if H is not positive definite
/// even so, as where it holds NaN.
std::vector<std::int32_t> gptq_round(std::span<const float> weight, std::span<const float> gram,
                                     std::span<const float> scales,
                                     std::span<const std::int32_t> zero_points, std::int32_t lowest,
                                     std::int32_t highest, double damping = 0.01);

}  // namespace bertcl::quant
