// SPDX-License-Identifier: Apache-2.0
// Attention in bf16 against sums in double of the same operands.
#include <fmt/format.h>

#include <random>

#include "attention_kernel.hpp"
#include "attention_reference.hpp"
#include "device_test.hpp"

namespace bertcl::tests {
namespace {

class AttentionBf16 : public testing::TestWithParam<int> {  // BLOCK_KEYS
 protected:
  void SetUp() override {
    if (const auto reason = lacks(&opencl::Capabilities::avx512_bf16); !reason.empty())
      GTEST_SKIP() << reason;
  }

  std::vector<uint16_t> attend(const AttentionCase& c, const std::vector<uint16_t>& qkv,
                               float scale, int32_t block_rows = 32,
                               const ScoreBias& bias = {}) const {
    const AttentionKernel variant{"attention_bf16_x86",
                                  {{"BLOCK_KEYS", GetParam()}, {"CACHED_KEYS", 4 * GetParam()}}};
    return tests::attend(variant, "attention_bf16", c, qkv, scale, block_rows, bias);
  }

  static std::vector<uint16_t> operands(const AttentionCase& c, float sharpness = 1.0f) {
    return bf16_bits(normal_values(
        static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()), 7, sharpness));
  }

  /// Exponentials and result are rounded to 8 bits, 2^-9 of a value each at most, 0.6 of that in
  /// the mean; relative RMS below 2^-8.
  void expect_right(const AttentionCase& c, float sharpness = 1.0f, int32_t block_rows = 32,
                    const ScoreBias& bias = {}) const {
    const auto bits = operands(c, sharpness);
    const auto qkv = from_bf16(bits);
    const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_size));
    expect_close(from_bf16(attend(c, bits, scale, block_rows, bias)),
                 reference(c, qkv, scale, bias),
                 fmt::format("{}, {} biases, window {}, {} rows", c.name(), bias.values.size(),
                             bias.window, block_rows),
                 1 << 15);
  }
};

TEST_P(AttentionBf16, Lengths) {
  for (int32_t length : {1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 257})
    expect_right({.lengths = {length}, .heads = 1, .head_size = 32});
}

TEST_P(AttentionBf16, HeadSizes) {
  for (int32_t head_size : {2, 6, 8, 10, 30, 32, 34, 64, 66, 96, 128, 254, 256})
    expect_right({.lengths = {70}, .heads = 3, .head_size = head_size});
}

TEST_P(AttentionBf16, SharedKeyHeads) {
  for (int32_t heads_per_key : {2, 3, 6})
    expect_right({.lengths = {70, 9}, .heads = 6, .heads_per_key = heads_per_key});
}

TEST_P(AttentionBf16, UnequalLengthsAndEmptySequence) {
  expect_right({.lengths = {1, 300, 0, 33, 2, 64}}, 1.0f, 64);
}

TEST_P(AttentionBf16, LongSequenceAndSharpLogits) {
  expect_right({.lengths = {1100}, .heads = 1}, 1.0f, 512);
  expect_right({.lengths = {65, 130}}, 6.0f);
}

TEST_P(AttentionBf16, BlockRowsDoNotChangeTheResult) {
  const AttentionCase c{.lengths = {130, 40}};
  const auto qkv = operands(c), expected = attend(c, qkv, 0.125f, 32);
  for (int32_t block_rows : {1, 7, 64, 1000})
    expect_equal(attend(c, qkv, 0.125f, block_rows), expected,
                 std::to_string(block_rows) + " rows");
}

TEST_P(AttentionBf16, MaskWithHolesAndRowWithoutKeys) {
  AttentionCase c{.lengths = {97, 5, 140}};
  c.mask = integers<uint8_t>(static_cast<size_t>(c.tokens()), 11, 0, 1);
  std::fill(c.mask.begin() + 97, c.mask.begin() + 102, uint8_t{0});
  expect_right(c, 3.0f);
  // Negative control: without the mask the result is another one.
  AttentionCase open = c;
  open.mask.clear();
  EXPECT_NE(attend(c, operands(c), 0.125f), attend(open, operands(c), 0.125f));
}

TEST_P(AttentionBf16, BiasAndWindow) {
  const AttentionCase c{.lengths = {1, 300, 0, 33, 65}, .heads = 3, .head_size = 32};
  const auto values = normal_values(3 * 301 * 301, 9, 2.0f),
             of_tokens = normal_values(static_cast<size_t>(3 * c.tokens() * 301), 10, 2.0f);
  for (const int32_t window : {0, 1, 15, 16, 17, 64, 299, 300})
    for (const auto& bias : {ScoreBias{301, window, values}, ScoreBias{0, window, {}},
                             ScoreBias{301, window, of_tokens, true}})
      for (const int32_t block_rows : {7, 32, 512}) expect_right(c, 1.0f, block_rows, bias);
}

TEST_P(AttentionBf16, BiasWindowAndMaskOfRandomSizes) {
  std::mt19937 random(3);
  const auto number = [&](int low, int high) {
    return std::uniform_int_distribution<int32_t>(low, high)(random);
  };
  for (int i = 0; i < 40; ++i) {
    AttentionCase c{.lengths = {}, .heads = number(1, 4), .head_size = 2 * number(1, 40)};
    for (int n = number(1, 4); n > 0; --n) c.lengths.push_back(number(1, 200));
    if (i % 2 == 1) {
      c.mask = integers<uint8_t>(static_cast<size_t>(c.tokens()), 20 + i, 0, 1);
      c.heads_per_key = c.heads;
    }
    const int32_t seq = c.longest() + number(0, 3);
    ScoreBias bias{seq, i % 3 == 0 ? 0 : number(1, 220), {}, i % 4 >= 2};
    if (i % 3 != 1)
      bias.values = normal_values(
          static_cast<size_t>(bias.head_step(c)) * static_cast<size_t>(c.heads), 40 + i, 2.0f);
    expect_right(c, 2.0f, number(1, 100), bias);
  }
}

// Negative control: each of the two changes the result.
TEST_P(AttentionBf16, BiasAndWindowAreNotIgnored) {
  const AttentionCase c{.lengths = {70}, .heads = 1};
  const auto qkv = operands(c), plain = attend(c, qkv, 0.125f);
  EXPECT_NE(attend(c, qkv, 0.125f, 32, {0, 68, {}}), plain) << "the last key of the first row";
  EXPECT_EQ(attend(c, qkv, 0.125f, 32, {0, 69, {}}), plain) << "all keys of all rows";
  EXPECT_NE(attend(c, qkv, 0.125f, 32, {70, 0, normal_values(70 * 70, 9)}), plain);
}

TEST_P(AttentionBf16, ARowWithoutKeysInItsWindowIsZero) {
  AttentionCase c{.lengths = {200}, .heads = 1, .mask = std::vector<uint8_t>(200, 0)};
  c.mask[0] = 1;
  const auto out = from_bf16(attend(c, operands(c), 0.125f, 32, {0, 3, {}}));
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i] != 0.0f, i / 64 <= 3) << "row " << i / 64;
}

TEST_P(AttentionBf16, NaNOfARowOrAKeyIsSeen) {
  const AttentionCase c{.lengths = {70, 9}, .heads = 1};
  for (const uint16_t nan : std::vector<uint16_t>{0x7fc0, 0xffff, 0xff81})
    for (size_t operand : {0u, 1u}) {
      auto qkv = operands(c);
      qkv[37 * 192 + operand * 64 + 5] = nan;
      const auto out = from_bf16(attend(c, qkv, 0.125f));
      for (size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(std::isnan(out[i]), operand == 0 ? i / 64 == 37 : i / 64 < 70)
            << "operand " << operand << ", row " << i / 64;
    }
}

TEST_P(AttentionBf16, MaskedKeysMayHoldAnything) {
  AttentionCase c{.lengths = {48}, .heads = 1, .mask = std::vector<uint8_t>(48, 1)};
  auto qkv = operands(c);
  for (size_t key : {3u, 17u, 47u}) {
    c.mask[key] = 0;
    for (size_t d = 64; d < 192; ++d) qkv[key * 192 + d] = 0x7fc0;  // NaN
  }
  for (float value : from_bf16(attend(c, qkv, 0.125f))) ASSERT_TRUE(std::isfinite(value));
}

TEST_P(AttentionBf16, PaddedEqualsPacked) {
  expect_padded_equals_packed<uint16_t>(
      operands(two_sequences), 0x42c8,  // 100
      [&](const AttentionCase& c, const auto& qkv) { return attend(c, qkv, 0.125f); }, "padded");
}

INSTANTIATE_TEST_SUITE_P(BlockKeys, AttentionBf16, testing::Values(8, 128));

}  // namespace
}  // namespace bertcl::tests
