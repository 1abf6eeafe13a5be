// SPDX-License-Identifier: Apache-2.0
// Attention under a mask is fused only where the queries are the tokens of the keys.
#include "attention_graphs.hpp"
#include "check.hpp"

namespace bertcl::passes {
namespace {

/// Attention of %q, which `queries` make of %x or of the other tokens %z, and %k, made of %x.
std::string with_queries(const std::string& queries, const std::string& seq = "seq") {
  std::string text = replaced(
      replaced(attention(additive, scaled_and_masked), "%q: f32[batch, seq, 8], ",
               "%x: f32[batch, seq, 8], %z: f32[batch, seq, 8], "),
      "  %k: f32[batch, seq, 8] = Neg(%q)\n", queries + "  %k: f32[batch, seq, 8] = Neg(%x)\n");
  for (std::size_t at; (at = text.find("seq")) != std::string::npos && seq != "seq";)
    text.replace(at, 3, seq);
  return text;
}

bool is_fused(const std::string& text) {
  return after(find_attention(), text).find(" attention(") != std::string::npos;
}

TEST(SameTokens, OfLayersInAnyLayout) {
  EXPECT_TRUE(is_fused(with_queries(R"(
  const %w: f32[8, 8] = ...  const %g: f32[8] = ...
  %n: f32[batch, seq, 8] = LayerNormalization(%x, %g, %g) {axis = -1, epsilon = 0.5}
  %l: f32[batch, seq, 8] = MatMul(%n, %w)
  %q: f32[batch, seq, 8] = Add(%l, %x)
)")));
  EXPECT_TRUE(is_fused(with_queries(R"(
  const %w: f32[8, 24] = ...  const %first: i64[] = 0
  %rows: f32[batch*seq, 8] = Reshape(%x)
  %l: f32[batch*seq, 24] = linear(%rows, %w)
  %r: f32[batch, seq, 3, 8] = Reshape(%l)
  %q: f32[batch, seq, 8] = Gather(%r, %first) {axis = 2}
)")));
  EXPECT_TRUE(is_fused(with_queries(R"(
  %t: f32[seq, batch, 8] = Transpose(%x) {perm = [1, 0, 2]}
  %l: f32[seq, batch, 8] = Relu(%t)
  %q: f32[batch, seq, 8] = Transpose(%l) {perm = [1, 0, 2]}
)")));
}

TEST(SameTokens, WithPositionsAndTheMask) {
  EXPECT_TRUE(is_fused(with_queries(R"(
  const %table: f32[1, 5, 8] = ...
  %columns: i64[batch, 5, 1] = Unsqueeze(%m) {axes = [2]}
  %real: f32[batch, 5, 1] = Cast(%columns) {to = "f32"}
  %placed: f32[batch, 5, 8] = Add(%x, %table)
  %q: f32[batch, 5, 8] = Mul(%placed, %real)
)",
                                    "5")));
}

TEST(SameTokens, OtherTokensOfEqualExtents) {
  EXPECT_FALSE(is_fused(with_queries("  %q: f32[batch, seq, 8] = Neg(%z)\n")));
  EXPECT_FALSE(is_fused(with_queries("  %q: f32[batch, seq, 8] = Add(%x, %z)\n")));
  EXPECT_FALSE(is_fused(with_queries(R"(
  %q: f32[batch, seq, 8] = Slice(%x) {axes = [1], starts = [-1], steps = [-1]}
)"))) << "in another order";
  EXPECT_FALSE(is_fused(with_queries(R"(
  const %learned: f32[1, 5, 8] = ...
  %sizes: i64[3] = sizes() {values = "[batch, 5, 8]"}
  %q: f32[batch, 5, 8] = Expand(%learned, %sizes)
)",
                                     "5")))
      << "as many as the sequence is long";
}

TEST(SameTokens, DoNotMatterWithoutAMask) {
  EXPECT_TRUE(is_fused(replaced(with_queries("  %q: f32[batch, seq, 8] = Neg(%z)\n"),
                                "= Add(%1, %mask)", "= Mul(%1, %scale)")));
}

}  // namespace
}  // namespace bertcl::passes
