// SPDX-License-Identifier: Apache-2.0
// What find_attention takes off scores: masks, bias, windows.
#include <cmath>

#include "attention_graphs.hpp"
#include "check.hpp"
#include "ops/interpret.hpp"
#include "tests/support/parse_graph.hpp"

namespace bertcl::passes {
namespace {

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

TEST(AttentionParts, AMaskThatHidesNothing) {
  const auto mask = [](const std::string& op) {
    return std::string(distances) + "  const %none: i64[] = 0\n  const %zero: f32[] = 0\n" +
           "  const %low: f32[] = -3.4028235e38\n  %near: bool[seq, seq] = " + op +
           "(%far, %none)\n  %four: bool[1, 1, seq, seq] = Unsqueeze(%near) {axes = [0, 1]}\n" +
           "  %all: bool[batch, 1, seq, seq] = Expand(%four)\n" +
           "  %mask: f32[batch, 1, seq, seq] = Where(%all, %zero, %low)";
  };
  EXPECT_REWRITE(find_attention(), attention(mask("GreaterOrEqual"), scaled_and_masked),
                 replaced(expected, "%v, %m", "%v, _"));
  EXPECT_UNCHANGED(find_attention(), attention(mask("Greater"), scaled_and_masked));
}

TEST(AttentionParts, ABiasThatAMaskSelects) {
  const std::string bias = std::string(distances) + std::string(alibi);
  const std::string keep = R"(  %four: i64[batch, 1, 1, seq] = Unsqueeze(%m) {axes = [1, 2]}
  %keep: bool[batch, 1, 1, seq] = Cast(%four) {to = "bool"}
)";
  const auto selected = [](const std::string& low) {
    return R"(
  const %scale: f32[] = 2
  const %low: f32[] = )" +
           low + R"(
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %2: f32[batch, 2, seq, seq] = Where(%keep, %bias, %low)
  %s: f32[batch, 2, seq, seq] = Add(%1, %2)
)";
  };
  EXPECT_REWRITE(find_attention(), attention(keep + bias, selected("-3.4028235e38")),
                 expected_with(bias, ", _, _, _, _, %bias", ""));
  EXPECT_UNCHANGED(find_attention(), attention(keep + bias, selected("-100")));
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

TEST(AttentionParts, RowsThatTheMaskHidesAreLost) {
  const std::string mask = R"(
  %row: i64[batch, 1, seq, 1] = Unsqueeze(%m) {axes = [1, 3]}
  %key: i64[batch, 1, 1, seq] = Unsqueeze(%m) {axes = [1, 2]}
  %both: i64[batch, 1, seq, seq] = Mul(%row, %key)
  %keep: bool[batch, 1, seq, seq] = Cast(%both) {to = "bool"})";
  const std::string text = attention(mask, R"(
  const %scale: f32[] = 2  const %low: f32[] = -3.4028235e38
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %s: f32[batch, 2, seq, seq] = Where(%keep, %1, %low)
)");
  std::string expected = expected_with("", "", "");
  expected.insert(expected.find("p_type"), "masks_rows = 1, ");
  EXPECT_REWRITE(find_attention(), text, expected);
  EXPECT_UNCHANGED(find_attention(/*drop_padding=*/false), text);
  const auto fused_under = [&](std::string_view rows) {
    const std::string graph = replaced(text, "  return %y",
                                       R"(
  %real: f32[batch, seq] = Cast(%m) {to = "f32"}
  %real3: f32[batch, seq, 1] = Unsqueeze(%real) {axes = [2]}
  %kept: f32[batch, seq, 8] = Mul(%y, %real3)
  %positive: f32[batch, seq, 8] = Relu(%y)
  %all: f32[batch, 8] = ReduceMean()" + std::string(rows) +
                                           R"() {axes = [1], keepdims = 0}
  return %all)");
    return after(find_attention(), graph).find(" attention(") != std::string::npos;
  };
  EXPECT_TRUE(fused_under("%kept"));
  EXPECT_FALSE(fused_under("%y")) << "the rows of padding count";
  EXPECT_FALSE(fused_under("%positive")) << "the rows of padding count";

  const std::string one =
      replaced(text, "%m: i64[batch, seq])", "%m: i64[batch, seq], %o: i64[batch, seq])");
  EXPECT_UNCHANGED(find_attention(), replaced(one, "  return %y", R"(
  %row2: i64[batch, 1, seq, 1] = Unsqueeze(%o) {axes = [1, 3]}
  %key2: i64[batch, 1, 1, seq] = Unsqueeze(%o) {axes = [1, 2]}
  %both2: i64[batch, 1, seq, seq] = Mul(%row2, %key2)
  %keep2: bool[batch, 1, seq, seq] = Cast(%both2) {to = "bool"}
  %s2: f32[batch, 2, seq, seq] = Where(%keep2, %0, %low)
  %p2: f32[batch, 2, seq, seq] = Softmax(%s2) {axis = -1}
  %c2: f32[batch, 2, seq, 4] = MatMul(%p2, %vt)
  %ct2: f32[batch, seq, 2, 4] = Transpose(%c2) {perm = [0, 2, 1, 3]}
  %y2: f32[batch, seq, 8] = Reshape(%ct2)
  return %y, %y2)"));
}

/// A mask of the keys that %near keeps.
std::string masked_by(const std::string& near) {
  return near + R"(
  %b: bool[batch, seq] = Cast(%m) {to = "bool"}
  %b4: bool[batch, 1, 1, seq] = Unsqueeze(%b) {axes = [1, 2]}
  %both: bool[batch, 1, seq, seq] = And(%near, %b4)
  const %zero: f32[] = 0  const %low: f32[] = -3.4028235e38
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
  ops::Tensors inputs;
  for (const char* name : {"q", "v"}) {
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

}  // namespace
}  // namespace bertcl::passes
