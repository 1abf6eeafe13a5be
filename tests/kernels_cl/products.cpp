// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication in three loops.
#include "products.hpp"

#include <cstddef>

namespace bertcl::tests {
namespace {

template <typename Sum, typename T>
std::vector<Sum> multiply(const std::vector<T>& a, const std::vector<T>& w, int M, int N, int K) {
  std::vector<Sum> out(static_cast<size_t>(M) * N, 0);
  for (int m = 0; m < M; ++m) {
    Sum* sums = out.data() + static_cast<size_t>(m) * N;
    for (int k = 0; k < K; ++k) {
      const Sum x = a[static_cast<size_t>(m) * K + k];
      const T* row = w.data() + static_cast<size_t>(k) * N;
      for (int n = 0; n < N; ++n) sums[n] += x * static_cast<Sum>(row[n]);
    }
  }
  return out;
}

}  // namespace

std::vector<double> products(const std::vector<float>& a, const std::vector<float>& w, int M, int N,
                             int K) {
  return multiply<double>(a, w, M, N, K);
}

std::vector<int32_t> products(const std::vector<int16_t>& a, const std::vector<int16_t>& w, int M,
                              int N, int K) {
  return multiply<int32_t>(a, w, M, N, K);
}

}  // namespace bertcl::tests
