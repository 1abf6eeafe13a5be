// SPDX-License-Identifier: Apache-2.0
// Attention in its spellings, and where it stays as it is.
#include <fmt/format.h>

#include <regex>

#include "attention_graphs.hpp"
#include "check.hpp"

namespace bertcl::passes {
namespace {

TEST(FindAttention, AdditiveMaskOfOldBert) {
  EXPECT_REWRITE(find_attention(), attention(additive, scaled_and_masked), expected);
}

TEST(FindAttention, BooleanMaskByWhere) {
  EXPECT_REWRITE(find_attention(),
                 attention(R"(
  %b: bool[batch, seq] = Cast(%m) {to = "bool"}
  %b4: bool[batch, 1, 1, seq] = Unsqueeze(%b) {axes = [1, 2]}
  %bx: bool[batch, 1, seq, seq] = Expand(%b4)
  const %zero: f32[] = 0  const %low: f32[] = -3.4028235e38
  %mask: f32[batch, 1, seq, seq] = Where(%bx, %zero, %low))",
                           scaled_and_masked),
                 expected);
}

TEST(FindAttention, HeadsThatNoKernelTakesStay) {
  const auto of_heads = [](int size) {
    std::string text = attention(additive, scaled_and_masked);
    text = std::regex_replace(text, std::regex("seq, 8\\]"), fmt::format("seq, {}]", 2 * size));
    text = std::regex_replace(text, std::regex(", 4\\]"), fmt::format(", {}]", size));
    return std::regex_replace(text, std::regex("2, 4, seq"), fmt::format("2, {}, seq", size));
  };
  EXPECT_THAT(after(find_attention(), of_heads(256)), HasSubstr("= attention("));
  EXPECT_UNCHANGED(find_attention(), of_heads(257));
}

constexpr std::string_view by_count = R"(
  %n: i64[batch] = ReduceSum(%m) {axes = [1], keepdims = 0}
  %n4: i64[batch, 1, 1, 1] = Reshape(%n)
  %r: i64[seq] = Range() {start = 0, step = 1}
  %b: bool[batch, 1, 1, seq] = Less(%r, %n4)
  const %zero: f32[] = 0  const %low: f32[] = -10000
  %mask: f32[batch, 1, 1, seq] = Where(%b, %zero, %low))";

TEST(FindAttention, NumberOfTokens) {
  std::string mask_is_length(expected);
  mask_is_length.replace(mask_is_length.find("heads"), 0, "mask_is_length = 1, ");
  EXPECT_REWRITE(find_attention(), attention(by_count, scaled_and_masked), mask_is_length);
}

TEST(FindAttention, ScaleOnBothOperandsAndNoMask) {
  EXPECT_REWRITE(
      find_attention(),
      R"(graph g(%q: f32[batch, seq, 8], %k: f32[batch, seq, 8], %v: f32[batch, seq, 8], %ids: i64[batch, seq]) {
  const %r: f32[] = 0.5
  %qr: f32[batch, seq, 2, 4] = Reshape(%q)
  %qt: f32[batch, 2, seq, 4] = Transpose(%qr) {perm = [0, 2, 1, 3]}
  %qs: f32[batch, 2, seq, 4] = Mul(%qt, %r)
  %kr: f32[batch, seq, 2, 4] = Reshape(%k)
  %k1: f32[batch, 2, seq, 4] = Transpose(%kr) {perm = [0, 2, 1, 3]}
  %k2: f32[batch, 2, 4, seq] = Transpose(%k1) {perm = [0, 1, 3, 2]}
  %ks: f32[batch, 2, 4, seq] = Mul(%k2, %r)
  %vr: f32[batch, seq, 2, 4] = Reshape(%v)
  %vt: f32[batch, 2, seq, 4] = Transpose(%vr) {perm = [0, 2, 1, 3]}
  %0: f32[batch, 2, seq, seq] = MatMul(%qs, %ks)
  %p: f32[batch, 2, seq, seq] = Softmax(%0) {axis = 3}
  %n: bool[batch, 2, seq, seq] = IsNaN(%p)
  const %zero: f32[] = 0
  %p2: f32[batch, 2, seq, seq] = Where(%n, %zero, %p)
  %c: f32[batch, 2, seq, 4] = MatMul(%p2, %vt)
  %ct: f32[batch, seq, 2, 4] = Transpose(%c) {perm = [0, 2, 1, 3]}
  %y: f32[batch, seq, 8] = Reshape(%ct)
  return %y
})",
      R"(graph g(%q: f32[batch, seq, 8], %k: f32[batch, seq, 8], %v: f32[batch, seq, 8], %ids: i64[batch, seq]) {
  %y: f32[batch, seq, 8] = attention(%q, %k, %v, _) {heads = 2, p_type = "f32", scale = 0.25}
  return %y
})");
}

TEST(FindAttention, OnlyWhatIsUnderTheFirstMaskIsFused) {
  std::string text = "graph g(%x: f32[batch, seq, 8], %m: i64[batch, seq], %n: i64[batch, seq]) {";
  for (const std::string mask : {"m", "n"})
    text += std::regex_replace(std::string(R"(
  %@4: i64[batch, 1, 1, seq] = Unsqueeze(%@) {axes = [1, 2]}
  %@f: f32[batch, 1, 1, seq] = Cast(%@4) {to = "f32"}
  const %@1: f32[] = 1
  %@i: f32[batch, 1, 1, seq] = Sub(%@1, %@f)
  const %@l: f32[] = -10000
  %@a: f32[batch, 1, 1, seq] = Mul(%@i, %@l)
  %@r: f32[batch, seq, 2, 4] = Reshape(%x)
  %@q: f32[batch, 2, seq, 4] = Transpose(%@r) {perm = [0, 2, 1, 3]}
  %@k: f32[batch, 2, 4, seq] = Transpose(%@r) {perm = [0, 2, 3, 1]}
  %@s: f32[batch, 2, seq, seq] = MatMul(%@q, %@k)
  %@m: f32[batch, 2, seq, seq] = Add(%@s, %@a)
  %@p: f32[batch, 2, seq, seq] = Softmax(%@m) {axis = -1}
  %@c: f32[batch, 2, seq, 4] = MatMul(%@p, %@q)
  %@t: f32[batch, seq, 2, 4] = Transpose(%@c) {perm = [0, 2, 1, 3]}
  %@y: f32[batch, seq, 8] = Reshape(%@t))"),
                               std::regex("@"), mask);
  text = after(find_attention(), text + "\n  return %my as y, %ny as z\n}");
  EXPECT_THAT(text, HasSubstr("attention(%x, %x, %x, %m)"));
  EXPECT_THAT(text, Not(HasSubstr("attention(%x, %x, %x, %n)")));
}

/// Attention of x [batch, seq, 8] in a graph with these inputs.
std::string without_mask(const std::string& inputs, const std::string& nodes = "") {
  return "graph g(" + inputs + ") {\n" + nodes + R"(
  %r: f32[batch, seq, 2, 4] = Reshape(%x)
  %q: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
  %k: f32[batch, 2, 4, seq] = Transpose(%r) {perm = [0, 2, 3, 1]}
  %s: f32[batch, 2, seq, seq] = MatMul(%q, %k)
  %p: f32[batch, 2, seq, seq] = Softmax(%s) {axis = 3}
  %c: f32[batch, 2, seq, 4] = MatMul(%p, %q)
  %t: f32[batch, seq, 2, 4] = Transpose(%c) {perm = [0, 2, 1, 3]}
  %y: f32[batch, seq, 8] = Reshape(%t)
  return %y
})";
}

TEST(FindAttention, SizesTellTheSequencesOfAModelWithoutTokens) {
  const std::string inputs = "%x: f32[batch, seq, 8]";
  EXPECT_REWRITE(find_attention(), without_mask(inputs), "graph g(" + inputs + R"() {
  %y: f32[batch, seq, 8] = attention(%x, %x, %x, _) {heads = 2, p_type = "f32", scale = 1.0}
  return %y
})");
}

TEST(FindAttention, NothingTellsTheSequences) {
  EXPECT_UNCHANGED(find_attention(),
                   without_mask("%x: f32[batch, seq, 8], %ids: i64[batch, words]"));
  // How many there are depends on the elements of an input.
  EXPECT_UNCHANGED(find_attention(), without_mask("%given: f32[batch, 8, all]", R"(
  %some: f32[batch, 8, seq] = Identity(%given)
  %x: f32[batch, seq, 8] = Transpose(%some) {perm = [0, 2, 1]})"));
}

}  // namespace
}  // namespace bertcl::passes
