// SPDX-License-Identifier: Apache-2.0
// Masks of find_attention under which no key after its row counts.
#include <string>

#include "attention_graphs.hpp"
#include "check.hpp"

namespace bertcl::passes {
namespace {

/// %counts, [seq, seq]: whether `op`(row, key).
std::string places(const std::string& op = "GreaterOrEqual") {
  return R"(
  %r: i64[seq] = Range() {start = 0, step = 1}
  %row: i64[seq, 1] = Unsqueeze(%r) {axes = [1]}
  %key: i64[1, seq] = Unsqueeze(%r) {axes = [0]}
  const %zero: f32[] = 0  const %hides: f32[] = -10000
  %counts: bool[seq, seq] = )" +
         op + "(%row, %key)\n";
}
const std::string bias = R"(  %at: i64[seq] = Range() {start = 0, step = 1}
  %keys: i64[1, 1, 1, seq] = Reshape(%at)
  %rows: i64[1, 1, seq, 1] = Reshape(%at)
  %until: bool[1, 1, seq, seq] = LessOrEqual(%keys, %rows)
  const %none: f32[] = 0  const %lowest: f32[] = -3.4028235e38
  %bias: f32[1, 1, seq, seq] = Where(%until, %none, %lowest)
)";
std::string expected_with_bias() {
  const std::string k = "  %k: f32[batch, seq, 8] = Neg(%q)\n";  // after the bias
  return replaced(replaced(expected_with(bias, ", _, _, _, _, %bias", ""), k, ""), "  %y",
                  k + "  %y");
}
std::string expected_without_mask() {
  return replaced(expected_with_bias(), "%v, %m, _", "%v, _, _");
}
std::string expected_with_mask() {
  return replaced(expected_with_bias(), "{heads = 2, ", "{heads = 2, masks_rows = 1, ");
}

std::string with_ids(const std::string& text) {
  return replaced(text, "%m: i64[batch, seq]", "%m: i64[batch, seq], %ids: i64[batch, seq]");
}

TEST(CausalAttention, AMaskOfPlacesIsABias) {
  const std::string mask = places() + "  %mask: f32[seq, seq] = Where(%counts, %zero, %hides)";
  EXPECT_REWRITE(find_attention(), attention(mask, scaled_and_masked), expected_without_mask());
  EXPECT_REWRITE(find_attention(/*drop_padding=*/false), attention(mask, scaled_and_masked),
                 expected_without_mask());
}

TEST(CausalAttention, RepeatedForTheBatch) {
  EXPECT_REWRITE(find_attention(),
                 attention(places() + R"(
  %four: bool[1, 1, seq, seq] = Unsqueeze(%counts) {axes = [0, 1]}
  %all: bool[batch, 1, seq, seq] = Expand(%four)
  %mask: f32[batch, 1, seq, seq] = Where(%all, %zero, %hides))",
                           scaled_and_masked),
                 expected_without_mask());
}

TEST(CausalAttention, ByATriangle) {
  EXPECT_REWRITE(find_attention(),
                 attention(R"(
  const %one: f32[1] = [1]  const %zero: f32[] = 0  const %hides: f32[] = -inf
  %ones: f32[seq, seq] = Expand(%one)
  %lower: f32[seq, seq] = Trilu(%ones) {upper = 0}
  %drops: bool[seq, seq] = Equal(%lower, %zero)
  %mask: f32[seq, seq] = Where(%drops, %hides, %lower)
  %ended: f32[seq, seq] = Where(%drops, %hides, %zero))",
                           R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %s: f32[batch, 2, seq, seq] = Add(%1, %ended)
)"),
                 expected_without_mask());
}

TEST(CausalAttention, SelectedByWhere) {
  EXPECT_REWRITE(find_attention(), attention(places(), R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %s: f32[batch, 2, seq, seq] = Where(%counts, %1, %hides)
)"),
                 expected_without_mask());
}

TEST(CausalAttention, AConstantOfAFixedLength) {
  const auto fixed = [](std::string graph) {
    for (std::size_t at; (at = graph.find("seq")) != std::string::npos;) graph.replace(at, 3, "2");
    return graph;
  };
  const std::string mask = "  const %mask: f32[1, 1, seq, seq] = [0, -3.4028235e38, 0, 0]";
  EXPECT_REWRITE(find_attention(), fixed(attention(mask, scaled_and_masked)),
                 fixed(expected_without_mask()));
  EXPECT_NE(
      after(find_attention(),
            fixed(attention(replaced(mask, "[0, -3.4028235e38, 0, 0]", "[0, -3.4028235e38, -1, 0]"),
                            scaled_and_masked))),
      normal(fixed(expected_without_mask())));
}

TEST(CausalAttention, WithAMaskOfPadding) {
  const std::string together = places() + R"(
  %four: i64[batch, 1, 1, seq] = Unsqueeze(%m) {axes = [1, 2]}
  %token: bool[batch, 1, 1, seq] = Cast(%four) {to = "bool"}
  %both: bool[batch, 1, seq, seq] = And(%counts, %token)
  %mask: f32[batch, 1, seq, seq] = Where(%both, %zero, %hides))";
  const std::string expected = with_ids(expected_with_mask());
  EXPECT_REWRITE(find_attention(), with_ids(attention(together, scaled_and_masked)), expected);
  EXPECT_UNCHANGED(find_attention(/*drop_padding=*/false),
                   with_ids(attention(together, scaled_and_masked)));
  EXPECT_UNCHANGED(find_attention(), attention(together, scaled_and_masked));
  const std::string apart =
      std::string(additive) + places() + "  %causal: f32[seq, seq] = Where(%counts, %zero, %hides)";
  const std::string_view scores = R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %2: f32[batch, 2, seq, seq] = Add(%1, %causal)
  %s: f32[batch, 2, seq, seq] = Add(%2, %mask)
)";
  EXPECT_REWRITE(find_attention(), with_ids(attention(apart, scores)), expected);
  EXPECT_UNCHANGED(find_attention(/*drop_padding=*/false), with_ids(attention(apart, scores)));
  EXPECT_UNCHANGED(find_attention(), attention(apart, scores));
}

TEST(CausalAttention, OfTheLastPlacesWithAMaskOfPadding) {
  const std::string text = with_ids(attention(places() + R"(
  const %six: i64[] = 6
  %apart: i64[seq, seq] = Sub(%row, %key)
  %near: bool[seq, seq] = Less(%apart, %six)
  %some: bool[seq, seq] = And(%counts, %near)
  %four: i64[batch, 1, 1, seq] = Unsqueeze(%m) {axes = [1, 2]}
  %token: bool[batch, 1, 1, seq] = Cast(%four) {to = "bool"}
  %all: bool[batch, 1, seq, seq] = And(%some, %token)
  %mask: f32[batch, 1, seq, seq] = Where(%all, %zero, %hides))",
                                              scaled_and_masked));
  EXPECT_REWRITE(
      find_attention(), text,
      with_ids(replaced(expected_with_mask(), "scale = 0.5", "scale = 0.5, window = 5")));
}

TEST(CausalAttention, AnotherBiasIsAdded) {
  const std::string distances = R"(  %column: i64[seq, 1] = Unsqueeze(%r) {axes = [1]}
  %apart: i64[seq, seq] = Sub(%r, %column)
  %distance: f32[seq, seq] = Cast(%apart) {to = "f32"}
  const %slopes: f32[1, 2, 1, 1] = [-0.25, -0.0625]
  %alibi: f32[1, 2, seq, seq] = Mul(%distance, %slopes)
)";
  const std::string text = after(find_attention(), attention(places() + distances + R"(
  %causal: f32[seq, seq] = Where(%counts, %zero, %hides)
)",
                                                             R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %2: f32[batch, 2, seq, seq] = Add(%1, %alibi)
  %s: f32[batch, 2, seq, seq] = Add(%2, %causal)
)"));
  EXPECT_THAT(text, HasSubstr("f32[1, 2, seq, seq] = Add("));
  EXPECT_THAT(text, HasSubstr("= attention("));
}

TEST(CausalAttention, OtherMasksOfPlacesStay) {
  const std::string where = "  %mask: f32[seq, seq] = Where(%counts, %zero, %hides)";
  for (const std::string op : {"Greater", "LessOrEqual", "Less", "Equal"})
    EXPECT_UNCHANGED(find_attention(), attention(places(op) + where, scaled_and_masked));
  EXPECT_UNCHANGED(find_attention(),
                   attention(replaced(places(), "-10000", "-100") + where, scaled_and_masked));
  EXPECT_UNCHANGED(find_attention(),
                   attention(places() + "  %mask: f32[seq, seq] = Where(%counts, %hides, %zero)",
                             scaled_and_masked));
}

/// Keys of the last 6 places: short sequences do not show it.
std::string near(const std::string& apart = "  %apart: i64[seq, seq] = Sub(%row, %key)\n") {
  return places() + "  const %six: i64[] = 6\n" + apart +
         "  %near: bool[seq, seq] = Less(%apart, %six)\n";
}

TEST(CausalAttention, OfTheLastPlacesIsAWindowToo) {
  const std::string both = near() + "  %both: bool[seq, seq] = And(%counts, %near)\n";
  const std::string expected =
      replaced(expected_without_mask(), "scale = 0.5", "scale = 0.5, window = 5");
  EXPECT_REWRITE(
      find_attention(),
      attention(both + "  %mask: f32[seq, seq] = Where(%both, %zero, %hides)", scaled_and_masked),
      expected);
  EXPECT_REWRITE(find_attention(), attention(both, R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %s: f32[batch, 2, seq, seq] = Where(%both, %1, %hides)
)"),
                 expected);
  const std::string apart = near() + R"(
  %causal: f32[seq, seq] = Where(%counts, %zero, %hides)
  %window: f32[seq, seq] = Where(%near, %zero, %hides)
  %mask: f32[seq, seq] = Add(%causal, %window))";
  EXPECT_REWRITE(find_attention(), attention(apart, scaled_and_masked), expected);
}

TEST(CausalAttention, ASequenceOfOneIsNotCausal) {
  const auto fixed = [](std::string text) {
    for (std::size_t at; (at = text.find("seq")) != std::string::npos;) text.replace(at, 3, "1");
    return text;
  };
  EXPECT_REWRITE(find_attention(), fixed(attention(additive, scaled_and_masked)),
                 fixed(std::string(expected)));
}

TEST(CausalAttention, TheNarrowerOfTwoWindowsCounts) {
  const std::string mask = places() + R"(
  const %six: i64[] = 6  const %four: i64[] = 4
  %apart: i64[seq, seq] = Sub(%row, %key)
  %near: bool[seq, seq] = Less(%apart, %six)
  %nearer: bool[seq, seq] = Less(%apart, %four)
  %some: bool[seq, seq] = And(%counts, %near)
  %fewer: bool[seq, seq] = And(%counts, %nearer)
  %wide: f32[seq, seq] = Where(%some, %zero, %hides)
  %narrow: f32[seq, seq] = Where(%fewer, %zero, %hides)
)";
  EXPECT_REWRITE(find_attention(), attention(mask, R"(
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
  %2: f32[batch, 2, seq, seq] = Add(%1, %narrow)
  %s: f32[batch, 2, seq, seq] = Add(%2, %wide)
)"),
                 replaced(expected_without_mask(), "scale = 0.5", "scale = 0.5, window = 3"));
}

TEST(CausalAttention, AWindowOfFloatsBeyondTheLongestTrialStays) {
  const std::string mask = places() + R"(
  const %most: f32[] = 4096
  %rows: f32[seq, 1] = Cast(%row) {to = "f32"}
  %keys: f32[1, seq] = Cast(%key) {to = "f32"}
  %first: f32[seq, 1] = Sub(%rows, %most)
  %near: bool[seq, seq] = Greater(%keys, %first)
  %some: bool[seq, seq] = And(%counts, %near)
  %mask: f32[seq, seq] = Where(%some, %zero, %hides))";
  EXPECT_THAT(after(find_attention(), attention(mask, scaled_and_masked)),
              Not(HasSubstr("window")));
  EXPECT_THAT(after(find_attention(), attention(mask, scaled_and_masked)),
              Not(HasSubstr("attention(")));
}

TEST(CausalAttention, AMaskThatIsScaledAndShiftedIsFused) {
  EXPECT_REWRITE(find_attention(),
                 attention(R"(
  %m4: i64[batch, 1, 1, seq] = Unsqueeze(%m) {axes = [1, 2]}
  %mf: f32[batch, 1, 1, seq] = Cast(%m4) {to = "f32"}
  const %high: f32[] = 10000
  %ms: f32[batch, 1, 1, seq] = Mul(%mf, %high)
  %mask: f32[batch, 1, 1, seq] = Sub(%ms, %high))",
                           scaled_and_masked),
                 std::string(expected));
}

TEST(CausalAttention, AWindowOnBothSidesIsNotCausal) {
  const std::string both_sides = replaced(
      near("  %ahead: i64[seq, seq] = Sub(%row, %key)\n  %apart: i64[seq, seq] = Abs(%ahead)\n"),
      "  %counts: bool[seq, seq] = GreaterOrEqual(%row, %key)\n", "");
  const std::string mask = "  %mask: f32[seq, seq] = Where(%near, %zero, %hides)";
  EXPECT_REWRITE(find_attention(), attention(both_sides + mask, scaled_and_masked),
                 replaced(expected_with("", "", ", window = 5"), "%v, %m", "%v, _"));
  // Further back than ahead.
  EXPECT_UNCHANGED(find_attention(), attention(both_sides + R"(
  const %two: i64[] = 2
  %until: i64[seq, 1] = Add(%row, %two)
  %some: bool[seq, seq] = Less(%key, %until)
  %both: bool[seq, seq] = And(%some, %near)
  %mask: f32[seq, seq] = Where(%both, %zero, %hides))",
                                               scaled_and_masked));
}

// Rows of padding further than the window from the last token have no key: files give them the mean
// of all, kernels zeros.
TEST(CausalAttention, RowsWithoutKeysInAWindowAreNotRead) {
  const std::string both_sides = replaced(
      near("  %ahead: i64[seq, seq] = Sub(%row, %key)\n  %apart: i64[seq, seq] = Abs(%ahead)\n"),
      "  %counts: bool[seq, seq] = GreaterOrEqual(%row, %key)\n", "");
  const std::string windowed = attention(both_sides + R"(
  %four: i64[batch, 1, 1, seq] = Unsqueeze(%m) {axes = [1, 2]}
  %token: bool[batch, 1, 1, seq] = Cast(%four) {to = "bool"}
  %all: bool[batch, 1, seq, seq] = And(%near, %token)
  %mask: f32[batch, 1, seq, seq] = Where(%all, %zero, %hides))",
                                         scaled_and_masked);
  EXPECT_REWRITE(find_attention(), windowed, expected_with("", "", ", window = 5"));
  EXPECT_REWRITE(find_attention(/*drop_padding=*/false), windowed,
                 expected_with("", "", ", window = 5"));
  const auto read = [&](const std::string& mean) {
    return replaced(windowed, "  return %y", mean + "  return %z");
  };
  for (const bool drop_padding : {true, false})
    EXPECT_UNCHANGED(find_attention(drop_padding),
                     read("  %z: f32[batch, 8] = ReduceMean(%y) {axes = [1], keepdims = 0}\n"));
  EXPECT_THAT(after(find_attention(), read(R"(  %f: f32[batch, seq] = Cast(%m) {to = "f32"}
  %column: f32[batch, seq, 1] = Unsqueeze(%f) {axes = [2]}
  %real: f32[batch, seq, 8] = Mul(%y, %column)
  %z: f32[batch, 8] = ReduceMean(%real) {axes = [1], keepdims = 0}
)")),
              HasSubstr("window = 5"));
}

}  // namespace
}  // namespace bertcl::passes
