// SPDX-License-Identifier: Apache-2.0
// The fp32 GEMMs with fp32 and fp16 weights, and the vector functions of their epilogue.
#include <map>
#include <tuple>

#include "opencl/program/sources.hpp"
#include "tests/kernels_cl/float_gemm.hpp"
#include "tests/kernels_cl/gemm_variants.hpp"

namespace bertcl::tests {
namespace {

// The value of a half.
float from_half(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const float size = exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24)
                                   : std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
  return half & 0x8000 ? -size : size;
}

// Values that half precision holds exactly.
std::vector<float> half_values(size_t count, unsigned seed) {
  auto halves = integers<uint16_t>(count, seed, 0x3000, 0x3fff);  // 0.125 to 2, some negative
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = from_half(static_cast<uint16_t>(halves[i] | (halves[i] & 1 ? 0x8000 : 0)));
  return values;
}

/// `T` is float, or uint16_t for weights that come in half.
template <typename T = float>
opencl::Buffer prepack_f32(const std::vector<T>& w, int N, int K, int panel, int half,
                           const std::vector<int>& cuts = {}, int item_columns = 0) {
  const opencl::Defines defines{
      {"B_HALF", half}, {"W_HALF", sizeof(T) == 2 ? 1 : 0}, {"ITEM_COLUMNS", item_columns}};
  return prepack_floats(device().kernel("prepack_f32", "prepack_f32", defines),
                        ceil_div(N, panel) * panel * K * (half ? 2 : 4), w, N, K, panel, cuts,
                        item_columns);
}

std::vector<float> run_gemm(const GemmKernel& variant, const std::vector<float>& a,
                            const std::vector<float>& w, const std::vector<float>& bias, int M,
                            int N, int K, int32_t activation) {
  const auto weights = prepack_f32(w, N, K, variant.panel, variant.defines.at("B_HALF"));
  return run_gemm_f32(variant, weights, a, bias, M, N, K, activation);
}

class GemmF32 : public GemmTest {
 protected:
  void check(int M, int N, int K, int32_t activation, bool with_bias) const {
    const auto a = normal_values(static_cast<size_t>(M) * K, 1);
    const auto w = half_values(static_cast<size_t>(K) * N, 2);
    const auto bias = with_bias ? normal_values(N, 3) : std::vector<float>();
    // Computed once for all variants.
    static auto* known =
        new std::map<std::tuple<int, int, int, int32_t, bool>, std::vector<double>>;
    const auto [place, is_new] = known->try_emplace({M, N, K, activation, with_bias});
    if (is_new) place->second = gemm_values(a, w, bias, M, N, K, activation);
    expect_close(run_gemm(GetParam(), a, w, bias, M, N, K, activation), place->second,
                 "M " + std::to_string(M) + " N " + std::to_string(N) + " K " + std::to_string(K) +
                     " activation " + std::to_string(activation));
  }
};

TEST_P(GemmF32, RaggedSizes) {
  const int rows = GetParam().tile_rows, panel = GetParam().panel, tile = GetParam().columns;
  std::vector<int> columns{1, 2, 15, 17, panel - 1, panel, panel + 1, 97};
  if (tile > panel) columns.insert(columns.end(), {tile - 1, tile, tile + 1});
  bool bias = false;
  for (int M : {1, rows - 1, rows, rows + 1, 13})
    for (int N : columns)
      for (int K : {1, 2, 7, 8, 9, 31, 384, 769}) {
        if (M < 1 || N < 1) continue;
        check(M, N, K, kNone, bias = !bias);
        if (HasFailure()) return;
      }
}

TEST_P(GemmF32, ModelSizes) {
  check(70, 384, 384, kNone, true);
  check(33, 769, 768, kGelu, true);
  check(19, 192, 3072, kNone, false);
}

// Some, odd and many tiles of rows over three panels, of rows that are cut into blocks early and of
// others.
TEST_P(GemmF32, BlocksOfTiles) {
  const int rows = GetParam().tile_rows, columns = 3 * GetParam().panel - 1;
  for (const int tiles : {2, 7, 8, 9}) check(rows * tiles - 1, columns, 2049, kNone, true);
  if (rows <= 8)  // of a CPU
    for (const int tiles : {17, 33, 65}) check(rows * tiles, columns, 2049, kNone, false);
  for (const int tiles : {17, 33, 65}) check(rows * tiles, columns, 20, kGelu, true);
}

TEST_P(GemmF32, Activations) {
  for (int32_t activation : {kNone, kGelu, kGeluTanh, kRelu, kTanh})
    check(29, 101, 17, activation, true);
}

TEST_P(GemmF32, ARowWithNaNIsNaNAfterEveryActivation) {
  for (const float nan : nans())
    for (int32_t activation : {kNone, kGelu, kGeluTanh, kRelu, kTanh}) {
      auto a = normal_values(29 * 17, 1);
      a[13 * 17 + 5] = nan;
      const auto out = run_gemm(GetParam(), a, half_values(17 * 101, 2), normal_values(101, 3), 29,
                                101, 17, activation);
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(std::isnan(out[i]), i / 101 == 13) << "activation " << activation << " at " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Variants, GemmF32, testing::ValuesIn(gemm_f32_variants()),
                         [](const auto& suite) { return suite.param.name(); });

TEST(PackF32, Panels) {
  struct Case {
    int N, K, panel;
    std::vector<int> cuts;
  };
  for (const Case& c : {Case{1, 1, 16, {}},
                        {47, 5, 48, {}},
                        {49, 7, 48, {}},
                        {33, 20, 1, {}},
                        {33, 20, 1, {11, 22}},
                        {96, 3, 48, {48}},
                        {150, 5, 48, {50, 100}},  // a panel of two parts
                        {9, 2, 16, {3, 6}}}) {    // one of three
    std::vector<uint16_t> halves = integers<uint16_t>(static_cast<size_t>(c.N) * c.K, 3, 0, 0x7bff);
    std::vector<float> w, expected;
    for (uint16_t half : halves) w.push_back(from_half(half));
    for (int n0 = 0; n0 < c.N; n0 += c.panel)
      for (int k = 0; k < c.K; ++k)
        for (int n = n0; n < n0 + c.panel; ++n)
          expected.push_back(n < c.N ? w[static_cast<size_t>(k) * c.N + n] : 0.0f);
    const auto check = [&](const auto& source, const std::string& type) {
      for (const int item_columns : {0, 1}) {
        const auto pack = [&](int half) {
          return prepack_f32(source, c.N, c.K, c.panel, half, c.cuts, item_columns);
        };
        expect_equal(pack(0).template download<float>(), expected, type + " to f32");
        std::vector<float> packed;
        for (uint16_t half : pack(1).template download<uint16_t>())
          packed.push_back(from_half(half));
        expect_equal(packed, expected, type + " to f16");
      }
    };
    check(w, "f32");
    check(halves, "f16");
  }
}

TEST(PackF32, RoundsToHalfHalfToEven) {
  const float step = std::ldexp(1.0f, -10);  // of halves from 1 on
  const std::vector<float> w = {1 + 0.5f * step, 1 + 1.5f * step, 1 + 0.51f * step,
                                -1 - 2.5f * step};
  std::vector<float> halves;
  for (uint16_t half : prepack_f32(w, 4, 1, 1, 1).download<uint16_t>())
    halves.push_back(from_half(half));
  expect_equal(halves, {1, 1 + 2 * step, 1 + step, -1 - 2 * step}, "f16");
}

// Runs `function` of activation.clh, for example exp_v16, over `values` (a multiple of 16 of them).
std::vector<float> run_vector(const std::string& function, int lanes, const std::vector<float>& x) {
  std::string source;
  for (const auto& file : opencl::embedded_sources())
    if (file.name == "lib/activation.clh") source = file.text;
  const std::string n = std::to_string(lanes);
  source +=
      "\n__kernel void apply(__global const float* x, __global float* y) {\n"
      "  size_t i = get_global_id(0);\n"
      "  vstore" +
      n + "(" + function + "_v" + n + "(vload" + n + "(i, x)), i, y);\n}\n";
  auto kernel = device().kernel_from_source("vector_function", source, "apply");
  Output<float> y(x.size());
  kernel.args(upload(x), y.buffer());
  run(kernel, x.size() / lanes);
  return y.values();
}

// Largest error in units of the last place of the exact value.
double largest_ulp(const std::vector<float>& x, const std::vector<float>& y,
                   double (*exact)(double)) {
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double e = exact(x[i]);
    const float size = std::abs(static_cast<float>(e));
    const double ulp = static_cast<double>(std::nextafter(size, INFINITY)) - size;
    largest = std::max(largest, std::abs(y[i] - e) / ulp);
  }
  return largest;
}

// All sizes of both signs, from 2^-30 to `limit`.
std::vector<float> spread_values(float limit) {
  std::vector<float> values;
  for (int i = 0; i < 1 << 13; ++i) {
    const float x = limit * std::exp2(-static_cast<float>(i) / 250.0f);
    values.push_back(x);
    values.push_back(-x);
  }
  return values;
}

class VectorMath : public testing::TestWithParam<int> {};

TEST_P(VectorMath, ErrorsInUlp) {
  const auto wide = spread_values(87.3f), medium = spread_values(12.0f);
  EXPECT_LE(largest_ulp(wide, run_vector("exp", GetParam(), wide), std::exp), 1.5);
  EXPECT_LE(largest_ulp(medium, run_vector("erf", GetParam(), medium), std::erf), 8);
  EXPECT_LE(largest_ulp(medium, run_vector("tanh", GetParam(), medium), std::tanh), 7);
}

TEST_P(VectorMath, ExpAtItsEnds) {
  std::vector<float> x(16, 0.0f);
  x[1] = -INFINITY, x[2] = -1e30f, x[3] = -88.0f, x[4] = INFINITY, x[5] = -0.0f;
  const auto y = run_vector("exp", GetParam(), x);
  EXPECT_EQ(y[0], 1.0f);
  EXPECT_EQ(y[1], 0.0f);
  EXPECT_EQ(y[2], 0.0f);
  EXPECT_EQ(y[3], 0.0f);
  EXPECT_NEAR(y[4] / std::exp(88.0f), 1.0f, 1e-6f);
  EXPECT_EQ(y[5], 1.0f);
}

INSTANTIATE_TEST_SUITE_P(Lanes, VectorMath, testing::Values(8, 16),
                         [](const auto& suite) { return "v" + std::to_string(suite.param); });

}  // namespace
}  // namespace bertcl::tests
