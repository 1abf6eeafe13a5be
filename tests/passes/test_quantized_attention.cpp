// SPDX-License-Identifier: Apache-2.0
// find_attention() over quantized queries, keys, scores, probabilities and context.
#include <fmt/format.h>

#include "attention_graphs.hpp"
#include "check.hpp"

namespace bertcl::passes {
namespace {

/// Attention of %x, with probabilities of this type in steps of %ps.
std::string with_probabilities(std::string_view type) {
  return fmt::format(R"(
  %qr: f32[batch, seq, 2, 4] = Reshape(%x)
  %qt: f32[batch, 2, seq, 4] = Transpose(%qr) {{perm = [0, 2, 1, 3]}}
  %kt: f32[batch, 2, 4, seq] = Transpose(%qr) {{perm = [0, 2, 3, 1]}}
  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)
  %p: f32[batch, 2, seq, seq] = Softmax(%0) {{axis = -1}}
  %pq: {}[batch, 2, seq, seq] = QuantizeLinear(%p, %ps, %pz)
  %pd: f32[batch, 2, seq, seq] = DequantizeLinear(%pq, %ps, %pz)
  %c: f32[batch, 2, seq, 4] = MatMul(%pd, %qt)
  %ct: f32[batch, seq, 2, 4] = Transpose(%c) {{perm = [0, 2, 1, 3]}}
  %y: f32[batch, seq, 8] = Reshape(%ct)
  return %y
}})",
                     type);
}

TEST(QuantizedAttention, ProbabilitiesInAsymmetricI8AreU8) {
  const std::string quantized = R"(graph g(%q: f32[batch, seq, 8], %ids: i64[batch, seq]) {
  const %s0: f32[] = 0.02  const %z0: i8[] = 3
  %xq: i8[batch, seq, 8] = QuantizeLinear(%q, %s0, %z0)
  %x: f32[batch, seq, 8] = DequantizeLinear(%xq, %s0, %z0)
  const %ps: f32[] = 0.004  const %pz: i8[] = -128
)";
  EXPECT_REWRITE(find_attention(), quantized + with_probabilities("i8"), quantized + R"(
  %y: f32[batch, seq, 8] = attention(%x, %x, %x, _, %ps, _) {heads = 2, p_type = "u8", scale = 1.0}
  return %y
})");
}

TEST(QuantizedAttention, ProbabilitiesOf16BitsStayUnfused) {
  EXPECT_UNCHANGED(find_attention(), R"(graph g(%q: u8[batch, seq, 8], %ids: i64[batch, seq]) {
  const %s0: f32[] = 0.02
  %x: f32[batch, seq, 8] = DequantizeLinear(%q, %s0)
  const %ps: f32[] = 0.00002  const %pz: u16[] = 0)" +
                                         with_probabilities("u16"));
}

/// Quantized q, k, v and p, with `scores` between the MatMul %0 and %s, and `context` between the
/// MatMul %c and %cd.
std::string all_quantized(std::string_view scores, std::string_view context) {
  std::string text = R"(graph g(%q: u8[batch, seq, 8], %ids: i64[batch, seq]) {
  const %s0: f32[] = 0.02  const %z0: u8[] = 3
  %x: f32[batch, seq, 8] = DequantizeLinear(%q, %s0, %z0)
  const %ps: f32[] = 0.004  const %ss: f32[] = 0.25  const %sz: i8[] = 5  const %two: f32[] = 2
  %qr: f32[batch, seq, 2, 4] = Reshape(%x)
  %qt: f32[batch, 2, seq, 4] = Transpose(%qr) {perm = [0, 2, 1, 3]}
  %kt: f32[batch, 2, 4, seq] = Transpose(%qr) {perm = [0, 2, 3, 1]}
  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)
)";
  text += scores;
  text += R"(
  %p: f32[batch, 2, seq, seq] = Softmax(%s) {axis = -1}
  %pq: u8[batch, 2, seq, seq] = QuantizeLinear(%p, %ps)
  %pd: f32[batch, 2, seq, seq] = DequantizeLinear(%pq, %ps)
  %c: f32[batch, 2, seq, 4] = MatMul(%pd, %qt)
)";
  text += context;
  text += R"(
  %ct: f32[batch, seq, 2, 4] = Transpose(%cd) {perm = [0, 2, 1, 3]}
  %y: f32[batch, seq, 8] = Reshape(%ct)
  return %y
})";
  return text;
}
constexpr std::string_view quantized_scores = R"(
  %sq: i8[batch, 2, seq, seq] = QuantizeLinear(%0, %ss, %sz)
  %sd: f32[batch, 2, seq, seq] = DequantizeLinear(%sq, %ss, %sz)
  %s: f32[batch, 2, seq, seq] = Div(%sd, %two))";
constexpr std::string_view quantized_context = R"(
  %cq: i8[batch, 2, seq, 4] = QuantizeLinear(%c, %ss, %sz)
  %cd: f32[batch, 2, seq, 4] = DequantizeLinear(%cq, %ss, %sz))";

TEST(QuantizedAttention, ANegativeFactorOfTheScoresStaysUnfused) {
  for (const std::string_view scores :
       {std::string_view("  %s: f32[batch, 2, seq, seq] = Div(%0, %two)"), quantized_scores}) {
    const std::string graph = all_quantized(scores, quantized_context);
    EXPECT_THAT(after(find_attention(), graph), HasSubstr("attention("));
    EXPECT_UNCHANGED(find_attention(), replaced(graph, "%two: f32[] = 2", "%two: f32[] = -2"));
  }
}

TEST(QuantizedAttention, QuantizedScoresAndContext) {
  EXPECT_REWRITE(find_attention(), all_quantized(quantized_scores, quantized_context),
                 R"(graph g(%q: u8[batch, seq, 8], %ids: i64[batch, seq]) {
  const %s0: f32[] = 0.02  const %z0: u8[] = 3  const %ps: f32[] = 0.004  const %ss: f32[] = 0.25
  const %sz: i8[] = 5
  %x: f32[batch, seq, 8] = DequantizeLinear(%q, %s0, %z0)
  %a: f32[batch, seq, 8] = attention(%x, %x, %x, _, %ps, _) {heads = 2, p_type = "u8", scale = 1.0, score_factor = 0.5, score_lowest = -133, score_scale = 0.25}
  %yq: i8[batch, seq, 8] = QuantizeLinear(%a, %ss, %sz)
  %y: f32[batch, seq, 8] = DequantizeLinear(%yq, %ss, %sz)
  return %y
})");
}

TEST(QuantizedAttention, ScoresThatAreQuantizedTwiceStayUnfused) {
  EXPECT_UNCHANGED(find_attention(), all_quantized(R"(
  %sq: i8[batch, 2, seq, seq] = QuantizeLinear(%0, %ss, %sz)
  %sd: f32[batch, 2, seq, seq] = DequantizeLinear(%sq, %ss, %sz)
  %tq: i8[batch, 2, seq, seq] = QuantizeLinear(%sd, %ss, %sz)
  %s: f32[batch, 2, seq, seq] = DequantizeLinear(%tq, %ss, %sz))",
                                                   quantized_context));
}

/// Attention of 2 heads of size 4 whose p are exponentials that `quantize` makes from %e, divided
/// by `sum` after the MatMul.
std::string unnormalized(std::string_view quantize, std::string_view sum) {
  std::string text = R"(
  %qr: f32[batch, seq, 2, 4] = Reshape(%x)
  %qt: f32[batch, 2, seq, 4] = Transpose(%qr) {perm = [0, 2, 1, 3]}
  %kt: f32[batch, 2, 4, seq] = Transpose(%qr) {perm = [0, 2, 3, 1]}
  %s: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)
  %max: f32[batch, 2, seq, 1] = ReduceMax(%s) {axes = [3], keepdims = 1}
  %d: f32[batch, 2, seq, seq] = Sub(%s, %max)
  %e: f32[batch, 2, seq, seq] = Exp(%d)
)";
  text += quantize;
  text += sum;
  text += R"(  %c: f32[batch, 2, seq, 4] = MatMul(%p, %qt)
  %n: f32[batch, 2, seq, 4] = Div(%c, %sum)
  %ct: f32[batch, seq, 2, 4] = Transpose(%n) {perm = [0, 2, 1, 3]}
  %y: f32[batch, seq, 8] = Reshape(%ct)
  return %y
})";
  return text;
}

/// A graph whose %x is dequantized, with the parameters of p.
std::string dequantized_x(std::string_view p_scale) {
  return R"(graph g(%q: u8[batch, seq, 8], %ids: i64[batch, seq]) {
  const %s0: f32[] = 0.02  const %z0: u8[] = 3
  %x: f32[batch, seq, 8] = DequantizeLinear(%q, %s0, %z0)
  const %ps: f32[] = )" +
         std::string(p_scale) + "\n";
}

constexpr std::string_view sum_of_p =
    "  %sum: f32[batch, 2, seq, 1] = ReduceSum(%p) {axes = [3], keepdims = 1}\n";
constexpr std::string_view quantized_p = R"(
  %pq: u8[batch, 2, seq, seq] = QuantizeLinear(%e, %ps)
  %p: f32[batch, 2, seq, seq] = DequantizeLinear(%pq, %ps)
)";

TEST(QuantizedAttention, UnnormalizedSoftmax) {
  EXPECT_REWRITE(find_attention(), dequantized_x("0.004") + unnormalized(quantized_p, sum_of_p),
                 dequantized_x("0.004") + R"(
  %y: f32[batch, seq, 8] = attention(%x, %x, %x, _, %ps, _) {unnormalized = 1, heads = 2, p_type = "u8", scale = 1.0}
  return %y
})");
}

TEST(QuantizedAttention, UnnormalizedSoftmaxCountsAxesFromTheEnd) {
  std::string text = dequantized_x("0.004") + unnormalized(quantized_p, sum_of_p);
  for (std::size_t at; (at = text.find("[3], keepdims")) != std::string::npos;)
    text.replace(at, 3, "[-1]");
  EXPECT_REWRITE(find_attention(), text, dequantized_x("0.004") + R"(
  %y: f32[batch, seq, 8] = attention(%x, %x, %x, _, %ps, _) {unnormalized = 1, heads = 2, p_type = "u8", scale = 1.0}
  return %y
})");
}

TEST(QuantizedAttention, UnnormalizedSoftmaxInFloatIsPlain) {
  std::string text =
      "graph g(%x: f32[batch, seq, 8], %ids: i64[batch, seq]) {\n" + unnormalized("", sum_of_p);
  for (std::size_t at; (at = text.find("%e:")) != std::string::npos;) text.replace(at, 3, "%p:");
  EXPECT_REWRITE(find_attention(), text, R"(graph g(%x: f32[batch, seq, 8], %ids: i64[batch, seq]) {
  %y: f32[batch, seq, 8] = attention(%x, %x, %x, _) {heads = 2, p_type = "f32", scale = 1.0}
  return %y
})");
}

/// Exponentials of which those of rows without keys are 0, as their sum is next to 0.
std::string unnormalized_without_nan(std::string_view least) {
  std::string text = dequantized_x("0.004") + unnormalized(R"(
  %nan: bool[batch, 2, seq, seq] = IsNaN(%e)
  const %zero: f32[] = 0
  %w: f32[batch, 2, seq, seq] = Where(%nan, %zero, %e)
  %pq: u8[batch, 2, seq, seq] = QuantizeLinear(%w, %ps)
  %p: f32[batch, 2, seq, seq] = DequantizeLinear(%pq, %ps)
)",
                                                           R"(
  %any: f32[batch, 2, seq, 1] = ReduceSum(%p) {axes = [3], keepdims = 1}
  const %least: f32[] = LEAST
  %sum: f32[batch, 2, seq, 1] = Max(%any, %least)
)");
  text.replace(text.find("LEAST"), 5, least);
  return text;
}

TEST(QuantizedAttention, UnnormalizedSoftmaxWithRowsWithoutKeys) {
  EXPECT_REWRITE(find_attention(), unnormalized_without_nan("1e-30"), dequantized_x("0.004") + R"(
  %y: f32[batch, seq, 8] = attention(%x, %x, %x, _, %ps, _) {unnormalized = 1, heads = 2, p_type = "u8", scale = 1.0}
  return %y
})");
  // A sum of one step would be another.
  EXPECT_UNCHANGED(find_attention(), unnormalized_without_nan("0.005"));
  EXPECT_UNCHANGED(find_attention(), unnormalized_without_nan("-1"));
}

TEST(QuantizedAttention, ASumOfOtherExponentialsStaysUnfused) {
  const std::string unquantized =
      "  %sum: f32[batch, 2, seq, 1] = ReduceSum(%e) {axes = [3], keepdims = 1}\n";
  EXPECT_UNCHANGED(find_attention(),
                   dequantized_x("0.004") + unnormalized(quantized_p, unquantized));
  const std::string over_rows =
      "  %sum: f32[batch, 2, 1, seq] = ReduceSum(%p) {axes = [2], keepdims = 1}\n";
  EXPECT_UNCHANGED(find_attention(), dequantized_x("0.004") + unnormalized(quantized_p, over_rows));
}

TEST(QuantizedAttention, APowerOf1BelowAStepStaysUnfused) {
  EXPECT_UNCHANGED(find_attention(), dequantized_x("3") + unnormalized(quantized_p, sum_of_p));
}

// As where a quantizer leaves the MatMul of probabilities and v in float, and not that of q and k.
TEST(QuantizedAttention, QuantizedOperandsOfFloatProbabilitiesAreDequantized) {
  const auto graph = [](std::string_view body) {
    return fmt::format(
        R"(graph g(%a: u8[batch, seq, 8], %v: f32[batch, seq, 8], %ids: i64[batch, seq]) {{
  const %s0: f32[] = 0.02  const %z0: u8[] = 3
  %x: f32[batch, seq, 8] = DequantizeLinear(%a, %s0, %z0)
{}}})",
        body);
  };
  for (const std::string v : {"%v", "%x"}) {
    SCOPED_TRACE(v);
    const std::string spelled = fmt::format(R"(
  %qr: f32[batch, seq, 2, 4] = Reshape(%x)
  %qt: f32[batch, 2, seq, 4] = Transpose(%qr) {{perm = [0, 2, 1, 3]}}
  %kt: f32[batch, 2, 4, seq] = Transpose(%qr) {{perm = [0, 2, 3, 1]}}
  %vr: f32[batch, seq, 2, 4] = Reshape({})
  %vt: f32[batch, 2, seq, 4] = Transpose(%vr) {{perm = [0, 2, 1, 3]}}
  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)
  %p: f32[batch, 2, seq, seq] = Softmax(%0) {{axis = -1}}
  %c: f32[batch, 2, seq, 4] = MatMul(%p, %vt)
  %ct: f32[batch, seq, 2, 4] = Transpose(%c) {{perm = [0, 2, 1, 3]}}
  %y: f32[batch, seq, 8] = Reshape(%ct)
  return %y
)",
                                            v);
    EXPECT_REWRITE(find_attention(), graph(spelled),
                   graph(fmt::format(R"(
  %y: f32[batch, seq, 8] = attention(%x, %x, {}, _) {{heads = 2, p_type = "f32", scale = 1.0}}
  return %y
)",
                                     v)));
  }
}

TEST(QuantizedAttention, FloatExponentialsOfQuantizedOperandsArePlain) {
  std::string text = dequantized_x("0.004") + unnormalized("", sum_of_p);
  for (std::size_t at; (at = text.find("%e:")) != std::string::npos;) text.replace(at, 3, "%p:");
  EXPECT_REWRITE(find_attention(), text, R"(graph g(%q: u8[batch, seq, 8], %ids: i64[batch, seq]) {
  const %s0: f32[] = 0.02  const %z0: u8[] = 3
  %x: f32[batch, seq, 8] = DequantizeLinear(%q, %s0, %z0)
  %y: f32[batch, seq, 8] = attention(%x, %x, %x, _) {heads = 2, p_type = "f32", scale = 1.0}
  return %y
})");
}

TEST(QuantizedAttention, QuantizedScoresOrContextOfFloatProbabilitiesStayUnfused) {
  const auto with_float_p = [](std::string text) {
    text.erase(text.find("  %pq:"), text.find("  %c:") - text.find("  %pq:"));
    return text.replace(text.find("MatMul(%pd"), 10, "MatMul(%p");
  };
  const std::string_view scores = "  %s: f32[batch, 2, seq, seq] = Div(%0, %two)";
  const std::string_view context = "  %cd: f32[batch, 2, seq, 4] = Mul(%c, %two)";
  EXPECT_UNCHANGED(find_attention(), with_float_p(all_quantized(quantized_scores, context)));
  EXPECT_UNCHANGED(find_attention(), with_float_p(all_quantized(scores, quantized_context)));
}

TEST(QuantizedAttention, QuantizedProbabilitiesAloneStayUnfused) {
  EXPECT_UNCHANGED(find_attention(), attention(additive, scaled_and_masked, "%pd", R"(
  const %ps: f32[] = 0.004
  %pq: u8[batch, 2, seq, seq] = QuantizeLinear(%p, %ps)
  %pd: f32[batch, 2, seq, seq] = DequantizeLinear(%pq, %ps)
)"));
}

}  // namespace
}  // namespace bertcl::passes
