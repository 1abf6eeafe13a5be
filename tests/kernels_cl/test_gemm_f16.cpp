// SPDX-License-Identifier: Apache-2.0
// GEMMs in f16 by matrix units and by emulated ones: operands rounded to f16, sums in f32.
#include "tests/kernels_cl/float_gemm.hpp"
#include "tests/kernels_cl/gemm_variants.hpp"

namespace bertcl::tests {
namespace {

class GemmF16 : public GemmTest {
 protected:
  std::vector<float> run_gemm(const std::vector<float>& a, const std::vector<float>& w,
                              const std::vector<float>& bias, int M, int N, int K,
                              int32_t activation) const {
    const GemmKernel& variant = GetParam();
    return run_gemm_f32(variant, prepack_pairs(w, N, K, variant.panel, {{"B_HALF", 1}}), a, bias, M,
                        N, K, activation);
  }

  // Of values that half holds with sums that f32 holds, so that the result is exact.
  void check_exact(int M, int N, int K) const {
    const auto small = [](size_t count, unsigned seed) {
      std::vector<float> values;
      for (int v : integers<int>(count, seed, -15, 15)) values.push_back(static_cast<float>(v) / 8);
      return values;
    };
    const auto a = small(static_cast<size_t>(M) * K, 1), w = small(static_cast<size_t>(K) * N, 2);
    const auto sums = products(a, w, M, N, K);
    expect_equal(run_gemm(a, w, {}, M, N, K, kNone), std::vector<float>(sums.begin(), sums.end()),
                 "M " + std::to_string(M) + " N " + std::to_string(N) + " K " + std::to_string(K));
  }
};

TEST_P(GemmF16, RaggedSizesAreExactWhereHalfIs) {
  const int rows = GetParam().tile_rows, columns = GetParam().columns;
  for (int M : {1, rows - 1, rows + 1})
    for (int N : {1, 65, columns + 1})
      for (int K : {1, 7, 16, 33, 200}) {
        check_exact(M, N, K);
        if (HasFailure()) return;
      }
}

// Any values: each operand is off by 2^-11 at most, relative to a sum of sizes.
TEST_P(GemmF16, RandomValuesWithBiasAndActivation) {
  for (int32_t activation : {kNone, kGelu, kGeluTanh, kRelu, kTanh}) {
    const int M = 70, N = 193, K = 384;
    const auto a = normal_values(static_cast<size_t>(M) * K, 1);
    const auto w = normal_values(static_cast<size_t>(K) * N, 2, 0.05f), bias = normal_values(N, 3);
    const double half_bound = 2e-3 / std::numeric_limits<float>::epsilon();
    expect_close(run_gemm(a, w, bias, M, N, K, activation),
                 gemm_values(a, w, bias, M, N, K, activation),
                 "activation " + std::to_string(activation), half_bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, GemmF16, testing::ValuesIn(gemm_f16_variants()),
                         [](const auto& suite) { return suite.param.name(); });

}  // namespace
}  // namespace bertcl::tests
