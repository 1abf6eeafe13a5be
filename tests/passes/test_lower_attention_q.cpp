// SPDX-License-Identifier: Apache-2.0
// Attention of quantized operands.
#include "check.hpp"

namespace bertcl::passes {

Pass lower_attention_q();
namespace {

TEST(LowerAttentionQ, AllOperandsQuantized) {
  EXPECT_DIFF(
      lower_attention_q(),
      R"(graph g(%q: u8[batch, seq, 8], %k: u8[batch, seq, 8], %v: i8[batch, seq, 8], %m: i64[batch, seq]) {
+ const %ps: f32[] = 0.004
  const %s: f32[] = 0.5  const %z: u8[] = 3
- %qd: f32[batch, seq, 8] = DequantizeLinear(%q, %s, %z)
- %kd: f32[batch, seq, 8] = DequantizeLinear(%k, %s, %z)
- %vd: f32[batch, seq, 8] = DequantizeLinear(%v, %s)
- const %ps: f32[] = 0.004
- %y: f32[batch, seq, 8] = attention(%qd, %kd, %vd, %m, %ps, _) {heads = 2, p_type = "u8", scale = 0.5}
+ %y: f32[batch, seq, 8] = attention_q(%q, %k, %v, %m, %ps, %s, %z, %s, %z, %s, _) {heads = 2, p_type = "u8", scale = 0.5}
  return %y as y
})");
}

TEST(LowerAttentionQ, KeepsTheUnnormalizedSoftmax) {
  const std::string text =
      after(lower_attention_q(), R"(graph g(%q: u8[batch, seq, 8], %m: i64[batch, seq]) {
  const %s: f32[] = 0.5
  %qd: f32[batch, seq, 8] = DequantizeLinear(%q, %s)
  %y: f32[batch, seq, 8] = attention(%qd, %qd, %qd, %m, %s, _) {unnormalized = 1, heads = 2, p_type = "u8", scale = 0.5}
  return %y as y
})");
  EXPECT_THAT(text, HasSubstr("= attention_q("));
  EXPECT_THAT(text, HasSubstr("unnormalized = 1"));
}

}  // namespace
}  // namespace bertcl::passes
