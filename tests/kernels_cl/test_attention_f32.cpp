// SPDX-License-Identifier: Apache-2.0
// The f32 attention kernels, and the one of operands rounded to f16, against plain C++.
#include <numbers>

#include "attention_kernel.hpp"
#include "attention_reference.hpp"
#include "device_test.hpp"
#include "kernels/variants.hpp"

namespace bertcl::tests {
namespace {

std::vector<float> attend(const AttentionKernel& program, const AttentionCase& c,
                          const std::vector<float>& qkv, float scale, int32_t block_rows,
                          const ScoreBias& bias = {}) {
  return attend(program, "attention_f32", c, qkv, scale, block_rows, bias);
}

bool rounds_operands(const AttentionKernel& program) {
  return program.program == kernels::attention_f16_variant().program;
}

/// The operands as the kernel multiplies them: in f16, q times scale * log2(e).
std::vector<float> as_multiplied(const AttentionKernel& program, const AttentionCase& c,
                                 std::vector<float> qkv, float scale) {
  if (!rounds_operands(program)) return qkv;
  const size_t hidden = static_cast<size_t>(c.hidden());
  const float log2_scale = scale * std::numbers::log2e_v<float>;
  const auto factor = [&](size_t i) { return i % (3 * hidden) < hidden ? log2_scale : 1.0f; };
  for (size_t i = 0; i < qkv.size(); ++i) qkv[i] *= factor(i);
  qkv = cast<float>(cast<uint16_t>(qkv));
  for (size_t i = 0; i < qkv.size(); ++i) qkv[i] /= factor(i);
  return qkv;
}

void expect_right(const AttentionKernel& program, const AttentionCase& c, float sharpness = 1.0f,
                  int32_t block_rows = 32) {
  const auto qkv = normal_values(
      static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()), 7, sharpness);
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_size));
  // Exponentials in f16 have an error of up to 2^-11 each; relative RMS below 2^-12.
  expect_close(attend(program, c, qkv, scale, block_rows),
               reference(c, as_multiplied(program, c, qkv, scale), scale),
               program.name() + ", " + c.name(), rounds_operands(program) ? 2048 : 80);
}

class AttentionF32 : public ::testing::TestWithParam<AttentionKernel> {
 protected:
  void SetUp() override {
    using opencl::Capabilities;
    if (!GetParam().defines.contains("MATRIX_EMULATED")) return;
    for (bool Capabilities::*needs : {&Capabilities::ptx_mma_s8, &Capabilities::matrix_f16})
      if (const auto reason = lacks(needs); !reason.empty())
        GTEST_SKIP() << GetParam().program << " " << reason;
  }
};

TEST_P(AttentionF32, Lengths) {
  for (int32_t length : {1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257})
    expect_right(GetParam(), {.lengths = {length}, .heads = 1, .head_size = 32});
}

TEST_P(AttentionF32, HeadSizes) {
  for (int32_t head_size : {1, 3, 7, 8, 9, 32, 64, 65, 96, 128, 256})
    expect_right(GetParam(), {.lengths = {70}, .heads = 3, .head_size = head_size});
}

TEST_P(AttentionF32, UnequalLengthsAndEmptySequence) {
  expect_right(GetParam(), {.lengths = {1, 300, 0, 33, 2, 64}});
}

TEST_P(AttentionF32, SharedKeyHeads) {
  for (int32_t heads_per_key : {2, 3, 6})
    expect_right(GetParam(), {.lengths = {70, 9}, .heads = 6, .heads_per_key = heads_per_key});
}

TEST_P(AttentionF32, LongSequence) {
  expect_right(GetParam(), {.lengths = {1100}, .heads = 1}, 1.0f, 512);
  expect_right(GetParam(), {.lengths = {300}, .heads = 1, .head_size = 256}, 1.0f, 512);
  AttentionCase holes{.lengths = {1100, 70}, .heads = 1};
  holes.mask = integers<uint8_t>(static_cast<size_t>(holes.tokens()), 12, 0, 2);
  std::fill(holes.mask.begin() + 1000, holes.mask.begin() + 1100, uint8_t{0});
  expect_right(GetParam(), holes, 1.0f, 512);
}

TEST_P(AttentionF32, SharpLogits) { expect_right(GetParam(), {.lengths = {65, 130}}, 6.0f); }

TEST_P(AttentionF32, BlockRowsDoNotChangeTheResult) {
  const AttentionCase c{.lengths = {130, 40}};
  const auto qkv =
      normal_values(static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()), 3);
  const auto expected = attend(GetParam(), c, qkv, 0.125f, 32);
  for (int32_t block_rows : {1, 7, 64, 1000})
    expect_equal(attend(GetParam(), c, qkv, 0.125f, block_rows), expected, GetParam().name());
}

// Work-items have more rows in larger batches, and the same text then must have the same bits.
TEST_P(AttentionF32, BlockRowsDoNotChangeTheResultOfAWindow) {
  if (GetParam().uses_work_groups) return;  // they ignore block_rows
  AttentionCase c{.lengths = {250, 61, 130, 64, 200}, .heads = 1};
  const auto qkv =
      normal_values(static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()), 3);
  for (const bool masked : {false, true}) {
    if (masked) c.mask = integers<uint8_t>(static_cast<size_t>(c.tokens()), 11, 0, 1);
    for (const int32_t window : {3, 40, 64, 200}) {
      const ScoreBias bias{0, window, {}};
      const auto expected = attend(GetParam(), c, qkv, 0.125f, 256, bias);
      for (const int32_t block_rows : {32, 64, 96, 160})
        expect_equal(attend(GetParam(), c, qkv, 0.125f, block_rows, bias), expected,
                     GetParam().name() + ", window " + std::to_string(window) + ", " +
                         std::to_string(block_rows) + " rows" + (masked ? ", masked" : ""));
    }
  }
}

TEST_P(AttentionF32, MaskWithHolesAndRowWithoutKeys) {
  AttentionCase c{.lengths = {97, 5, 140}};
  c.mask = integers<uint8_t>(static_cast<size_t>(c.tokens()), 11, 0, 1);
  std::fill(c.mask.begin() + 97, c.mask.begin() + 102, uint8_t{0});
  expect_right(GetParam(), c, 3.0f);
  // Negative control: without the mask the result is another one.
  AttentionCase open = c;
  open.mask.clear();
  const auto qkv =
      normal_values(static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()), 7);
  EXPECT_NE(attend(GetParam(), c, qkv, 0.125f, 32), attend(GetParam(), open, qkv, 0.125f, 32));
}

TEST_P(AttentionF32, BiasAndWindow) {
  const AttentionCase c{.lengths = {1, 300, 0, 33, 65}, .heads = 3, .head_size = 32};
  const auto qkv =
      normal_values(static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()), 7);
  const auto values = normal_values(3 * 301 * 301, 9, 2.0f),
             of_tokens = normal_values(static_cast<size_t>(3 * c.tokens() * 301), 10, 2.0f);
  for (const int32_t window : {0, 1, 15, 16, 17, 64, 299, 300})
    for (const auto& bias : {ScoreBias{301, window, values}, ScoreBias{0, window, {}},
                             ScoreBias{301, window, of_tokens, true}})
      for (const int32_t block_rows : block_rows_of(GetParam(), {7, 32, 512}))
        expect_close(attend(GetParam(), c, qkv, 0.2f, block_rows, bias),
                     reference(c, as_multiplied(GetParam(), c, qkv, 0.2f), 0.2f, bias),
                     GetParam().name() + ", window " + std::to_string(window),
                     rounds_operands(GetParam()) ? 2048 : 80);
}

// Masks of torch.finfo(torch.float32).min: a row of such values alone attends to all keys alike.
TEST_P(AttentionF32, TheLowestBiasIsNotMinusInfinity) {
  const AttentionCase c{.lengths = {70, 33}, .heads = 2, .head_size = 32};
  const auto qkv =
      normal_values(static_cast<size_t>(c.tokens()) * 3 * static_cast<size_t>(c.hidden()), 7);
  std::vector<float> values = normal_values(2 * 70 * 70, 9);
  for (size_t i = 0; i < values.size(); ++i)
    if (const size_t row = i / 70 % 70, key = i % 70; row % 3 == 0 || (row % 3 == 1 && key > 4))
      values[i] = std::numeric_limits<float>::lowest();
  for (const int32_t window : {0, 20})
    for (const int32_t block_rows : block_rows_of(GetParam(), {7, 32, 512})) {
      const ScoreBias bias{70, window, values};
      expect_close(attend(GetParam(), c, qkv, 0.2f, block_rows, bias),
                   reference(c, as_multiplied(GetParam(), c, qkv, 0.2f), 0.2f, bias),
                   GetParam().name() + ", window " + std::to_string(window),
                   rounds_operands(GetParam()) ? 2048 : 80);
    }
}

TEST_P(AttentionF32, ARowWithoutKeysInItsWindowIsZero) {
  AttentionCase c{.lengths = {200}, .heads = 1, .mask = std::vector<uint8_t>(200, 0)};
  c.mask[0] = 1;
  const auto qkv = normal_values(200 * 192, 5);
  const auto out = attend(GetParam(), c, qkv, 0.125f, 32, {0, 3, {}});
  for (size_t i = 0; i < out.size(); ++i)
    ASSERT_EQ(out[i] != 0.0f, i / 64 <= 3) << GetParam().name() << ", row " << i / 64;
}

TEST_P(AttentionF32, MaskedKeysMayHoldAnything) {
  AttentionCase c{.lengths = {48}, .heads = 1, .mask = std::vector<uint8_t>(48, 1)};
  auto qkv = normal_values(48 * 3 * 64, 5);
  for (size_t key : {3u, 17u, 47u}) {
    c.mask[key] = 0;
    for (size_t d = 64; d < 192; ++d) qkv[key * 192 + d] = std::numeric_limits<float>::quiet_NaN();
  }
  const auto out = attend(GetParam(), c, qkv, 0.125f, 32);
  for (float value : out) ASSERT_TRUE(std::isfinite(value));
}

// In q it is in a row of the result, in k in all rows of the head, in v in a column of those.
TEST_P(AttentionF32, NaNIsSeen) {
  const AttentionCase c{.lengths = {70, 9}};
  const size_t hidden = static_cast<size_t>(c.hidden()), stride = 3 * hidden;
  const auto clean = normal_values(static_cast<size_t>(c.tokens()) * stride, 7);
  for (const float nan : nans())
    for (size_t operand : {0u, 1u, 2u}) {
      auto qkv = clean;
      const size_t token = 37, d = 5;
      qkv[token * stride + operand * hidden + d] = nan;
      const auto out = attend(GetParam(), c, qkv, 0.125f, 32);
      for (size_t i = 0; i < out.size(); ++i) {
        const size_t row = i / hidden, column = i % hidden;
        const bool in_head = row < 70 && column < static_cast<size_t>(c.head_size);
        const bool expected = in_head && (operand == 0   ? row == token
                                          : operand == 1 ? true
                                                         : column == d);
        ASSERT_EQ(std::isnan(out[i]), expected) << GetParam().name() << ", operand " << operand
                                                << ", row " << row << ", column " << column;
      }
    }
}

TEST_P(AttentionF32, AnInfiniteScoreGivesNaN) {
  const AttentionCase c{.lengths = {33}, .heads = 1};
  auto qkv = std::vector<float>(33 * 192, 1.0f);
  qkv[64 + 7 * 192] = INFINITY;  // of key 7
  for (float value : attend(GetParam(), c, qkv, 0.125f, 32)) ASSERT_TRUE(std::isnan(value));
}

TEST_P(AttentionF32, MinusInfinityForAllKeysIsNoResult) {
  const AttentionCase c{.lengths = {33}, .heads = 1, .head_size = 1};
  std::vector<float> qkv;
  for (int row = 0; row < 33; ++row) qkv.insert(qkv.end(), {1e6f, -1.0f, 1.0f});
  const bool overflows = rounds_operands(GetParam());  // q is infinite in f16, not in f32
  for (const ScoreBias& bias :
       {ScoreBias{}, ScoreBias{0, 40, {}}, ScoreBias{33, 0, std::vector<float>(33 * 33, 0.0f)}})
    for (float value : attend(GetParam(), c, qkv, 1.0f, 32, bias))
      ASSERT_EQ(std::isnan(value), overflows) << value << ", window " << bias.window;
}

TEST_P(AttentionF32, PaddedEqualsPacked) {
  expect_padded_equals_packed(
      normal_values(130 * 192, 21), 100.0f,
      [](const AttentionCase& c, const auto& qkv) {
        return attend(GetParam(), c, qkv, 0.125f, 32);
      },
      GetParam().name());
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, AttentionF32,
    ::testing::Values(AttentionKernel{"attention_f32_ref"}, AttentionKernel{"attention_f32_x86"},
                      AttentionKernel{"attention_f32_x86", {{"LANES", 8}}},
                      AttentionKernel{"attention_f32_group", {}, true},
                      AttentionKernel{"attention_f32_group", {{"ROWS", 32}}, true},
                      AttentionKernel{"attention_f16_mma", {}, true},
                      AttentionKernel{"attention_f16_mma", {{"ROWS", 32}}, true},
                      AttentionKernel{"attention_f16_mma", {{"MATRIX_EMULATED", 0}}, true}),
    [](const auto& test) { return test.param.name(); });

}  // namespace
}  // namespace bertcl::tests
