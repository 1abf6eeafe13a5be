// SPDX-License-Identifier: Apache-2.0
// What find_attention takes off scores and heads: bias, windows, rotary positions.
#include <cmath>

#include "attention_graphs.hpp"
#include "check.hpp"
#include "ops/interpret.hpp"

namespace bertcl::passes {

Pass find_attention();
namespace {

/// An attention with what the graph `expected` says of a bias or a window.
std::string expected_with(std::string_view before, std::string_view operands,
                          std::string_view attributes) {
  return "graph g(%q: f32[batch, seq, 8], %k: f32[batch, seq, 8], %v: f32[batch, seq, 8], %m: "
         "i64[batch, seq]) {\n" +
         std::string(before) + "  %y: f32[batch, seq, 8] = attention(%q, %k, %v, %m" +
         std::string(operands) + ") {heads = 2, p_type = \"f32\", scale = 0.5" +
         std::string(attributes) + "}\n  return %y\n}";
}

constexpr std::string_view distances = R"(
  %i: i64[seq] = Range() {start = 0, step = 1}
  %column: i64[seq, 1] = Unsqueeze(%i) {axes = [1]}
  %apart: i64[seq, seq] = Sub(%i, %column)
  %far: i64[seq, seq] = Abs(%apart)
)";
constexpr std::string_view alibi = R"(  %distance: f32[seq, seq] = Cast(%far) {to = "f32"}
  const %slopes: f32[1, 2, 1, 1] = [-0.25, -0.0625]
  %bias: f32[1, 2, seq, seq] = Mul(%distance, %slopes)
)";

TEST(AttentionParts, ABiasOfSizesAndAMask) {
  const std::string bias = std::string(distances) + std::string(alibi);
  const std::string expected = expected_with(bias, ", _, _, _, _, %bias", "");
  EXPECT_REWRITE(find_attention(), attention(std::string(additive) + bias, R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %2: f32[batch, 2, seq, seq] = Add(%1, %bias)
  %s: f32[batch, 2, seq, seq] = Add(%2, %mask)
)"),
                 expected);
  EXPECT_REWRITE(find_attention(), attention(std::string(additive) + bias, R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %2: f32[batch, 2, seq, seq] = Add(%bias, %mask)
  %s: f32[batch, 2, seq, seq] = Add(%1, %2)
)"),
                 expected);
}

TEST(AttentionParts, TwoBiasesAndOneOfAnInputStay) {
  const std::string bias = std::string(additive) + std::string(distances) + std::string(alibi);
  const std::string given = R"(  %lengths: i64[batch] = ReduceSum(%m) {axes = [1], keepdims = 0}
  %four: i64[batch, 1, 1, 1] = Reshape(%lengths)
  %given: f32[batch, 1, 1, 1] = Cast(%four) {to = "f32"}
)";
  const auto scores = [](const std::string& second) {
    return R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %2: f32[batch, 2, seq, seq] = Add(%1, %bias)
  %3: f32[batch, 2, seq, seq] = Add(%2, )" +
           second + R"()
  %s: f32[batch, 2, seq, seq] = Add(%3, %mask)
)";
  };
  EXPECT_UNCHANGED(find_attention(), attention(bias, scores("%bias")));
  EXPECT_UNCHANGED(find_attention(), attention(bias + given, scores("%given")));
}

/// A mask of the keys that %near keeps.
std::string masked_by(const std::string& near) {
  return near + R"(
  %b: bool[batch, seq] = Cast(%m) {to = "bool"}
  %b4: bool[batch, 1, 1, seq] = Unsqueeze(%b) {axes = [1, 2]}
  %both: bool[batch, 1, seq, seq] = And(%near, %b4)
  const %zero: f32[] = 0
  const %low: f32[] = -3.4028235e38
  %mask: f32[batch, 1, seq, seq] = Where(%both, %zero, %low))";
}

/// Those at most `window` places from the row.
std::string windowed(int window) {
  return masked_by(std::string(distances) + "  const %window: i64[] = " + std::to_string(window) +
                   "\n  %near: bool[seq, seq] = LessOrEqual(%far, %window)");
}

/// The same by two triangles.
std::string band(int window) {
  return masked_by("  const %up: i64[] = -" + std::to_string(window) +
                   "\n  const %down: i64[] = " + std::to_string(window) + R"(
  const %one: f32[] = 1
  %square: i64[2] = sizes() {values = "[seq, seq]"}
  %ones: f32[seq, seq] = Expand(%one, %square)
  %upper: f32[seq, seq] = Trilu(%ones, %up) {upper = 1}
  %kept: f32[seq, seq] = Trilu(%upper, %down) {upper = 0}
  %near: bool[seq, seq] = Cast(%kept) {to = "bool"})");
}

/// The pass changes no result, for 2 sequences of 3 * window + 4 places, the last of which is
/// padding in one.
void expect_same_values(const std::string& text, int window) {
  const std::int64_t seq = 3 * window + 4;
  std::map<std::string, ir::Tensor> inputs;
  for (const char* name : {"q", "k", "v"}) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < 2 * seq * 8; ++i)
      values.push_back(std::sin(static_cast<float>(i) * (0.37f + static_cast<float>(name[0]))));
    inputs[name] = ir::Tensor::of<float>({2, seq, 8}, std::move(values));
  }
  std::vector<std::int64_t> mask(static_cast<std::size_t>(2 * seq), 1);
  mask[static_cast<std::size_t>(seq) - 1] = 0;  // of more, a row would have no key in its window
  inputs["m"] = ir::Tensor::of<std::int64_t>({2, seq}, std::move(mask));
  ir::Graph graph = ir::parse(text);
  const auto before = ops::interpret(graph, inputs)[0].to_doubles();
  find_attention().run(graph);
  const auto after = ops::interpret(graph, inputs)[0].to_doubles();
  ASSERT_EQ(before.size(), after.size());
  for (std::size_t i = 0; i < before.size(); ++i) ASSERT_NEAR(before[i], after[i], 1e-5) << i;
}

TEST(AttentionParts, AWindowOfKeys) {
  for (const int window : {1, 2, 5, 64})
    EXPECT_REWRITE(find_attention(), attention(windowed(window), scaled_and_masked),
                   expected_with("", "", ", window = " + std::to_string(window)));
  EXPECT_UNCHANGED(find_attention(), attention(windowed(0), scaled_and_masked));
}

TEST(AttentionParts, AWindowOfTwoTriangles) {
  for (const int window : {1, 2, 5, 64, 1024})
    EXPECT_REWRITE(find_attention(), attention(band(window), scaled_and_masked),
                   expected_with("", "", ", window = " + std::to_string(window)));
  for (const int window : {1, 5, 20}) {
    expect_same_values(attention(band(window), scaled_and_masked), window);
    expect_same_values(attention(windowed(window), scaled_and_masked), window);
  }
}

// No trial is as long, so it would be taken for a mask without a window.
TEST(AttentionParts, AWindowThatNoTrialShowsStays) {
  for (const int window : {1025, 2048, 100000}) {
    EXPECT_UNCHANGED(find_attention(), attention(windowed(window), scaled_and_masked));
    EXPECT_UNCHANGED(find_attention(), attention(band(window), scaled_and_masked));
  }
}

TEST(AttentionParts, RotaryPositions) {
  std::string rotated = attention(additive, scaled_and_masked);
  const auto put = [&](std::string_view from, std::string_view to) {
    rotated.replace(rotated.find(from), from.size(), to);
  };
  const std::string tables = R"(  %i: i64[seq] = Range() {start = 0, step = 1}
  %column: i64[seq, 1] = Unsqueeze(%i) {axes = [1]}
  %place: f32[seq, 1] = Cast(%column) {to = "f32"}
  const %frequencies: f32[4] = [1, 0.5, 1, 0.5]
  %angle: f32[seq, 4] = Mul(%place, %frequencies)
  %cos: f32[seq, 4] = Cos(%angle)
  %sin: f32[seq, 4] = Sin(%angle)
)";
  put("  %0: f32[batch, 2, seq, seq] = MatMul(%qt, %kt)", tables + R"(
  %first: f32[batch, 2, seq, 2] = Slice(%qt) {axes = [3], starts = [0], steps = [1]}
  %second: f32[batch, 2, seq, 2] = Slice(%qt) {axes = [3], starts = [2], steps = [1]}
  %negated: f32[batch, 2, seq, 2] = Neg(%second)
  %turned: f32[batch, 2, seq, 4] = Concat(%negated, %first) {axis = 3}
  %direct: f32[batch, 2, seq, 4] = Mul(%qt, %cos)
  %other: f32[batch, 2, seq, 4] = Mul(%turned, %sin)
  %qrot: f32[batch, 2, seq, 4] = Add(%direct, %other)
  %0: f32[batch, 2, seq, seq] = MatMul(%qrot, %kt))");
  EXPECT_REWRITE(
      find_attention(), rotated,
      R"(graph g(%q: f32[batch, seq, 8], %k: f32[batch, seq, 8], %v: f32[batch, seq, 8], %m: i64[batch, seq]) {
)" + tables +
          R"(  %r: f32[batch, seq, 8] = rotary(%q, %cos, %sin) {heads = 2}
  %y: f32[batch, seq, 8] = attention(%r, %k, %v, %m) {heads = 2, p_type = "f32", scale = 0.5}
  return %y
})");
  // The halves the other way round are another rotation.
  put("Concat(%negated, %first)", "Concat(%first, %negated)");
  EXPECT_UNCHANGED(find_attention(), rotated);
}

constexpr std::string_view tables_of_place = R"(  %i: i64[seq] = Range() {start = 0, step = 1}
  %column: i64[seq, 1] = Unsqueeze(%i) {axes = [1]}
  %place: f32[seq, 1] = Cast(%column) {to = "f32"}
  const %frequencies: f32[4] = [1, 0.5, 1, 0.5]
  %angle: f32[seq, 4] = Mul(%place, %frequencies)
  %cos: f32[seq, 4] = Cos(%angle)
  %sin: f32[seq, 4] = Sin(%angle)
)";
constexpr std::string_view dequantized_hidden =
    R"(graph g(%b: u8[batch, seq, 8], %m: i64[batch, seq]) {
  const %s0: f32[] = 0.5
  const %z: u8[] = 3
  const %ps: f32[] = 0.004
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
  return std::string(dequantized_hidden) + std::string(tables_of_place) +
         R"(  const %s1: f32[] = 0.25
  %xr: f32[batch, seq, 2, 4] = Reshape(%x)
  %xt: f32[batch, 2, seq, 4] = Transpose(%xr) {perm = [0, 2, 1, 3]}
  %kt: f32[batch, 2, 4, seq] = Transpose(%xr) {perm = [0, 2, 3, 1]}
)" + factor("q0", "xt", before) +
         R"(  %first: f32[batch, 2, seq, 2] = Slice(%q0) {axes = [3], starts = [0], steps = [1]}
  %second: f32[batch, 2, seq, 2] = Slice(%q0) {axes = [3], starts = [2], steps = [1]}
  %negated: f32[batch, 2, seq, 2] = Neg(%second)
  %turned: f32[batch, 2, seq, 4] = Concat(%negated, %first) {axis = 3}
  %direct: f32[batch, 2, seq, 4] = Mul(%q0, %cos)
  %other: f32[batch, 2, seq, 4] = Mul(%turned, %sin)
  %qrot: f32[batch, 2, seq, 4] = Add(%direct, %other)
)" + factor("q1", "qrot", between) +
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

TEST(AttentionParts, FactorsOfRotatedQuantizedHeads) {
  const auto expected = [](const char* step, const char* scale) {
    return std::string(dequantized_hidden) + std::string(tables_of_place) +
           "  const %s1: f32[] = " + step + R"(
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
}

// Values are quantized with them: with any other step they would be rounded otherwise.
TEST(AttentionParts, FactorsThatAreRoundedWithTheHeadsStay) {
  for (const char* factor :
       {"3", "0.1", "-2", "0", "7.174648137343064e-43", "1.7014118346046923e+38"}) {
    EXPECT_UNCHANGED(find_attention(), rotated_and_quantized("1", factor, "1"));
    EXPECT_UNCHANGED(find_attention(), rotated_and_quantized(factor, "1", "1"));
  }
}

}  // namespace
}  // namespace bertcl::passes
