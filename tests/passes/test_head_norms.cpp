// SPDX-License-Identifier: Apache-2.0
// Norms of each head of queries and keys, through find_attention and pack_tokens.
#include <string>

#include "attention_graphs.hpp"
#include "check.hpp"

namespace bertcl::passes {

Pass pack_tokens();
namespace {

const std::string matmul = "  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)\n";
const std::string gamma = "  const %gamma: f32[4] = [1, 2, 3, 4]\n";

/// Attention whose queries `norm` makes from %qt [batch, 2, seq, 4], as %qn.
std::string normalized(const std::string& norm) {
  return replaced(attention(additive, scaled_and_masked), matmul,
                  gamma + norm + replaced(matmul, "%qt", "%qn"));
}
std::string expected_by(const std::string& norm) {
  return replaced(expected_with(gamma + "  %r: f32[batch, seq, 2, 4] = Reshape(%q)\n" + norm +
                                    "  %rows: f32[batch, seq, 8] = Reshape(%n)\n",
                                "", ""),
                  "attention(%q", "attention(%rows");
}

TEST(HeadNorms, OfHeadsAreNormsOfRows) {
  EXPECT_REWRITE(
      find_attention(),
      normalized("  %qn: f32[batch, 2, seq, 4] = RMSNormalization(%qt, %gamma) {axis = 3, "
                 "epsilon = 0.5}\n"),
      expected_by("  %n: f32[batch, seq, 2, 4] = RMSNormalization(%r, %gamma) {axis = -1, "
                  "epsilon = 0.5}\n"));
  EXPECT_REWRITE(
      find_attention(),
      normalized("  %qn: f32[batch, 2, seq, 4] = LayerNormalization(%qt, %gamma, %gamma) {axis = "
                 "-1, epsilon = 0.5}\n"),
      expected_by("  %n: f32[batch, seq, 2, 4] = LayerNormalization(%r, %gamma, %gamma) {axis = "
                  "-1, epsilon = 0.5}\n"));
}

TEST(HeadNorms, BeforeTheTranspose) {
  const std::string split = "  %kr: f32[batch, seq, 2, 4] = Reshape(%k)\n";
  const std::string norm =
      "  %n: f32[batch, seq, 2, 4] = RMSNormalization(%kr, %gamma) {axis = -1, epsilon = 0.5}\n";
  const std::string text =
      replaced(replaced(attention(additive, scaled_and_masked), split, split + gamma + norm),
               "Transpose(%kr)", "Transpose(%n)");
  EXPECT_REWRITE(
      find_attention(), text,
      replaced(expected_with(gamma + split + norm + "  %rows: f32[batch, seq, 8] = Reshape(%n)\n",
                             "", ""),
               "attention(%q, %k", "attention(%q, %rows"));
}

TEST(HeadNorms, OfOtherAxesStay) {
  const std::string norm =
      "  %qn: f32[batch, 2, seq, 4] = RMSNormalization(%qt, %gamma) {axis = 2, epsilon = 0.5}\n";
  const std::string sizes = "const %gamma: f32[seq, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]";
  std::string text = replaced(normalized(norm), "const %gamma: f32[4] = [1, 2, 3, 4]", sizes);
  for (std::size_t at; (at = text.find("seq")) != std::string::npos;) text.replace(at, 3, "3");
  EXPECT_UNCHANGED(find_attention(), text);
  text = replaced(replaced(text, "f32[3, 4] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]",
                           "f32[4] = [1, 2, 3, 4]"),
                  "{axis = 2, epsilon", "{axis = 3, epsilon");
  EXPECT_THAT(after(find_attention(), text), HasSubstr("= attention("));
}

TEST(HeadNorms, OfColumnsThatAreNoHeadsStay) {
  // With as many tokens as a head has columns, a norm along the tokens has the same shapes.
  std::string text =
      replaced(attention(additive, scaled_and_masked),
               "  %kt: f32[batch, 2, 4, seq] = Transpose(%kr) {perm = [0, 2, 3, 1]}\n", gamma + R"(
  %kt: f32[batch, 2, 4, seq] = Transpose(%kr) {perm = [0, 2, 3, 1]}
  %kn: f32[batch, 2, 4, seq] = RMSNormalization(%kt, %gamma) {axis = -1, epsilon = 0.5}
)");
  text = replaced(text, "MatMul(%qt, %kt)", "MatMul(%qt, %kn)");
  for (std::size_t at; (at = text.find("seq")) != std::string::npos;) text.replace(at, 3, "4");
  EXPECT_UNCHANGED(find_attention(), text);
  text = replaced(replaced(text, "RMSNormalization(%kt,", "RMSNormalization(%kr,"),
                  "%kn: f32[batch, 2, 4, 4]", "%kn: f32[batch, 4, 2, 4]");
  const std::string transpose =
      "  %kt: f32[batch, 2, 4, 4] = Transpose(%kr) {perm = [0, 2, 3, 1]}\n";
  const std::string norm =
      text.substr(text.find("  %kn:"), text.find("  %vr:") - text.find("  %kn:"));
  text = replaced(
      replaced(replaced(text, norm, ""), transpose, norm + replaced(transpose, "(%kr)", "(%kn)")),
      "MatMul(%qt, %kn)", "MatMul(%qt, %kt)");
  EXPECT_THAT(after(find_attention(), text), HasSubstr("= attention("));
}

TEST(HeadNorms, OfScaledHeadsOrOfValuesStay) {
  EXPECT_UNCHANGED(find_attention(), normalized(R"(
  const %two: f32[] = 2
  %double: f32[batch, 2, seq, 4] = Mul(%qt, %two)
  %qn: f32[batch, 2, seq, 4] = RMSNormalization(%double, %gamma) {axis = -1, epsilon = 0.5}
)"));
  EXPECT_UNCHANGED(find_attention(),
                   replaced(attention(additive, scaled_and_masked, "%p", gamma + R"(
  %vn: f32[batch, 2, seq, 4] = RMSNormalization(%vt, %gamma) {axis = -1, epsilon = 0.5}
)"),
                            "MatMul(%p, %vt)", "MatMul(%p, %vn)"));
}

TEST(HeadNorms, HeadsOfPackedRowsArePacked) {
  EXPECT_REWRITE(pack_tokens(), R"(graph g(%x: f32[batch, seq, 8], %m: i64[batch, seq]) {
  const %gamma: f32[8] = ...  const %narrow: f32[4] = ...
  %e: f32[batch, seq, 8] = add_norm(%x, _, %gamma) {epsilon = 0.5, rms = 1}
  %r: f32[batch, seq, 2, 4] = Reshape(%e)
  %n: f32[batch, seq, 2, 4] = add_norm(%r, _, %narrow) {epsilon = 0.5, rms = 1}
  %q: f32[batch, seq, 8] = Reshape(%n)
  %y: f32[batch, seq, 8] = attention(%q, %e, %e, %m) {heads = 2, p_type = "f32", scale = 0.5}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, seq, 8], %m: i64[batch, seq]) {
  %0: i32[$tokens], %1: i32[$tokens], %2: i32[$offsets], %3: u8[$tokens] = pack_inputs(%m, _, %m)
  const %gamma: f32[8] = ...  const %narrow: f32[4] = ...
  %rows: f32[$tokens, 8] = pack(%x, %2)
  %e: f32[$tokens, 8] = add_norm(%rows, _, %gamma) {epsilon = 0.5, rms = 1}
  %r: f32[$tokens, 2, 4] = Reshape(%e)
  %n: f32[$tokens, 2, 4] = add_norm(%r, _, %narrow) {epsilon = 0.5, rms = 1}
  %q: f32[$tokens, 8] = Reshape(%n)
  %packed: f32[$tokens, 8] = attention(%q, %e, %e, _, _, _, %2, %3) {heads = 2, masked = 1, p_type = "f32", scale = 0.5}
  %y: f32[batch, seq, 8] = unpack(%packed, %2)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
