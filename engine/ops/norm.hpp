// SPDX-License-Identifier: Apache-2.0
// LayerNorm (Ba et al., 2016) and RMSNorm (Zhang and Sennrich, 2019) of rows.
#pragma once
#include <span>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::ops {

/// Each row of n elements minus its mean, divided by sqrt(variance + epsilon), times gamma, plus
/// beta. gamma and beta have n elements; an empty beta is 0. `rms`: the mean is taken to be 0.
void normalize_rows(std::vector<double>& rows, std::span<const double> gamma,
                    std::span<const double> beta, double epsilon, bool rms);

/// The number of the first quantized result of add_norm or embed_norm: those before are f32.
inline std::size_t first_quantized_result(const ir::Node& norm) {
  return norm.int_attribute("sum", 0) ? 2 : 1;
}

}  // namespace bertcl::ops
