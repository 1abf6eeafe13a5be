// SPDX-License-Identifier: Apache-2.0
// The matrix multiplication that the GEMMs are compared with.
#pragma once
#include <cstdint>
#include <vector>

namespace bertcl::tests {

/// [M][N] = a [M][K] x w [K][N], row-major, every sum in the order of k: of floats in double, of
/// integers exactly where int32 holds the sums. A file of its own, compiled with all optimizations.
std::vector<double> products(const std::vector<float>& a, const std::vector<float>& w, int M, int N,
                             int K);
std::vector<int32_t> products(const std::vector<int16_t>& a, const std::vector<int16_t>& w, int M,
                              int N, int K);

}  // namespace bertcl::tests
