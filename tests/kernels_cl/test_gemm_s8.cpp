// SPDX-License-Identifier: Apache-2.0
// The int8 GEMMs: exact sums in every variant, and the epilogue with its requantization.
#include <cstring>

#include "tests/kernels_cl/gemm_variants.hpp"

namespace bertcl::tests {
namespace {

enum class Bytes { kRandom, kLowest, kHighest, kAlternating };

template <typename T>
std::vector<T> bytes(size_t count, unsigned seed, Bytes pattern, T low, T high) {
  if (pattern == Bytes::kRandom) return integers<T>(count, seed, low, high);
  std::vector<T> values(count, pattern == Bytes::kLowest ? low : high);
  if (pattern == Bytes::kAlternating)
    for (size_t i = 0; i < count; i += 2) values[i] = low;
  return values;
}

GemmS8Case make_case(int M, int N, int K, bool a_signed, int zero_point, unsigned seed = 1,
                     Bytes a = Bytes::kRandom, Bytes w = Bytes::kRandom) {
  GemmS8Case c{M, N, K, a_signed, zero_point};
  const size_t count = static_cast<size_t>(M) * K;
  if (a_signed) {
    const auto values = bytes<int8_t>(count, seed, a, -128, 127);
    c.a.assign(values.begin(), values.end());
  } else {
    c.a = bytes<uint8_t>(count, seed, a, 0, 255);
  }
  c.w = bytes<int8_t>(static_cast<size_t>(K) * N, seed + 1, w, -128, 127);
  return c;
}

class GemmS8 : public GemmTest {};

TEST_P(GemmS8, SumsAreExactForRaggedSizes) {
  const GemmKernel& variant = GetParam();
  const int rows = variant.tile_rows, panel = variant.panel;
  const Bytes patterns[] = {Bytes::kRandom, Bytes::kLowest, Bytes::kHighest, Bytes::kAlternating};
  std::vector<int> rows_of_a{1, rows - 1, rows, rows + 1, 13};
  std::vector<int> columns{1, 2, 15, 17, panel - 1, panel, panel + 1, 97};
  if (variant.columns > panel)  // a work-item makes several panels
    columns.insert(columns.end(), {variant.columns - 1, variant.columns, variant.columns + 1});
  std::vector<int> depths{1, 2, 3, 4, 5, 7, 31, 383, 384, 513, 767, 769, 1025};
  if (variant.items > 1) {  // a CPU plays a work-group: its tiles are wide, and its steps 32
    rows_of_a = {1, rows - 1, rows + 1};
    columns = {1, panel + 1, variant.columns - 1, variant.columns + 1};
    depths = {1, 3, 31, 33, 96, 383, 400};
  }
  unsigned round = 0;
  for (int M : rows_of_a)
    for (int N : columns)
      for (int K : depths) {
        if (M < 1 || N < 1) continue;
        ++round;
        const bool a_signed = round % 2;
        const int zero_points[] = {a_signed ? -128 : 0, a_signed ? 127 : 255, 3};
        const auto c = make_case(M, N, K, a_signed, zero_points[round % 3], round,
                                 patterns[round % 4], patterns[round / 4 % 4]);
        expect_equal(run_gemm_s8<int32_t>(variant, c, kS32), reference_sums(c), c.text());
        if (HasFailure()) return;
      }
}

TEST_P(GemmS8, SumsAreExactForModelSizes) {
  for (const auto& [M, N, K] : {std::array{70, 384, 384}, {33, 769, 768}, {19, 192, 3072}}) {
    const auto c = make_case(M, N, K, M % 2, 5);
    expect_equal(run_gemm_s8<int32_t>(GetParam(), c, kS32), reference_sums(c), c.text());
  }
}

// Odd and many tiles of rows over three panels, or as many tiles of a work-item.
TEST_P(GemmS8, SumsAreExactForBlocksOfTiles) {
  const GemmKernel& variant = GetParam();
  const int columns = 3 * (variant.items == 1 ? variant.columns : variant.panel) - 1;
  for (const int tiles : {7, 9, 18, 33}) {
    const auto c = make_case(GetParam().tile_rows * tiles - 1, columns, 20, tiles % 2, 5);
    expect_equal(run_gemm_s8<int32_t>(GetParam(), c, kS32), reference_sums(c), c.text());
  }
}

// The largest sums of the longest K that int32 can hold: 255 * 128 * 65,793 < 2^31. Columns of both
// signs lie in one tile, which takes half a second where a CPU plays a work-group.
TEST_P(GemmS8, SumsAreExactAtTheLimitOfInt32) {
  for (const Bytes a : {Bytes::kHighest, Bytes::kLowest}) {
    auto c = make_case(2, 3, 65793, a == Bytes::kLowest, 0, 1, a, Bytes::kLowest);
    for (size_t i = 1; i < c.w.size(); i += 3) c.w[i] = 127;
    expect_equal(run_gemm_s8<int32_t>(GetParam(), c, kS32), reference_sums(c), c.text());
    if (GetParam().items > 1 && device().info().is_cpu()) break;
  }
}

// Pairs of weights whose sums with the largest activations just fit in 16 bits, and pairs whose
// sums just do not: panels have quads of both kinds, or of one.
TEST_P(GemmS8, SumsAreExactAroundTheEndsOf16Bits) {
  constexpr std::array<std::array<int8_t, 2>, 6> fits{
      {{64, 64}, {127, 1}, {-128, 0}, {-64, -64}, {127, -128}, {-1, 1}}};
  constexpr std::array<std::array<int8_t, 2>, 5> exceeds{
      {{64, 65}, {127, 2}, {-128, -1}, {127, 127}, {-65, -64}}};
  const int rows = GetParam().tile_rows;
  unsigned round = 0;
  for (const int rarely : {1, 40, 1000000})
    for (const int K : {6, 32, 766, 768, 1540}) {
      const int N = 35;
      ++round;
      auto c = make_case(rows + 1, N, K, round % 2, 3, round,
                         round % 3 ? Bytes::kHighest : Bytes::kRandom);
      const auto kinds = integers<int>(c.w.size(), round, 0, rarely - 1);
      for (int k = 0; k < K; k += 2)
        for (int n = 0; n < N; ++n) {
          const size_t at = static_cast<size_t>(k) * N + n, kind = (n + k) / 2;
          const auto& pair = kinds[at] == 0 ? exceeds[kind % 5] : fits[kind % 6];
          c.w[at] = pair[0], c.w[at + N] = pair[1];
        }
      expect_equal(run_gemm_s8<int32_t>(GetParam(), c, kS32), reference_sums(c), c.text());
    }
}

TEST_P(GemmS8, WrongZeroPointIsNoticed) {
  auto c = make_case(9, 50, 77, false, 128);
  const auto expected = reference_sums(c);
  c.zero_point = 127;
  EXPECT_NE(run_gemm_s8<int32_t>(GetParam(), c, kS32), expected);
}

// Weights in u8 whose zero points are any: -128 to 127 after the shift to s8.
TEST_P(GemmS8, SumsAreExactWithZeroPointsOfWeights) {
  const int rows = GetParam().tile_rows, panel = GetParam().panel;
  std::vector<int> rows_of_a{1, rows, rows + 1}, columns{1, 17, panel + 1},
      depths{1, 15, 16, 33, 513};
  // Where a CPU plays a work-group: as in SumsAreExactForRaggedSizes.
  if (GetParam().items > 1 && device().info().is_cpu())
    rows_of_a = {1, rows + 1}, columns = {1, panel + 1}, depths = {1, 33, 400};
  for (int M : rows_of_a)
    for (int N : columns)
      for (int K : depths)
        for (bool a_signed : {false, true}) {
          auto c = make_case(M, N, K, a_signed, a_signed ? -128 : 255, static_cast<unsigned>(K));
          c.w_zero_point = integers<int32_t>(N, 5, -128, 127);
          c.w_zero_point[0] = -128;
          expect_equal(run_gemm_s8<int32_t>(GetParam(), c, kS32), reference_sums(c), c.text());
          c.x_scale = {1.0f};
          expect_equal(run_gemm_s8<int32_t>(GetParam(), c, kS32), reference_sums(c), c.text());
        }
}

// Values as they are in a network: sums of some thousands times small scales, one per column.
GemmS8Case network_case(int M, int N, int K, bool a_signed, int32_t activation, bool bias) {
  auto c = make_case(M, N, K, a_signed, a_signed ? -7 : 131, static_cast<unsigned>(M + N + K));
  c.scale = normal_values(N, 11, 0.1f);
  for (float& s : c.scale) s = (1.0f + std::abs(s)) / (5000.0f * std::sqrt(static_cast<float>(K)));
  if (bias) c.bias = normal_values(N, 12);
  c.activation = activation;
  return c;
}

std::vector<double> reference_values(const GemmS8Case& c) {
  const auto sums = reference_sums(c);
  std::vector<double> values(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) {
    const size_t n = i % c.N;
    double scale = c.x_scale.empty() ? c.scale[n] : c.scale[n] * c.x_scale[0];
    if (!c.row_scale.empty()) scale *= c.row_scale[i / c.N];
    values[i] = activated(sums[i] * scale + (c.bias.empty() ? 0.0 : c.bias[n]), c.activation);
  }
  return values;
}

TEST_P(GemmS8, FloatOutputs) {
  for (int32_t activation : {kNone, kGelu, kGeluTanh, kRelu, kTanh})
    for (bool bias : {false, true}) {
      const auto c = network_case(29, 101, 130, bias, activation, bias);
      expect_close(run_gemm_s8<float>(GetParam(), c, kF32), reference_values(c), c.text());
    }
}

TEST_P(GemmS8, MeasuredScaleAndZeroPoint) {
  for (bool a_signed : {false, true})
    for (bool weights_have_zero_points : {false, true}) {
      auto c = network_case(13, 65, 96, a_signed, kGelu, true);
      c.x_scale = {1.75f};
      if (weights_have_zero_points) c.w_zero_point = integers<int32_t>(c.N, 6, -9, 9);
      expect_close(run_gemm_s8<float>(GetParam(), c, kF32), reference_values(c), c.text());
    }
}

// As after quantize_rows.cl: every row of every tile has its own scale, the last ones too.
TEST_P(GemmS8, ScalesOfRows) {
  const int rows = GetParam().tile_rows;
  for (const int M : {1, rows, rows + 1, 2 * rows - 1})
    for (bool bias : {false, true}) {
      auto c = network_case(M, 65, 96, true, bias ? kGelu : kNone, bias);
      c.zero_point = 0;
      for (int m = 0; m < M; ++m) c.row_scale.push_back(0.5f + 0.375f * static_cast<float>(m));
      expect_close(run_gemm_s8<float>(GetParam(), c, kF32), reference_values(c), c.text());
      c.out_inv_scale.assign(65, 20.0f);
      c.out_zero_point.assign(65, 3.0f);
      std::vector<int8_t> expected;
      for (const double v : reference_values(c))
        expected.push_back(static_cast<int8_t>(quantized(v * 20.0, 3, true)));
      expect_quantized(run_gemm_s8<int8_t>(GetParam(), c, kS8), expected, c.text());
    }
}

// Each column has its own output scale and zero point, as in a fused linear of Q, K and V.
TEST_P(GemmS8, RequantizedOutputs) {
  for (int32_t activation : {kNone, kGelu, kGeluTanh, kRelu, kTanh})
    for (bool out_signed : {false, true}) {
      auto c = network_case(61, 149, 384, out_signed, activation, !out_signed);
      for (int n = 0; n < c.N; ++n) {
        c.out_inv_scale.push_back(20.0f + static_cast<float>(n));  // some columns saturate
        c.out_zero_point.push_back(static_cast<float>(n * 5 % 256 - (out_signed ? 128 : 0)));
      }
      const auto values = reference_values(c);
      const auto expected = [&](auto zero) {
        std::vector<decltype(zero)> result(values.size());
        for (size_t i = 0; i < values.size(); ++i)
          result[i] = static_cast<decltype(zero)>(
              quantized(values[i] * c.out_inv_scale[i % c.N],
                        static_cast<int>(c.out_zero_point[i % c.N]), out_signed));
        return result;
      };
      if (out_signed)
        expect_quantized(run_gemm_s8<int8_t>(GetParam(), c, kS8), expected(int8_t{}), c.text());
      else
        expect_quantized(run_gemm_s8<uint8_t>(GetParam(), c, kU8), expected(uint8_t{}), c.text());
    }
}

// Ties go to the even integer before the zero point is added, also where that is odd.
TEST_P(GemmS8, RoundsHalfToEven) {
  GemmS8Case c{1, 7, 1};
  c.a = {1};
  c.w = {-7, -5, -3, -1, 1, 3, 5};
  c.scale.assign(7, 0.5f);
  c.out_inv_scale.assign(7, 1.0f);
  c.out_zero_point.assign(7, 9.0f);
  expect_equal(run_gemm_s8<uint8_t>(GetParam(), c, kU8), {5, 7, 7, 9, 9, 11, 11}, c.text());
  expect_equal(run_gemm_s8<int8_t>(GetParam(), c, kS8), {5, 7, 7, 9, 9, 11, 11}, c.text());
}

INSTANTIATE_TEST_SUITE_P(Variants, GemmS8, testing::ValuesIn(gemm_s8_variants()),
                         [](const auto& suite) { return suite.param.name(); });

TEST(PackS8, PanelsAndColumnSums) {
  struct Case {
    int N, K;
    std::vector<int> cuts;
  };
  for (const Case& c : {Case{1, 1, {}},
                        {47, 5, {}},
                        {48, 4, {}},
                        {49, 7, {}},
                        {130, 66, {}},
                        {144, 9, {48, 96}},
                        {150, 10, {50, 100}}})
    for (const auto& [panel, group] :
         {std::array{1, 1}, {16, 1}, {64, 1}, {64, 2}, {48, 4}, {64, 16}}) {
      const auto w = integers<int8_t>(static_cast<size_t>(c.N) * c.K, 3, -128, 127);
      std::vector<int8_t> expected;
      std::vector<int32_t> sums(c.N, 0);
      for (int k = 0; k < c.K; ++k)
        for (int n = 0; n < c.N; ++n) sums[n] += w[static_cast<size_t>(k) * c.N + n];
      for (int n0 = 0; n0 < c.N; n0 += panel)
        for (int k0 = 0; k0 < c.K; k0 += group)
          for (int n = n0; n < n0 + panel; ++n)
            for (int k = k0; k < k0 + group; ++k)
              expected.push_back(n < c.N && k < c.K ? w[static_cast<size_t>(k) * c.N + n]
                                                    : int8_t{0});
      const std::string what = "N " + std::to_string(c.N) + " K " + std::to_string(c.K) +
                               " panel " + std::to_string(panel);
      for (const int item_columns : {0, 1, panel % 8 ? 1 : 8}) {
        const auto prepacked = prepack_s8(w, c.N, c.K, panel, group, c.cuts, item_columns);
        expect_equal(prepacked.panels.download<int8_t>(), expected, what);
        expect_equal(prepacked.column_sums.download<int32_t>(), sums, what);
      }
    }
}

TEST(PackS8, QuadsThatCannotSaturateComeFirst) {
  const int panel = 16, block = 32;
  for (const auto& [N, K] : {std::array{1, 1}, {16, 32}, {17, 33}, {50, 135}}) {
    auto w = integers<int8_t>(static_cast<size_t>(N) * K, 3, -70, 70);
    const auto at = [&](int k, int n) {
      return n < N && k < K ? w[static_cast<size_t>(k) * N + n] : 0;
    };
    const auto saturates = [&](int k, int n) {
      const int most = 255 * (std::max(at(k, n), 0) + std::max(at(k + 1, n), 0));
      const int least = 255 * (std::min(at(k, n), 0) + std::min(at(k + 1, n), 0));
      return most > INT16_MAX || least < INT16_MIN;
    };
    std::vector<uint16_t> expected;
    for (int n0 = 0; n0 < N; n0 += panel)
      for (int k0 = 0; k0 < K; k0 += block) {
        std::vector<uint16_t> first, last;
        for (int k = k0; k < std::min(K, k0 + block); k += 4) {
          bool any = false;
          for (int n = n0; n < n0 + panel; ++n) any = any || saturates(k, n) || saturates(k + 2, n);
          (any ? last : first).push_back(static_cast<uint16_t>((k - k0) / 4));
        }
        expected.push_back(static_cast<uint16_t>(first.size()));
        expected.insert(expected.end(), first.begin(), first.end());
        expected.insert(expected.end(), last.begin(), last.end());
      }
    for (const std::vector<int>& cuts : {std::vector<int>{}, {N / 3, N / 2}}) {
      const auto bytes = prepack_s8(w, N, K, panel, 4, cuts, 0, block).panels.download<uint8_t>();
      std::vector<uint16_t> order(expected.size());
      ASSERT_GE(bytes.size(), 2 * order.size());
      std::memcpy(order.data(), bytes.data() + bytes.size() - 2 * order.size(), 2 * order.size());
      expect_equal(order, expected, "N " + std::to_string(N) + " K " + std::to_string(K));
    }
  }
}

// By the emulated matrix unit.
TEST(GemmS8Mma, SplitKGivesTheSameSums) {
  const opencl::Defines defines{{"TILE_M", 32}, {"TILE_N", 64}};
  const GemmKernel whole = gemm_kernel("gemm_s8_mma", defines);
  opencl::Defines of_parts = defines;
  of_parts["PARTIAL"] = 1;
  for (const auto& [K, parts] : {std::array{450, 3}, {64, 2}, {130, 7}}) {
    GemmS8Case c = make_case(33, 66, K, K != 64, 7);
    c.scale.assign(66, 1e-3f);
    const PackedS8 weights = prepack_s8(c.w, c.N, c.K, whole.panel, whole.group);
    const Output<int32_t> partials(static_cast<size_t>(parts * c.M * c.N));
    auto sums = device().kernel("gemm_s8_mma", "gemm_s8_partial", of_parts);
    kernels::set(sums, kernels::GemmS8Partial<KernelArgument>{.a = upload(c.a),
                                                              .b = weights.panels,
                                                              .partials = partials.buffer(),
                                                              .M = c.M,
                                                              .N = c.N,
                                                              .K = c.K,
                                                              .a_signed = c.a_signed ? 1 : 0,
                                                              .splits = parts});
    device().queue().launch(sums, {2 * 256, 2, static_cast<size_t>(parts)}, {256, 1, 1});
    const Output<int32_t> out(static_cast<size_t>(c.M * c.N));
    auto finish = device().kernel("gemm_s8_reduce", "gemm_s8_reduce");
    kernels::set(finish, kernels::GemmS8Reduce<KernelArgument>{.partials = partials.buffer(),
                                                               .column_sums = weights.column_sums,
                                                               .scale = upload(c.scale),
                                                               .bias = opencl::Buffer(),
                                                               .out_inv_scale = opencl::Buffer(),
                                                               .out_zero_point = opencl::Buffer(),
                                                               .out = out.buffer(),
                                                               .M = c.M,
                                                               .N = c.N,
                                                               .zero_point = c.zero_point,
                                                               .a_signed = c.a_signed ? 1 : 0,
                                                               .has_bias = 0,
                                                               .activation = kNone,
                                                               .out_type = kS32,
                                                               .x_scale = opencl::Buffer(),
                                                               .x_zero_point = opencl::Buffer(),
                                                               .row_sums = opencl::Buffer(),
                                                               .w_zero_point = opencl::Buffer(),
                                                               .row_scale = opencl::Buffer(),
                                                               .splits = parts});
    run(finish, 17, 33);
    expect_equal(out.values(), reference_sums(c), c.text());
  }
}

// What the builder of a plan knows is compiled in; the arguments are not read then. K is short:
// Oclgrind, too, runs this.
template <typename T = uint8_t>
void expect_the_same_compiled_in(const char* program, opencl::Defines defines,
                                 int activation = kGelu, int out_type = kU8) {
  GemmS8Case c = make_case(33, 65, 16, false, 7);
  const size_t n = 65;
  c.scale.assign(n, 1e-3f), c.bias.assign(n, 0.25f), c.activation = activation;
  c.out_inv_scale.assign(n, 40.0f), c.out_zero_point.assign(n, 100.0f);
  defines["TILE_M"] = 32, defines["TILE_N"] = 64;
  const auto expected = run_gemm_s8<T>(gemm_kernel(program, defines), c, out_type);
  defines["ACTIVATION"] = activation, defines["OUT_TYPE"] = out_type;
  c.activation = activation == kNone ? kGelu : kNone;
  EXPECT_EQ(run_gemm_s8<T>(gemm_kernel(program, defines), c, out_type), expected);
}

TEST(GemmS8Mma, AnEpilogueCompiledInGivesTheSame) {
  expect_the_same_compiled_in("gemm_s8_mma", {});
}

TEST(GemmS8Matrix, AnEpilogueCompiledInGivesTheSame) {
  expect_the_same_compiled_in("gemm_s8_matrix", {{"MATRIX_UNIT", 6}});
}

TEST(GemmS8Dot4, AnEpilogueCompiledInGivesTheSame) {
  expect_the_same_compiled_in("gemm_s8_dot4", {});
  expect_the_same_compiled_in<float>("gemm_s8_dot4", {}, kNone, kF32);
  expect_the_same_compiled_in<int32_t>("gemm_s8_dot4", {}, kNone, kS32);
}

}  // namespace
}  // namespace bertcl::tests
