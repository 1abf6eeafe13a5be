// SPDX-License-Identifier: Apache-2.0
// What find_attention takes off heads: rotary positions and factors.
#include "attention_graphs.hpp"
#include "check.hpp"

namespace bertcl::passes {
namespace {

const std::string tables_of_place = R"(  %i: i64[seq] = Range() {start = 0, step = 1}
  %column: i64[seq, 1] = Unsqueeze(%i) {axes = [1]}
  %place: f32[seq, 1] = Cast(%column) {to = "f32"}
  const %frequencies: f32[4] = [1, 0.5, 1, 0.5]
  %angle: f32[seq, 4] = Mul(%place, %frequencies)
  %cos: f32[seq, 4] = Cos(%angle)
  %sin: f32[seq, 4] = Sin(%angle)
)";

/// %`y`, the heads %`x` [batch, `axes`, 4] by the tables %`cos` and %`sin`.
std::string turned(const std::string& x, const std::string& y, const std::string& axes = "2, seq",
                   const std::string& cos = "cos", const std::string& sin = "sin") {
  const std::string half = ": f32[batch, " + axes + ", 2] = ";
  const std::string whole = ": f32[batch, " + axes + ", 4] = ";
  const std::string slice = "Slice(%" + x + ") {axes = [3], starts = [";
  return "\n  %first" + half + slice + "0], steps = [1]}\n  %second" + half + slice +
         "2], steps = [1]}\n  %negated" + half + "Neg(%second)\n  %turned" + whole +
         "Concat(%negated, %first) {axis = 3}\n  %direct" + whole + "Mul(%" + x + ", %" + cos +
         ")\n  %other" + whole + "Mul(%turned, %" + sin + ")\n  %" + y + whole +
         "Add(%direct, %other)\n";
}

TEST(AttentionHeads, RotaryPositions) {
  const std::string rotated = replaced(attention(additive, scaled_and_masked),
                                       "  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)",
                                       tables_of_place + turned("qt", "qrot") +
                                           "  %0: f32[batch, 2, seq, seq] = MatMul(%qrot, %kt)");
  EXPECT_REWRITE(find_attention(), rotated,
                 R"(graph g(%q: f32[batch, seq, 8], %v: f32[batch, seq, 8], %m: i64[batch, seq]) {
  %k: f32[batch, seq, 8] = Neg(%q)
)" + tables_of_place +
                     R"(  %r: f32[batch, seq, 8] = rotary(%q, %cos, %sin) {heads = 2}
  %y: f32[batch, seq, 8] = attention(%r, %k, %v, %m) {heads = 2, p_type = "f32", scale = 0.5}
  return %y
})");
  // The halves the other way round are another rotation.
  EXPECT_UNCHANGED(find_attention(),
                   replaced(rotated, "Concat(%negated, %first)", "Concat(%first, %negated)"));
}

TEST(AttentionHeads, RotaryPositionsOfEachSequence) {
  const auto rotated = [](const std::string& cos, const std::string& sin) {
    std::string text = replaced(
        attention(additive, scaled_and_masked), "  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)",
        turned("qt", "qrot") + "  %0: f32[batch, 2, seq, seq] = MatMul(%qrot, %kt)");
    return replaced(text, "%m: i64[batch, seq]",
                    "%m: i64[batch, seq], %cos: f32[" + cos + "], %sin: f32[" + sin + "]");
  };
  const std::string each = "batch, 1, seq, 4", all = "1, 1, seq, 4";
  for (const std::string& tables : {each, all})
    EXPECT_REWRITE(find_attention(), rotated(tables, tables),
                   "graph g(%q: f32[batch, seq, 8], %v: f32[batch, seq, 8], %m: "
                   "i64[batch, seq], %cos: f32[" +
                       tables + "], %sin: f32[" + tables + R"(]) {
  %k: f32[batch, seq, 8] = Neg(%q)
  %r: f32[batch, seq, 8] = rotary(%q, %cos, %sin) {heads = 2}
  %y: f32[batch, seq, 8] = attention(%r, %k, %v, %m) {heads = 2, p_type = "f32", scale = 0.5}
  return %y
})");
  EXPECT_UNCHANGED(find_attention(), rotated(each, all));
  const std::string of_heads = "1, 2, seq, 4";
  EXPECT_UNCHANGED(find_attention(), rotated(of_heads, of_heads));
}

// ONNX Runtime's optimizer moves the Transpose of the keys past their rotation.
TEST(AttentionHeads, RotaryPositionsBeforeTheTranspose) {
  const std::string sizes = R"(  %i: i64[seq] = Range() {start = 0, step = 1}
  %column: i64[seq, 1] = Unsqueeze(%i) {axes = [1]}
  %place: f32[seq, 1] = Cast(%column) {to = "f32"}
  const %frequencies: f32[4] = [1, 0.5, 1, 0.5]
  %angle: f32[seq, 4] = Mul(%place, %frequencies)
  %grid: f32[1, 1, seq, 4] = Unsqueeze(%angle) {axes = [0, 1]}
  %cos: f32[1, 1, seq, 4] = Cos(%grid)
)";
  const std::string sines = R"(  %flat: f32[1, seq, 4] = Unsqueeze(%angle) {axes = [0]}
  %rows: f32[1, seq, 4] = Sin(%flat)
)";
  const std::string rotated = replaced(
      attention(additive, scaled_and_masked), "  %kt: f32[batch, 2, 4, seq] = Transpose(%kr)",
      sizes + sines + R"(  %cosr: f32[1, seq, 1, 4] = Transpose(%cos) {perm = [0, 2, 1, 3]}
  %sinr: f32[1, seq, 1, 4] = Unsqueeze(%rows) {axes = [2]}
)" + turned("kr", "krot", "seq, 2", "cosr", "sinr") +
          "  %kt: f32[batch, 2, 4, seq] = Transpose(%krot)");
  EXPECT_REWRITE(find_attention(), rotated,
                 R"(graph g(%q: f32[batch, seq, 8], %v: f32[batch, seq, 8], %m: i64[batch, seq]) {
  %k: f32[batch, seq, 8] = Neg(%q)
)" + sizes + sines +
                     R"(  %sinr: f32[1, seq, 1, 4] = Unsqueeze(%rows) {axes = [2]}
  %sin: f32[1, 1, seq, 4] = Reshape(%sinr)
  %r: f32[batch, seq, 8] = rotary(%k, %cos, %sin) {heads = 2}
  %y: f32[batch, seq, 8] = attention(%q, %r, %v, %m) {heads = 2, p_type = "f32", scale = 0.5}
  return %y
})");
  EXPECT_UNCHANGED(find_attention(),
                   replaced(rotated, "Concat(%negated, %first)", "Concat(%first, %negated)"));
}

TEST(AttentionHeads, RotaryPositionsOfRowsInFewerAxes) {
  const auto rotated = [](const std::string& tables) {
    std::string text = replaced(
        attention(additive, scaled_and_masked), "  %kt: f32[batch, 2, 4, seq] = Transpose(%kr)",
        turned("kr", "krot", "seq, 2") + "  %kt: f32[batch, 2, 4, seq] = Transpose(%krot)");
    return replaced(text, "%m: i64[batch, seq]",
                    "%m: i64[batch, seq], %cos: f32[" + tables + "], %sin: f32[" + tables + "]");
  };
  for (const auto& [given, front] :
       {std::pair("seq, 1, 4", "1"), {"1, seq, 1, 4", "1"}, {"batch, seq, 1, 4", "batch"}})
    EXPECT_REWRITE(find_attention(), rotated(given),
                   std::string("graph g(%q: f32[batch, seq, 8], %v: f32[batch, seq, "
                               "8], %m: i64[batch, seq], %cos: f32[") +
                       given + "], %sin: f32[" + given +
                       "]) {\n  %k: f32[batch, seq, 8] = Neg(%q)\n  %c: f32[" + front +
                       ", 1, seq, 4] = Reshape(%cos)\n  %s: f32[" + front +
                       R"(, 1, seq, 4] = Reshape(%sin)
  %r: f32[batch, seq, 8] = rotary(%k, %c, %s) {heads = 2}
  %y: f32[batch, seq, 8] = attention(%q, %r, %v, %m) {heads = 2, p_type = "f32", scale = 0.5}
  return %y
})");
}

TEST(AttentionHeads, HeadsThatAreTurnedByTheirNumberStay) {
  const std::string rotated = replaced(attention(additive, scaled_and_masked),
                                       "  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)", R"(
  const %cos: f32[1, 2, 1, 4] = [1, 2, 3, 4, 5, 6, 7, 8]
  const %sin: f32[1, 2, 1, 4] = [1, 1, 2, 2, 3, 3, 4, 4]
)" + turned("qt", "qrot") + "  %0: f32[batch, 2, seq, seq] = MatMul(%qrot, %kt)");
  EXPECT_UNCHANGED(find_attention(), rotated);
}

constexpr std::string_view dequantized_hidden =
    R"(graph g(%b: u8[batch, seq, 8], %m: i64[batch, seq]) {
  const %s0: f32[] = 0.5  const %z: u8[] = 3  const %ps: f32[] = 0.004
  %x: f32[batch, seq, 8] = DequantizeLinear(%b, %s0, %z)
)";

/// Quantized attention whose q is multiplied before its rotation, then before it is quantized, and
/// after that.
std::string rotated_and_quantized(std::string_view before, std::string_view between,
                                  std::string_view after) {
  const auto factor = [](const char* to, const char* from, std::string_view number) {
    return "  const %f" + std::string(to) + ": f32[] = " + std::string(number) + "\n  %" + to +
           ": f32[batch, 2, seq, 4] = Mul(%" + from + ", %f" + to + ")\n";
  };
  return std::string(dequantized_hidden) + tables_of_place +
         R"(  const %s1: f32[] = 0.25
  %xr: f32[batch, seq, 2, 4] = Reshape(%x)
  %xt: f32[batch, 2, seq, 4] = Transpose(%xr) {perm = [0, 2, 1, 3]}
  %kt: f32[batch, 2, 4, seq] = Transpose(%xr) {perm = [0, 2, 3, 1]}
)" + factor("q0", "xt", before) +
         turned("q0", "qrot") + factor("q1", "qrot", between) +
         R"(  %qq: u8[batch, 2, seq, 4] = QuantizeLinear(%q1, %s1, %z)
  %qd: f32[batch, 2, seq, 4] = DequantizeLinear(%qq, %s1, %z)
)" + factor("q2", "qd", after) +
         R"(  %0: f32[batch, 2, seq, seq] = MatMul(%q2, %kt)
  %p: f32[batch, 2, seq, seq] = Softmax(%0) {axis = -1}
  %pq: u8[batch, 2, seq, seq] = QuantizeLinear(%p, %ps)
  %pd: f32[batch, 2, seq, seq] = DequantizeLinear(%pq, %ps)
  %c: f32[batch, 2, seq, 4] = MatMul(%pd, %xt)
  %ct: f32[batch, seq, 2, 4] = Transpose(%c) {perm = [0, 2, 1, 3]}
  %y: f32[batch, seq, 8] = Reshape(%ct)
  return %y
})";
}

TEST(AttentionHeads, FactorsOfRotatedQuantizedHeads) {
  const auto expected = [](const char* step, const char* scale) {
    return std::string(dequantized_hidden) + tables_of_place + "  const %s1: f32[] = " + step + R"(
  %r: f32[batch, seq, 8] = rotary(%x, %cos, %sin) {heads = 2}
  %rq: u8[batch, seq, 8] = QuantizeLinear(%r, %s1, %z)
  %rd: f32[batch, seq, 8] = DequantizeLinear(%rq, %s1, %z)
  %y: f32[batch, seq, 8] = attention(%rd, %x, %x, _, %ps, _) {heads = 2, p_type = "u8", scale = )" +
           scale + "}\n  return %y\n}";
  };
  EXPECT_REWRITE(find_attention(), rotated_and_quantized("1", "1", "3"), expected("0.25", "3.0"));
  EXPECT_REWRITE(find_attention(), rotated_and_quantized("1", "0.5", "3"), expected("0.5", "1.5"));
  EXPECT_REWRITE(find_attention(), rotated_and_quantized("4", "0.5", "1"),
                 expected("0.125", "2.0"));
  EXPECT_REWRITE(find_attention(), rotated_and_quantized("4", "1", "1"), expected("0.0625", "4.0"));
  EXPECT_REWRITE(find_attention(), rotated_and_quantized("1", "5", "1"), expected("0.05", "5.0"));
}

TEST(AttentionHeads, FactorsThatWouldGiveAStepThatIsNoneStay) {
  for (const char* factor : {"-2", "0", "7.174648137343064e-43", "1.7014118346046923e+38"}) {
    EXPECT_UNCHANGED(find_attention(), rotated_and_quantized("1", factor, "1"));
    EXPECT_UNCHANGED(find_attention(), rotated_and_quantized(factor, "1", "1"));
  }
}

}  // namespace
}  // namespace bertcl::passes
