// SPDX-License-Identifier: Apache-2.0
// The int8 attention kernels against plain C++ that does what the Q/DQ graph says.
#include <algorithm>
#include <limits>

#include "attention_kernel.hpp"
#include "attention_reference.hpp"
#include "device_test.hpp"
#include "quantized_attention.hpp"

namespace bertcl::tests {
namespace {

Bytes random_bytes(const AttentionCase& c, unsigned seed = 5) {
  return integers<uint8_t>(static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()),
                           seed, 0, 255);
}

/// A p that is next to a tie may round either way: one step of p times v. Exponentials are p of up
/// to 255 steps with an error of 3e-7 of them, so that ties are met in 1 of 20,000; a row sees them
/// all.
void expect_near_exact(const std::vector<float>& actual, const std::vector<float>& expected,
                       const Quantization& z, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size());
  const float step = z.unnormalized ? z.pv_scale / static_cast<float>(z.p_max) : z.pv_scale;
  size_t unequal = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_LE(std::abs(actual[i] - expected[i]), 2 * 256 * step)
        << what << ": at " << i << " of " << actual.size() << ": " << actual[i] << " for "
        << expected[i];
    unequal += actual[i] != expected[i];
  }
  EXPECT_LE(unequal, actual.size() / (z.unnormalized ? 25 : 100)) << what;
}

class AttentionS8 : public ::testing::TestWithParam<AttentionKernel> {
 protected:
  void SetUp() override {
    using opencl::Capabilities;
    const auto& [program, defines, groups] = GetParam();
    bool Capabilities::*needs = nullptr;
    if (program == "attention_s8_x86_vnni") needs = &Capabilities::avx512_vnni;
    if (program == "attention_s8_x86_avx2")
      needs = defines.at("LANES") == 16 ? &Capabilities::avx512 : &Capabilities::avx2;
    if (defines.contains("DOT4"))
      needs = defines.at("DOT4") == 1 ? &Capabilities::int_dot_product : &Capabilities::ptx_dp4a;
    // PoCL 3.1 gives all keys of a row one score; Intel's runtime and tests/ptx do not.
    if (defines.contains("MATRIX_EMULATED"))
      needs = &Capabilities::ptx_mma_s8;
    else if (program == "attention_s8_mma" && device().info().platform.find("Intel") != 0)
      GTEST_SKIP() << "wrong under PoCL 3.1; runs under Intel's runtime (tests/opencl/on_intel)";
    if (const auto reason = lacks(needs); !reason.empty()) GTEST_SKIP() << program << " " << reason;
  }
  void expect_right(const AttentionCase& c, const Quantization& z, int32_t block_rows = 32,
                    const ScoreBias& bias = {}) {
    const Bytes qkv = random_bytes(c);
    for (const Quantization& way : {z, z.unnormalizing()})
      expect_near_exact(
          attend<float>(GetParam(), c, way, qkv, {}, block_rows, bias),
          reference(c, way, qkv, bias), way,
          GetParam().name() + ", " + c.name() + (way.unnormalized ? ", unnormalized" : ""));
  }
};

/// Of the kernels to which a plan may give a bias or a window.
class BiasedAttentionS8 : public AttentionS8 {};

TEST_P(AttentionS8, Lengths) {
  for (int32_t length :
       {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257})
    expect_right({.lengths = {length}, .heads = 1, .head_size = 32},
                 {.q = {kU8, 119}, .k = {kU8, 130}, .v = {kU8, 7}});
}

TEST_P(AttentionS8, HeadSizes) {
  for (int32_t head_size : {1, 2, 3, 4, 5, 7, 8, 31, 32, 33, 64, 65, 128, 255, 256})
    expect_right({.lengths = {37}, .heads = 2, .head_size = head_size},
                 {.q = {kS8, -3}, .k = {kS8, 0}, .v = {kS8, 5}});
}

TEST_P(AttentionS8, SharedKeyHeads) {
  for (int32_t heads_per_key : {2, 3, 6})
    expect_right({.lengths = {70, 9}, .heads = 6, .heads_per_key = heads_per_key},
                 {.q = {kU8, 119}, .k = {kU8, 130}, .v = {kU8, 7}});
}

TEST_P(AttentionS8, TypesAndZeroPoints) {
  for (int32_t q : {kU8, kS8})
    for (int32_t k : {kU8, kS8})
      for (int32_t v : {kU8, kS8})
        for (int end : {0, 1}) {
          const auto zero = [&](int32_t type) { return end * 255 - (type == kS8 ? 128 : 0); };
          expect_right({.lengths = {41}},
                       {.q = {q, zero(q)}, .k = {k, zero(k)}, .v = {v, zero(v)}});
        }
}

// Terms that softmax cancels otherwise count: of zero points, types, and heads that fill no group.
TEST_P(AttentionS8, QuantizedScores) {
  for (int32_t head_size : {1, 6, 16, 33, 64})
    for (int32_t q : {kU8, kS8})
      for (int32_t k : {kU8, kS8}) {
        Quantization z{.q = {q, q == kU8 ? 119 : -9},
                       .k = {k, k == kU8 ? 133 : 4},
                       .v = {kU8, 120},
                       .qk_scale = 0.05f};
        // About a third of the scores saturates at one end.
        z.score_inv_scale = 0.02f / std::sqrt(static_cast<float>(head_size));
        z.score_low = -128;
        z.score_high = 127;
        expect_right({.lengths = {45, 3}, .head_size = head_size}, z);
        z.score_low = -40;
        z.score_high = 215;
        expect_right({.lengths = {33}, .head_size = head_size}, z);
      }
  Quantization z{.q = {kU8, 100}, .qk_scale = 0.05f};
  z.score_inv_scale = 0.004f;
  z.score_low = -128;
  z.score_high = 127;
  expect_right({.lengths = {530}, .heads = 1, .head_size = 16}, z, 512);
}

TEST_P(BiasedAttentionS8, BiasAndWindow) {
  const auto values = normal_values(2 * 601 * 601, 9, 2.0f),
             of_tokens = normal_values(2 * 634 * 600, 10, 2.0f);
  for (const int32_t window : {0, 1, 16, 17, 64, 599, 600})
    for (const auto& bias : {ScoreBias{601, window, values}, ScoreBias{0, window, {}},
                             ScoreBias{600, window, of_tokens, true}})
      for (const int32_t block_rows : block_rows_of(GetParam(), {7, 64, 640}))
        expect_right({.lengths = {1, 600, 0, 33}, .head_size = 32}, {}, block_rows, bias);
  // Gaps between the attended keys, and terms of zero points that softmax does not cancel.
  AttentionCase masked{.lengths = {70, 530}, .head_size = 20};
  for (int32_t token = 0; token < masked.tokens(); ++token)
    masked.mask.push_back(token % 11 != 3 && (token < 200 || token > 290));
  for (const int32_t window : {0, 20, 70})
    for (const int32_t type : {kU8, kS8})
      expect_right(masked, {.q = {type, 5}, .k = {type, -3}, .v = {type, 7}}, 96,
                   {601, window, values});
}

TEST_P(BiasedAttentionS8, BlockRowsDoNotChangeTheResultOfAWindow) {
  if (GetParam().uses_work_groups) return;  // they ignore block_rows
  AttentionCase c{.lengths = {250, 61, 130}, .heads = 1, .head_size = 32};
  const Bytes qkv = random_bytes(c);
  for (const bool masked : {false, true}) {
    if (masked) c.mask = integers<uint8_t>(static_cast<size_t>(c.tokens()), 11, 0, 1);
    for (const int32_t window : {3, 64, 100})
      for (const Quantization& z : {Quantization{}, Quantization{}.unnormalizing()}) {
        const ScoreBias bias{0, window, {}};
        const auto expected = attend<float>(GetParam(), c, z, qkv, {}, 256, bias);
        for (const int32_t block_rows : {32, 64, 96})
          expect_equal(attend<float>(GetParam(), c, z, qkv, {}, block_rows, bias), expected,
                       GetParam().name() + ", window " + std::to_string(window));
      }
  }
}

// A causal bias with a mask whose first keys do not count: the rows there attend to all others
// alike.
TEST_P(BiasedAttentionS8, CausalRowsWithoutKeysAreFinite) {
  std::vector<float> values(2 * 70 * 70);
  for (size_t i = 0; i < values.size(); ++i)
    if (i % 70 > i / 70 % 70) values[i] = std::numeric_limits<float>::lowest();
  AttentionCase c{.lengths = {70, 33}, .head_size = 32};
  c.mask.assign(static_cast<size_t>(c.tokens()), 1);
  std::fill_n(c.mask.begin(), 20, uint8_t{0});
  std::fill_n(c.mask.begin() + 70, 3, uint8_t{0});
  for (const int32_t block_rows : block_rows_of(GetParam(), {7, 64}))
    expect_right(c, {}, block_rows, {70, 0, values});
}

// Keys outside of the window have the largest scores by far. Row 31 sees keys 30 to 32 alone, which
// weigh the same.
TEST_P(BiasedAttentionS8, KeysOutsideOfTheWindowDoNotCount) {
  const AttentionCase c{.lengths = {40}, .heads = 1, .head_size = 4};
  for (const float score : {20.0f, 100.0f})
    for (const int32_t unnormalized : {0, 1}) {
      Quantization z{.q = {kS8, 0}, .k = {kS8, 0}, .v = {kS8, 0}};
      z.qk_scale = score / (4 * 100 * 100);
      z.unnormalized = unnormalized;
      z.pv_scale = unnormalized ? 1.0f : 1.0f / 255;
      Bytes qkv(40 * 12);
      for (int32_t row = 0; row < 40; ++row)
        for (int32_t d = 0; d < 4; ++d) {
          uint8_t* of_row = &qkv[static_cast<size_t>(row * 12)];
          of_row[d] = 100;
          of_row[4 + d] = row < 33 ? 0 : 100;
          of_row[8 + d] = static_cast<uint8_t>(row + 1);
        }
      const auto out = attend<float>(GetParam(), c, z, qkv, {}, 64, {0, 1, {}});
      EXPECT_FLOAT_EQ(out[31 * 4], 32.0f) << GetParam().name() << ", " << score << unnormalized;
    }
}

TEST_P(AttentionS8, UnequalLengthsAndEmptySequence) {
  expect_right({.lengths = {1, 200, 0, 33, 2, 64}}, {});
}

TEST_P(AttentionS8, MoreKeysThanOneBlockHolds) {
  for (int32_t length : {511, 512, 513})
    expect_right({.lengths = {length}, .heads = 1, .head_size = 16}, {}, 512);
  expect_right({.lengths = {1030}, .heads = 1, .head_size = 16}, {.q = {kU8, 100}}, 512);
  if (GetParam().uses_work_groups || GetParam().program == "attention_s8_ref") return;
  for (int32_t length : {1023, 1025, 1033})  // wide heads fill the arrays
    expect_right({.lengths = {length}, .heads = 1, .head_size = 253}, {.k = {kU8, 100}}, 512);
}

// One key's saturated probability leaves those beside it as they are.
TEST_P(AttentionS8, ProbabilitiesSaturate) {
  for (const int32_t p_max : {127, 255})
    for (const float p_inv_scale : {256.0f, 1000.0f})
      expect_right({.lengths = {9, 41}},
                   {.v = {kU8, 7}, .p_inv_scale = p_inv_scale, .p_max = p_max});
}

// What a kernel holds after the last key is not a key, even where every score is far below 0.
TEST_P(AttentionS8, ScoresFarBelowZero) {
  for (int32_t length : {1, 9, 33}) {
    const AttentionCase c{.lengths = {length}};
    Bytes qkv = random_bytes(c);
    const auto hidden = static_cast<size_t>(c.hidden());
    for (size_t row = 0; row < qkv.size(); row += 3 * hidden) {
      std::fill_n(qkv.begin() + static_cast<std::ptrdiff_t>(row), hidden, uint8_t{255});
      std::fill_n(qkv.begin() + static_cast<std::ptrdiff_t>(row + hidden), hidden, uint8_t{0});
    }
    const Quantization z{.q = {kU8, 0}, .k = {kU8, 255}, .v = {kU8, 7}, .qk_scale = 1e-3f};
    for (const Quantization& way : {z, z.unnormalizing()})
      expect_equal(attend<float>(GetParam(), c, way, qkv), reference(c, way, qkv),
                   GetParam().name());
  }
}

TEST_P(AttentionS8, BlockRowsDoNotChangeTheResult) {
  const AttentionCase c{.lengths = {130, 40}};
  const Bytes qkv = random_bytes(c);
  for (const Quantization& z : {Quantization{}, Quantization{}.unnormalizing()}) {
    const auto expected = attend<float>(GetParam(), c, z, qkv);
    for (int32_t block_rows : {1, 7, 64, 1000})
      expect_equal(attend<float>(GetParam(), c, z, qkv, {}, block_rows), expected,
                   GetParam().name());
  }
}

TEST_P(AttentionS8, MaskWithHolesAndRowWithoutKeys) {
  AttentionCase c{.lengths = {97, 5, 140}};
  c.mask = integers<uint8_t>(static_cast<size_t>(c.tokens()), 11, 0, 1);
  std::fill(c.mask.begin() + 97, c.mask.begin() + 102, uint8_t{0});
  expect_right(c, {.q = {kU8, 128}, .k = {kU8, 90}, .v = {kU8, 3}});
}

TEST_P(AttentionS8, PaddedEqualsPacked) {
  const Quantization z{.q = {kU8, 120}, .k = {kU8, 131}, .v = {kU8, 90}};
  for (const Quantization& way : {z, z.unnormalizing()})
    expect_padded_equals_packed<uint8_t>(
        random_bytes(two_sequences), 255,
        [&](const AttentionCase& c, const Bytes& qkv) {
          return attend<float>(GetParam(), c, way, qkv);
        },
        GetParam().name());
}

// Equal keys give equal probabilities, and one key far above gives exactly 1: the integer sums that
// follow are exact on every variant.
TEST_P(AttentionS8, IntegerSumsAreExact) {
  for (int32_t length : {1, 5, 64, 255, 510}) {
    const AttentionCase c{.lengths = {length}};
    Bytes qkv = random_bytes(c, static_cast<unsigned>(length));
    for (int pattern : {0, 1}) {
      for (size_t i = 0; i < qkv.size(); i += 3 * static_cast<size_t>(c.hidden()))
        for (size_t d = 0; d < 2 * static_cast<size_t>(c.hidden()); ++d)
          qkv[i + d] = pattern == 0 || i == 0 ? 255 : 0;
      for (const Operand& v :
           {Operand{kU8, 0}, Operand{kU8, 255}, Operand{kS8, -128}, Operand{kS8, 127}}) {
        const Quantization z{.q = {kU8, 0},
                             .k = {kU8, 0},
                             .v = v,
                             .qk_scale = 1e-3f,
                             .p_inv_scale = 1000.0f,
                             .p_max = 127};
        for (const Quantization& way : {z, z.unnormalizing()})
          expect_equal(attend<float>(GetParam(), c, way, qkv), reference(c, way, qkv),
                       GetParam().name());
      }
    }
  }
}

TEST_P(AttentionS8, ExtremeBytes) {
  const AttentionCase c{.lengths = {90}};
  Bytes qkv(static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()));
  const uint8_t bytes[] = {0x00, 0x7F, 0x80, 0xFF};
  for (uint8_t first : bytes)
    for (uint8_t second : bytes) {
      for (size_t i = 0; i < qkv.size(); ++i) qkv[i] = i % 3 == 0 ? first : second;
      for (const Quantization& z :
           {Quantization{.q = {kU8, 255}, .k = {kU8, 0}, .v = {kU8, 255}, .qk_scale = 1e-6f},
            Quantization{.q = {kS8, 127}, .k = {kS8, -128}, .v = {kS8, 0}, .qk_scale = 1e-6f}})
        for (const Quantization& way : {z, z.unnormalizing()})
          expect_near_exact(attend<float>(GetParam(), c, way, qkv), reference(c, way, qkv), way,
                            GetParam().name());
    }
}

TEST_P(AttentionS8, RequantizedOutput) {
  const AttentionCase c{.lengths = {77, 130}};
  const Bytes qkv = random_bytes(c);
  const Quantization plain{.q = {kU8, 120}, .k = {kU8, 131}, .v = {kU8, 90}};
  for (const Quantization& z : {plain, plain.unnormalizing()}) {
    const auto expected = reference(c, z, qkv);
    std::vector<uint8_t> as_u8;
    std::vector<int8_t> as_s8;
    for (float value : expected) {
      as_u8.push_back(static_cast<uint8_t>(quantized(value * 40.0f, 120, false)));
      as_s8.push_back(static_cast<int8_t>(quantized(value * 90.0f, -20, true)));
    }
    // With random bytes all probabilities are small and many are close to a tie.
    expect_quantized(attend<uint8_t>(GetParam(), c, z, qkv, {kU8, 40.0f, 120}), as_u8, "u8");
    expect_quantized(attend<int8_t>(GetParam(), c, z, qkv, {kS8, 90.0f, -20}), as_s8, "s8");
  }
}

// Of 600 keys that differ little each has a probability below half a step: plain quantization loses
// them all, exponentials keep them.
TEST_P(AttentionS8, UnnormalizedKeepsWhatIsBelowAStep) {
  const AttentionCase c{.lengths = {600}, .heads = 1, .head_size = 16};
  const Bytes qkv = random_bytes(c);
  const Quantization z{.v = {kU8, 0}, .qk_scale = 1e-8f};
  const auto plain = attend<float>(GetParam(), c, z, qkv);
  const auto unnormalized = attend<float>(GetParam(), c, z.unnormalizing(), qkv);
  const float mean = 127.5f * z.pv_scale * z.p_inv_scale;
  for (size_t i = 0; i < plain.size(); ++i) {
    ASSERT_EQ(plain[i], 0.0f) << "at " << i;
    ASSERT_NEAR(unnormalized[i], mean, 0.1f * mean) << "at " << i;
  }
}

TEST_P(AttentionS8, AWrongZeroPointIsNoticed) {
  const AttentionCase c{.lengths = {40}};
  const Bytes qkv = random_bytes(c);
  const auto right =
      attend<float>(GetParam(), c, {.q = {kU8, 120}, .k = {kU8, 3}, .v = {kU8, 90}}, qkv);
  EXPECT_NE(attend<float>(GetParam(), c, {.q = {kU8, 121}, .k = {kU8, 3}, .v = {kU8, 90}}, qkv),
            right);
  EXPECT_NE(attend<float>(GetParam(), c, {.q = {kU8, 120}, .k = {kU8, 3}, .v = {kU8, 91}}, qkv),
            right);
}

std::vector<AttentionKernel> kernels_s8() {
  return {AttentionKernel{"attention_s8_ref"},
          AttentionKernel{"attention_s8_portable"},
          AttentionKernel{"attention_s8_portable", {{"LANES", 8}}},
          AttentionKernel{"attention_s8_portable", {{"LANES", 8}, {"BLOCK_KEYS", 16}}},
          AttentionKernel{"attention_s8_x86_avx2", {{"LANES", 8}}},
          AttentionKernel{"attention_s8_x86_avx2", {{"LANES", 16}}},
          AttentionKernel{"attention_s8_x86_avx2", {{"LANES", 8}, {"BLOCK_KEYS", 16}}},
          AttentionKernel{"attention_s8_x86_vnni"},
          AttentionKernel{"attention_s8_x86_vnni", {{"BLOCK_KEYS", 16}}},
          AttentionKernel{"attention_s8_mma", {}, true},
          AttentionKernel{"attention_s8_mma", {{"ROWS", 32}}, true},
          AttentionKernel{"attention_s8_mma", {{"MATRIX_EMULATED", 0}}, true},
          AttentionKernel{"attention_s8_dot4", {}, true},
          AttentionKernel{"attention_s8_dot4", {{"ROWS", 32}}, true},
          AttentionKernel{"attention_s8_dot4", {{"DOT4", 1}}, true},
          AttentionKernel{"attention_s8_dot4", {{"DOT4", 2}}, true}};
}

const auto name_of_kernel = [](const auto& test) { return test.param.name(); };
INSTANTIATE_TEST_SUITE_P(Kernels, AttentionS8, ::testing::ValuesIn(kernels_s8()), name_of_kernel);
INSTANTIATE_TEST_SUITE_P(Kernels, BiasedAttentionS8, ::testing::ValuesIn(kernels_s8()),
                         name_of_kernel);

}  // namespace
}  // namespace bertcl::tests
