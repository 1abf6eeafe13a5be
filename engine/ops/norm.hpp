// SPDX-License-Identifier: Apache-2.0
// LayerNorm of rows (Ba et al., 2016).
#pragma once
#include <span>
#include <vector>

namespace bertcl::ops {

/// Each row of n elements minus its mean, divided by sqrt(variance + epsilon), times gamma, plus
/// beta. gamma and beta have n elements; an empty beta is 0.
void normalize_rows(std::vector<double>& rows, std::span<const double> gamma,
                    std::span<const double> beta, double epsilon);

}  // namespace bertcl::ops
