// SPDX-License-Identifier: Apache-2.0
// mma.clh: the matrix instruction and its twin in plain OpenCL C against a product in plain C++.
#include "tests/kernels_cl/device_test.hpp"

namespace bertcl::tests {
namespace {

constexpr size_t kM = 16, kN = 8, kK = 32;

class Mma : public testing::TestWithParam<int> {};  // MMA_PTX

TEST_P(Mma, TileEqualsPlainArithmetic) {
  if (GetParam() == 1 && !device().capabilities().ptx_mma_s8)
    GTEST_SKIP() << "this device has no ptx_mma_s8";
  auto kernel = device().kernel("probe_mma", "probe_mma", {{"MMA_PTX", GetParam()}});
  for (unsigned round = 0; round < 20; ++round) {
    const int64_t low = round % 4 == 3 ? 126 : -128;  // now and then sums near their largest
    const auto a = integers<int8_t>(kM * kK, round, low, 127);
    const auto b = integers<int8_t>(kN * kK, round + 100, low, 127);
    const auto start = integers<int32_t>(kM * kN, round, INT32_MIN, INT32_MAX);
    std::vector<int32_t> expected;
    for (size_t m = 0; m < kM; ++m)
      for (size_t n = 0; n < kN; ++n) {
        auto sum = static_cast<uint32_t>(start[m * kN + n]);
        for (size_t k = 0; k < kK; ++k)
          sum += static_cast<uint32_t>(a[m * kK + k] * b[n * kK + k]);
        expected.push_back(static_cast<int32_t>(sum));
      }
    Output<int32_t> out(kM * kN);
    kernel.args(upload(a), upload(b), upload(start), out.buffer());
    device().queue().launch(kernel, {32, 1, 1}, {32, 1, 1});
    expect_equal(out.values(), expected, "round " + std::to_string(round));
  }
}

INSTANTIATE_TEST_SUITE_P(Forms, Mma, testing::Values(0, 1), [](const auto& suite) {
  return std::string(suite.param ? "ptx" : "emulated");
});

}  // namespace
}  // namespace bertcl::tests
