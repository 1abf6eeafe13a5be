// SPDX-License-Identifier: Apache-2.0
// Rounds a weight to minimize the error of its MatMul, not of the weight itself.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "quant/calibration/parameters.hpp"

namespace bertcl::quant {

/// H = x^T x [K][K] of the inputs x of a MatMul, in the order of rounding and factored: H = L L^T.
/// 0.01 times the mean of its diagonal is added to the diagonal; 10 or 100 times as much where that
/// does not outweigh the rounding of H. Serves all weights that x is multiplied with, from
/// several threads at once.
class GramFactor {
 public:
  /// Throws Error if H is not square, or not positive definite even so, as where it holds NaN.
  explicit GramFactor(std::span<const float> gram);
  GramFactor(GramFactor&&) noexcept;
  ~GramFactor();

 private:
  friend std::vector<std::int32_t> gptq_round(std::span<const float>, const GramFactor&,
                                              std::span<const float>, std::span<const std::int32_t>,
                                              std::int32_t, std::int32_t);
  struct Data;
  std::unique_ptr<const Data> data_;
};

/// Rounds W [K][N] to integers of `scales` and `zero_points` (one, or one for each column) such
/// that sum over columns of (W - Q)^T H (W - Q) is small. Rows are rounded one after the other;
/// each compensates the rounding error of the rows before it, as far as H couples them (Frantar et
/// al., "GPTQ", 2022, in the equivalent form of Babai's nearest plane with H = L L^T). Rows of
/// large H[k][k] come first. Returns integers [K][N] from `lowest` to `highest`.
std::vector<std::int32_t> gptq_round(std::span<const float> weight, const GramFactor& gram,
                                     std::span<const float> scales,
                                     std::span<const std::int32_t> zero_points, std::int32_t lowest,
                                     std::int32_t highest);

}  // namespace bertcl::quant
