// SPDX-License-Identifier: Apache-2.0
// Values that are quantized twice in the same way.
#include <fmt/format.h>

#include "check.hpp"

namespace bertcl::passes {

Pass drop_requantize();
namespace {

TEST(DropRequantize, PairsBetweenMovesDisappear) {
  EXPECT_DIFF(drop_requantize(), R"(graph g(%x: f32[batch, seq, 8]) {
  const %s: f32[] = 0.125
- const %same: f32[] = 0.125
  const %z: u8[] = 7
- %q0: u8[batch, seq, 8] = QuantizeLinear(%x, %s, %z)
- %d0: f32[batch, seq, 8] = DequantizeLinear(%q0, %s, %z)
- %r: f32[batch, seq, 2, 4] = Reshape(%d0)
- %q1: u8[batch, seq, 2, 4] = QuantizeLinear(%r, %same, %z)
- %d1: f32[batch, seq, 2, 4] = DequantizeLinear(%q1, %s, %z)
- %t: f32[batch, 2, seq, 4] = Transpose(%d1) {perm = [0, 2, 1, 3]}
+ %r: f32[batch, seq, 2, 4] = Reshape(%x)
+ %t: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
  %q2: u8[batch, 2, seq, 4] = QuantizeLinear(%t, %s, %z)
  %d2: f32[batch, 2, seq, 4] = DequantizeLinear(%q2, %s, %z)
  return %d2 as y
})");
}

/// Two pairs with a Relu or a Reshape between them; scale, zero point and type of the second one.
std::string two_pairs(std::string_view scale, int zero, std::string_view type, bool relu) {
  return fmt::format(R"(graph g(%x: f32[batch, 8]) {{
  const %s: f32[] = {0}  const %z: u8[] = 7
  %q0: u8[batch, 8] = QuantizeLinear(%x, %s, %z)
  %d0: f32[batch, 8] = DequantizeLinear(%q0, %s, %z)
  %m: f32[batch, 8] = {4}
  const %s1: f32[] = {1}  const %z1: {3}[] = {2}
  %q1: {3}[batch, 8] = QuantizeLinear(%m, %s1, %z1)
  %d1: f32[batch, 8] = DequantizeLinear(%q1, %s1, %z1)
  return %d1 as y
}})",
                     scale == "1e-40" ? "1e-40" : "0.125", scale, zero, type,
                     relu ? "Relu(%d0)" : "Reshape(%d0)");
}

TEST(DropRequantize, OtherParametersArithmeticAndTinyScalesStay) {
  EXPECT_NE(after(drop_requantize(), two_pairs("0.125", 7, "u8", false)),
            normal(two_pairs("0.125", 7, "u8", false)));
  for (const std::string& graph :
       {two_pairs("0.25", 7, "u8", false), two_pairs("0.125", 8, "u8", false),
        two_pairs("0.125", 7, "i8", false), two_pairs("1e-40", 7, "u8", false),
        two_pairs("0.125", 7, "u8", true)})
    EXPECT_UNCHANGED(drop_requantize(), graph);
}

TEST(DropRequantize, APairThatOthersReadStays) {
  EXPECT_UNCHANGED(drop_requantize(), R"(graph g(%x: f32[batch, 8]) {
  const %s: f32[] = 0.125
  %q0: i8[batch, 8] = QuantizeLinear(%x, %s)
  %d0: f32[batch, 8] = DequantizeLinear(%q0, %s)
  %r: f32[batch, 2, 4] = Reshape(%d0)
  %q1: i8[batch, 2, 4] = QuantizeLinear(%r, %s)
  return %d0 as y, %q1 as z
})");
}

TEST(DropRequantize, APartWhoseOtherPartsAreReadStays) {
  EXPECT_UNCHANGED(drop_requantize(), R"(graph g(%x: f32[batch, 8]) {
  const %s: f32[] = 0.125
  %q0: i8[batch, 8] = QuantizeLinear(%x, %s)
  %d0: f32[batch, 8] = DequantizeLinear(%q0, %s)
  %a: f32[batch, 4], %b: f32[batch, 4] = Split(%d0) {axis = 1, split = [4, 4]}
  %q1: i8[batch, 4] = QuantizeLinear(%a, %s)
  return %q1 as y, %b as z
})");
}

}  // namespace
}  // namespace bertcl::passes
