// SPDX-License-Identifier: Apache-2.0
// GEMMs in f16 by matrix units, and by their twins: operands rounded to f16, sums in f32.
#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "kernels/contracts/prepack.hpp"
#include "tests/kernels_cl/gemm_variants.hpp"

namespace bertcl::tests {
namespace {

class GemmF16 : public testing::TestWithParam<GemmKernel> {
 protected:
  void SetUp() override {
    if (const auto reason = GetParam().cannot_run(); !reason.empty()) GTEST_SKIP() << reason;
  }

  std::vector<float> run_gemm(const std::vector<float>& a, const std::vector<float>& w,
                              const std::vector<float>& bias, int M, int N, int K,
                              int32_t activation) const {
    const GemmKernel& variant = GetParam();
    opencl::Buffer packed = device().allocate(ceil_div(N, variant.panel) * variant.panel *
                                              ceil_div(K, 2) * 2 * sizeof(uint16_t));
    packed.fill(0xAA);
    auto pack = device().kernel("prepack_pairs", "prepack_pairs", {{"B_HALF", 1}});
    kernels::set(pack, kernels::PrepackFloat<KernelArgument>{.w = upload(w),
                                                             .packed = packed,
                                                             .n = N,
                                                             .K = K,
                                                             .panel = variant.panel,
                                                             .first = 0,
                                                             .N = N});
    run(pack, ceil_div(N, variant.panel));
    Output<float> out(static_cast<size_t>(M) * N);
    auto kernel = device().kernel(variant.program, "gemm_f32", variant.defines);
    kernels::set(kernel, kernels::GemmF32<KernelArgument>{
                             .a = upload(a),
                             .b = packed,
                             .bias = bias.empty() ? opencl::Buffer() : upload(bias),
                             .out = out.buffer(),
                             .M = M,
                             .N = N,
                             .K = K,
                             .has_bias = bias.empty() ? 0 : 1,
                             .activation = activation});
    const auto items = static_cast<size_t>(variant.items);
    device().queue().launch(kernel,
                            {items, ceil_div(M, variant.tile_rows), ceil_div(N, variant.columns)},
                            {items, 1, 1});
    return out.values();
  }

  // Of values that half holds with sums that f32 holds, so that the result is exact.
  void check_exact(int M, int N, int K) const {
    const auto small = [](size_t count, unsigned seed) {
      std::vector<float> values;
      for (int v : integers<int>(count, seed, -15, 15)) values.push_back(static_cast<float>(v) / 8);
      return values;
    };
    const auto a = small(static_cast<size_t>(M) * K, 1), w = small(static_cast<size_t>(K) * N, 2);
    std::vector<float> expected(static_cast<size_t>(M) * N, 0.0f);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n)
          expected[static_cast<size_t>(m) * N + n] +=
              a[static_cast<size_t>(m) * K + k] * w[static_cast<size_t>(k) * N + n];
    expect_equal(run_gemm(a, w, {}, M, N, K, kNone), expected,
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
    std::vector<double> expected(static_cast<size_t>(M) * N, 0.0);
    for (size_t m = 0; m < M; ++m)
      for (size_t k = 0; k < K; ++k)
        for (size_t n = 0; n < N; ++n)
          expected[m * N + n] += static_cast<double>(a[m * K + k]) * w[k * N + n];
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = activated(expected[i] + bias[i % N], activation);
    const double half_bound = 2e-3 / std::numeric_limits<float>::epsilon();
    expect_close(run_gemm(a, w, bias, M, N, K, activation), expected,
                 "activation " + std::to_string(activation), half_bound);
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, GemmF16, testing::ValuesIn(gemm_f16_variants()),
                         [](const auto& suite) { return suite.param.name(); });

}  // namespace
}  // namespace bertcl::tests
