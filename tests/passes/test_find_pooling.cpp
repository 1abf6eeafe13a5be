// SPDX-License-Identifier: Apache-2.0
// Pooling that a graph spells, told by what it computes.
#include <fmt/format.h>

#include <string>

#include "check.hpp"

namespace bertcl::passes {

Pass find_pooling();
namespace {

/// An encoder whose hidden states %x are pooled by `tail` to %y.
std::string pooled_encoder(const std::string& tail, const std::string& of_attention = "%mask",
                           const std::string& outputs = "%y as y") {
  return fmt::format(
      R"(graph g(%ids: i64[batch, seq], %mask: i64[batch, seq], %other: i64[batch, seq]) {{
  const %word: f32[9, 4] = ...  const %position: f32[9, 4] = ...  const %gamma: f32[4] = ...
  const %beta: f32[4] = ...
  %e: f32[batch, seq, 4] = embed_norm(%ids, _, _, %word, _, %position, %gamma, %beta) {{epsilon = 0.5}}
  %a: f32[batch, seq, 4] = attention(%e, %e, %e, {}) {{heads = 1, p_type = "f32", scale = 0.5}}
  %x: f32[batch, seq, 4] = add_norm(%a, %e, %gamma, %beta) {{epsilon = 0.5}}
{}  return {}
}})",
      of_attention, tail, outputs);
}

const std::string kMask = R"(  %u: i64[batch, seq, 1] = Unsqueeze(%mask) {axes = [2]}
  %m1: f32[batch, seq, 1] = Cast(%u) {to = "f32"}
  %m: f32[batch, seq, 4] = Expand(%m1)
)";
const std::string kMean = kMask + R"(  %xm: f32[batch, seq, 4] = Mul(%x, %m)
  %sum: f32[batch, 4] = ReduceSum(%xm) {axes = [1], keepdims = 0}
  %ones: f32[batch, 4] = ReduceSum(%m) {axes = [1], keepdims = 0}
  const %least: f32[] = 1e-09
  %count: f32[batch, 4] = Max(%ones, %least)
)";
const std::string kNormalized = R"(  %v: f32[batch, 4] = Div(%sum, %count)
  %l2: f32[batch, 1] = ReduceL2(%v) {axes = [1], keepdims = 1}
  const %tiny: f32[] = 1e-12
  %norm: f32[batch, 1] = Max(%l2, %tiny)
  %y: f32[batch, 4] = Div(%v, %norm)
)";

TEST(FindPooling, MeanOfTokensWithAndWithoutNormalization) {
  EXPECT_REWRITE(
      find_pooling(), pooled_encoder(kMean + kNormalized),
      pooled_encoder("  %y: f32[batch, 4] = pool(%x, %mask) {kind = \"mean\", normalize = 1}\n"));
  EXPECT_REWRITE(find_pooling(),
                 pooled_encoder(kMean + "  %y: f32[batch, 4] = Div(%sum, %count)\n"),
                 pooled_encoder("  %y: f32[batch, 4] = pool(%x, %mask) {kind = \"mean\"}\n"));
}

TEST(FindPooling, LargestOfTokens) {
  EXPECT_REWRITE(find_pooling(), pooled_encoder(kMask + R"(  const %one: f32[] = 1
  const %low: f32[] = -1e+09
  %gone: f32[batch, seq, 4] = Sub(%one, %m)
  %far: f32[batch, seq, 4] = Mul(%gone, %low)
  %kept: f32[batch, seq, 4] = Add(%x, %far)
  %y: f32[batch, 4] = ReduceMax(%kept) {axes = [1], keepdims = 0}
)"),
                 pooled_encoder("  %y: f32[batch, 4] = pool(%x, %mask) {kind = \"max\"}\n"));
}

TEST(FindPooling, WhatOnlyLooksLikeItStays) {
  // The sum, not the mean; the mean of all rows; the mean times two.
  EXPECT_UNCHANGED(find_pooling(), pooled_encoder(kMask + R"(  %xm: f32[batch, seq, 4] = Mul(%x, %m)
  %y: f32[batch, 4] = ReduceSum(%xm) {axes = [1], keepdims = 0}
)"));
  EXPECT_UNCHANGED(
      find_pooling(),
      pooled_encoder("  %y: f32[batch, 4] = ReduceMean(%x) {axes = [1], keepdims = 0}\n"));
  EXPECT_UNCHANGED(find_pooling(), pooled_encoder(kMean + R"(  %z: f32[batch, 4] = Div(%sum, %count)
  const %two: f32[] = 2
  %y: f32[batch, 4] = Mul(%z, %two)
)"));
  // The second result of an operator whose first is used as well.
  EXPECT_UNCHANGED(find_pooling(), pooled_encoder(kMean + R"(  %z: f32[batch, 4] = Div(%sum, %count)
  %two: f32[batch, 8] = Concat(%sum, %z) {axis = 1}
  %first: f32[batch, 4], %y: f32[batch, 4] = Split(%two) {axis = 1, split = [4, 4]}
)",
                                                  "%mask", "%first as first, %y as y"));
  // Another mask than that of the attention, which pack_tokens could not pack.
  EXPECT_UNCHANGED(find_pooling(), pooled_encoder(kMean + kNormalized, "%other"));
}

TEST(FindPooling, WhatDiffersForLongTextsOrLargeNumbersStays) {
  const std::string mean = kMean + "  %z: f32[batch, 4] = Div(%sum, %count)\n";
  const std::string of_some = kMask + R"(  %xm: f32[batch, seq, 4] = Mul(%x, %m)
  %sum: f32[batch, 4] = ReduceSum(%xm) {axes = [1], keepdims = 0}
  %count: f32[batch, 4] = ReduceSum(%m) {axes = [1], keepdims = 0}
  %y: f32[batch, 4] = Div(%sum, %count)
)";
  // The first eight positions; the first six tokens.
  EXPECT_UNCHANGED(find_pooling(), pooled_encoder(R"(  %r: i64[seq] = Range() {start = 0, step = 1}
  const %eight: i64[] = 8
  %near: bool[seq] = Less(%r, %eight)
  %near64: i64[seq] = Cast(%near) {to = "i64"}
  %some: i64[batch, seq] = Mul(%mask, %near64)
)" + replaced(of_some, "%mask", "%some")));
  EXPECT_UNCHANGED(find_pooling(), pooled_encoder(R"(  const %axis: i64[] = 1
  %number: i64[batch, seq] = CumSum(%mask, %axis)
  const %six: i64[] = 6
  %early: bool[batch, seq] = LessOrEqual(%number, %six)
  %early64: i64[batch, seq] = Cast(%early) {to = "i64"}
  %some: i64[batch, seq] = Mul(%mask, %early64)
)" + replaced(of_some, "%mask", "%some")));
  // A bound of the mean; -3 for minus infinity.
  EXPECT_UNCHANGED(find_pooling(), pooled_encoder(mean + R"(  const %bound: f32[] = 2000
  %y: f32[batch, 4] = Min(%z, %bound)
)"));
  EXPECT_UNCHANGED(find_pooling(), pooled_encoder(kMask + R"(  const %one: f32[] = 1
  const %low: f32[] = -3
  %gone: f32[batch, seq, 4] = Sub(%one, %m)
  %far: f32[batch, seq, 4] = Mul(%gone, %low)
  %kept: f32[batch, seq, 4] = Add(%x, %far)
  %y: f32[batch, 4] = ReduceMax(%kept) {axes = [1], keepdims = 0}
)"));
}

}  // namespace
}  // namespace bertcl::passes
