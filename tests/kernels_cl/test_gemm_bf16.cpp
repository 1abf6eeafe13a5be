// SPDX-License-Identifier: Apache-2.0
// The GEMM in bf16 against sums in double of operands rounded to bf16.
#include "kernels/bind.hpp"
#include "kernels/contracts/gemm.hpp"
#include "tests/kernels_cl/float_gemm.hpp"
#include "tests/kernels_cl/gemm_variants.hpp"

namespace bertcl::tests {
namespace {

/// The parameters are ITEM_PANELS, the panels of a work-item, and whether A comes in bf16.
class GemmBf16 : public testing::TestWithParam<std::tuple<int, bool>> {
 protected:
  void SetUp() override {
    if (const auto reason = gemm_bf16_variant().cannot_run(); !reason.empty())
      GTEST_SKIP() << reason;
  }
  template <typename T = float>
  std::vector<T> run_gemm(const std::vector<float>& a, const std::vector<float>& w,
                          const std::vector<float>& bias, int M, int N, int K,
                          int32_t activation) const {
    const GemmKernel& variant = gemm_bf16_variant();
    const auto weights = prepack_pairs(w, N, K, variant.panel);
    const auto [item_panels, bf16] = GetParam();
    Output<T> out(static_cast<size_t>(M) * N);
    auto kernel = device().kernel(variant.program, "gemm_bf16", {{"ITEM_PANELS", item_panels}});
    kernels::set(kernel, kernels::GemmBf16<KernelArgument>{
                             .a = bf16 ? upload(bf16_bits(a)) : upload(a),
                             .b = weights,
                             .bias = bias.empty() ? opencl::Buffer() : upload(bias),
                             .out = out.buffer(),
                             .M = M,
                             .N = N,
                             .K = K,
                             .has_bias = bias.empty() ? 0 : 1,
                             .activation = activation,
                             .a_type = bf16 ? kBf16 : kF32,
                             .out_type = sizeof(T) == 2 ? kBf16 : kF32});
    run(kernel, ceil_div(M, variant.tile_rows), ceil_div(ceil_div(N, variant.panel), item_panels));
    return out.values();
  }
  void check(int M, int N, int K, int32_t activation, bool with_bias) const {
    const auto a = normal_values(static_cast<size_t>(M) * K, 1);
    const auto w = normal_values(static_cast<size_t>(K) * N, 2);
    const auto bias = with_bias ? normal_values(N, 3) : std::vector<float>();
    const auto expected =
        gemm_values(from_bf16(bf16_bits(a)), from_bf16(bf16_bits(w)), bias, M, N, K, activation);
    const std::string size =
        "M " + std::to_string(M) + " N " + std::to_string(N) + " K " + std::to_string(K);
    const auto f32 = run_gemm(a, w, bias, M, N, K, activation);
    expect_close(f32, expected, size);
    expect_equal(run_gemm<uint16_t>(a, w, bias, M, N, K, activation), bf16_bits(f32),
                 size + ", result in bf16");
  }
};

TEST_P(GemmBf16, RaggedSizes) {
  bool bias = false;
  for (int M : {1, 7, 8, 9, 13})
    for (int N : {1, 2, 17, 47, 48, 49, 97, 145})
      for (int K : {1, 2, 7, 31, 32, 33, 384, 769}) {
        check(M, N, K, kNone, bias = !bias);
        if (HasFailure()) return;
      }
}

TEST_P(GemmBf16, SeveralBlocksOfColumns) {
  for (int K : {1023, 1024, 1025, 2081, 3072}) check(11, 100, K, kNone, true);
}

// Odd and many tiles of rows over three panels.
TEST_P(GemmBf16, BlocksOfTiles) {
  for (const int tiles : {7, 9, 18, 33}) check(8 * tiles - 1, 143, 20, kNone, true);
}

TEST_P(GemmBf16, Activations) {
  for (int32_t activation : {kNone, kGelu, kGeluTanh, kRelu, kTanh})
    check(29, 101, 17, activation, true);
}

TEST_P(GemmBf16, RoundsOperandsHalfToEven) {
  // Next to 1 a step is 2^-7: halves of it go to the even neighbour, for either operand.
  const float half = std::ldexp(1.0f, -8);
  for (const auto& [x, rounded] : {std::pair{1 + half, 1.0f}, {1 + 3 * half, 1 + 4 * half}}) {
    EXPECT_EQ(run_gemm({x}, {1.0f}, {}, 1, 1, 1, kNone)[0], rounded);
    EXPECT_EQ(run_gemm({1.0f}, {x}, {}, 1, 1, 1, kNone)[0], rounded);
  }
}

TEST_P(GemmBf16, KeepsInfinityAndNan) {
  const auto of = [this](float x) {
    return run_gemm({x, 1.0f}, {1.0f, 0.0f}, {}, 1, 1, 2, kNone)[0];
  };
  EXPECT_EQ(of(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(of(NAN)));
  EXPECT_TRUE(std::isnan(run_gemm({1.0f}, {NAN}, {}, 1, 1, 1, kNone)[0]));
}

INSTANTIATE_TEST_SUITE_P(ItemPanels, GemmBf16,
                         testing::Combine(testing::Values(1, 2, 4), testing::Bool()));

TEST(PackBf16, Panels) {
  struct Case {
    int N, K, panel;
    std::vector<int> cuts;
  };
  for (const Case& c :
       {Case{1, 1, 48, {}}, {47, 5, 48, {}}, {49, 8, 48, {}}, {150, 7, 48, {50, 100}}}) {
    const auto w = normal_values(static_cast<size_t>(c.N) * c.K, 3);
    std::vector<uint16_t> expected;
    for (int n0 = 0; n0 < c.N; n0 += c.panel)
      for (int k0 = 0; k0 < c.K; k0 += 2)
        for (int n = n0; n < n0 + c.panel; ++n)
          for (int k = k0; k < k0 + 2; ++k) {
            const bool exists = n < c.N && k < c.K;
            const float x = exists ? to_bf16(w[static_cast<size_t>(k) * c.N + n]) : 0.0f;
            expected.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
          }
    for (const int item_columns : {0, 1})
      expect_equal(
          prepack_pairs(w, c.N, c.K, c.panel, {}, c.cuts, item_columns).download<uint16_t>(),
          expected, "bf16");
  }
}

}  // namespace
}  // namespace bertcl::tests
