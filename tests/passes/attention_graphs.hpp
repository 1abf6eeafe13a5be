// SPDX-License-Identifier: Apache-2.0
// Attention as an exporter writes it, and what it becomes.
#pragma once
#include <string>
#include <string_view>

#include "passes/pass.hpp"

namespace bertcl::passes {

Pass find_attention(bool drop_padding = true);

/// Attention of 2 heads of size 4; `mask` makes %mask from %m, `scores` the operand of Softmax from
/// %0 (the product) and %mask.
inline std::string attention(std::string_view mask, std::string_view scores,
                             std::string_view p = "%p", std::string_view quantize = "") {
  std::string text =
      R"(graph g(%q: f32[batch, seq, 8], %v: f32[batch, seq, 8], %m: i64[batch, seq]) {
  %k: f32[batch, seq, 8] = Neg(%q)
)";
  text += mask;
  text += R"(
  %qr: f32[batch, seq, 2, 4] = Reshape(%q)
  %qt: f32[batch, 2, seq, 4] = Transpose(%qr) {perm = [0, 2, 1, 3]}
  %kr: f32[batch, seq, 2, 4] = Reshape(%k)
  %kt: f32[batch, 2, 4, seq] = Transpose(%kr) {perm = [0, 2, 3, 1]}
  %vr: f32[batch, seq, 2, 4] = Reshape(%v)
  %vt: f32[batch, 2, seq, 4] = Transpose(%vr) {perm = [0, 2, 1, 3]}
  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)
)";
  text += scores;
  text += "  %p: f32[batch, 2, seq, seq] = Softmax(%s) {axis = -1}\n";
  text += quantize;
  text += "  %c: f32[batch, 2, seq, 4] = MatMul(" + std::string(p) + R"(, %vt)
  %ct: f32[batch, seq, 2, 4] = Transpose(%c) {perm = [0, 2, 1, 3]}
  %y: f32[batch, seq, 8] = Reshape(%ct)
  return %y
})";
  return text;
}

inline constexpr std::string_view additive = R"(
  %m4: i64[batch, 1, 1, seq] = Unsqueeze(%m) {axes = [1, 2]}
  %mf: f32[batch, 1, 1, seq] = Cast(%m4) {to = "f32"}
  const %one: f32[] = 1
  %mi: f32[batch, 1, 1, seq] = Sub(%one, %mf)
  const %low: f32[] = -10000
  %mask: f32[batch, 1, 1, seq] = Mul(%mi, %low))";
inline constexpr std::string_view scaled_and_masked = R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %s: f32[batch, 2, seq, seq] = Add(%1, %mask)
)";
inline constexpr std::string_view expected =
    R"(graph g(%q: f32[batch, seq, 8], %v: f32[batch, seq, 8], %m: i64[batch, seq]) {
  %k: f32[batch, seq, 8] = Neg(%q)
  %y: f32[batch, seq, 8] = attention(%q, %k, %v, %m) {heads = 2, p_type = "f32", scale = 0.5}
  return %y
})";

/// An attention with what the graph `expected` says of a bias or a window.
inline std::string expected_with(std::string_view before, std::string_view operands,
                                 std::string_view attributes) {
  return "graph g(%q: f32[batch, seq, 8], %v: f32[batch, seq, 8], %m: "
         "i64[batch, seq]) {\n  %k: f32[batch, seq, 8] = Neg(%q)\n" +
         std::string(before) + "  %y: f32[batch, seq, 8] = attention(%q, %k, %v, %m" +
         std::string(operands) + ") {heads = 2, p_type = \"f32\", scale = 0.5" +
         std::string(attributes) + "}\n  return %y\n}";
}

}  // namespace bertcl::passes
