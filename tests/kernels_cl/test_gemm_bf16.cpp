// SPDX-License-Identifier: Apache-2.0
// The product in bf16 against sums in double of operands rounded to bf16.
#include <bit>

#include "tests/kernels_cl/gemm_families.hpp"

namespace bertcl::tests {
namespace {

/// The nearest value of 8 significant bits, half to even.
float to_bf16(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

opencl::Buffer pack_bf16(const std::vector<float>& w, int N, int K, bool transposed, int panel) {
  opencl::Buffer packed = device().allocate(ceil_div(N, panel) * panel * ceil_div(K, 2) * 2 * 2);
  packed.fill(0xAA);
  auto kernel = device().kernel("pack_bf16", "pack_bf16");
  kernel.args(upload(w), packed, N, K, transposed ? 1 : 0, panel);
  run(kernel, ceil_div(N, panel));
  return packed;
}

/// The parameter is ITEM_PANELS, the panels of a work-item.
class GemmBf16 : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!gemm_bf16_family().runs()) GTEST_SKIP() << "this device has no avx512_bf16";
  }
  std::vector<float> run_product(const std::vector<float>& a, const std::vector<float>& w,
                                 const std::vector<float>& bias, int M, int N, int K,
                                 int32_t activation) const {
    const GemmFamily& family = gemm_bf16_family();
    const auto weights = pack_bf16(w, N, K, false, family.panel);
    Output<float> out(static_cast<size_t>(M) * N);
    auto kernel = device().kernel(family.program, "gemm_f32", {{"ITEM_PANELS", GetParam()}});
    kernel.args(upload(a), weights, bias.empty() ? opencl::Buffer() : upload(bias), out.buffer(), M,
                N, K, bias.empty() ? 0 : 1, activation);
    run(kernel, ceil_div(M, family.tile_rows), ceil_div(ceil_div(N, family.panel), GetParam()));
    return out.values();
  }
  void check(int M, int N, int K, int32_t activation, bool with_bias) const {
    const auto a = normal_values(static_cast<size_t>(M) * K, 1);
    const auto w = normal_values(static_cast<size_t>(K) * N, 2);
    const auto bias = with_bias ? normal_values(N, 3) : std::vector<float>();
    std::vector<double> expected(static_cast<size_t>(M) * N, 0.0);
    for (int m = 0; m < M; ++m)
      for (int k = 0; k < K; ++k)
        for (int n = 0; n < N; ++n)
          expected[static_cast<size_t>(m) * N + n] +=
              static_cast<double>(to_bf16(a[static_cast<size_t>(m) * K + k])) *
              to_bf16(w[static_cast<size_t>(k) * N + n]);
    for (size_t i = 0; i < expected.size(); ++i)
      expected[i] = activated(expected[i] + (bias.empty() ? 0.0 : bias[i % N]), activation);
    expect_close(run_product(a, w, bias, M, N, K, activation), expected,
                 "M " + std::to_string(M) + " N " + std::to_string(N) + " K " + std::to_string(K));
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

TEST_P(GemmBf16, Activations) {
  for (int32_t activation : {kNone, kGelu, kGeluTanh, kRelu, kTanh})
    check(29, 101, 17, activation, true);
}

TEST_P(GemmBf16, RoundsOperandsHalfToEven) {
  // Next to 1 a step is 2^-7: halves of it go to the even neighbour, on both sides of the product.
  const float half = std::ldexp(1.0f, -8);
  for (const auto& [x, rounded] : {std::pair{1 + half, 1.0f}, {1 + 3 * half, 1 + 4 * half}}) {
    EXPECT_EQ(run_product({x}, {1.0f}, {}, 1, 1, 1, kNone)[0], rounded);
    EXPECT_EQ(run_product({1.0f}, {x}, {}, 1, 1, 1, kNone)[0], rounded);
  }
}

TEST_P(GemmBf16, KeepsInfinityAndNan) {
  const auto of = [this](float x) {
    return run_product({x, 1.0f}, {1.0f, 0.0f}, {}, 1, 1, 2, kNone)[0];
  };
  EXPECT_EQ(of(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(of(NAN)));
  EXPECT_TRUE(std::isnan(run_product({1.0f}, {NAN}, {}, 1, 1, 1, kNone)[0]));
}

INSTANTIATE_TEST_SUITE_P(ItemPanels, GemmBf16, testing::Values(1, 2, 4));

TEST(PackBf16, Panels) {
  for (const auto& [N, K, panel] : {std::array{1, 1, 48}, {47, 5, 48}, {49, 8, 48}}) {
    const auto w = normal_values(static_cast<size_t>(N) * K, 3);
    std::vector<float> transposed(w.size());
    std::vector<uint16_t> expected;
    for (int k = 0; k < K; ++k)
      for (int n = 0; n < N; ++n)
        transposed[static_cast<size_t>(n) * K + k] = w[static_cast<size_t>(k) * N + n];
    for (int n0 = 0; n0 < N; n0 += panel)
      for (int k0 = 0; k0 < K; k0 += 2)
        for (int n = n0; n < n0 + panel; ++n)
          for (int k = k0; k < k0 + 2; ++k) {
            const float x = n < N && k < K ? to_bf16(w[static_cast<size_t>(k) * N + n]) : 0.0f;
            expected.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(x) >> 16));
          }
    for (bool is_transposed : {false, true})
      expect_equal(pack_bf16(is_transposed ? transposed : w, N, K, is_transposed, panel)
                       .download<uint16_t>(),
                   expected, "bf16");
  }
}

}  // namespace
}  // namespace bertcl::tests
