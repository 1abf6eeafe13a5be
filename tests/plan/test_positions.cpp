// SPDX-License-Identifier: Apache-2.0
// Plans of rotary and relative positions.
#include "plans.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::plan {
namespace {

TEST(Positions, TheSequencesOfRotaryLieOnTheAxisThatIsNeverPadded) {
  const Plan plan = plan_of(R"(graph g(%x: f32[tokens, 8], %o: i32[offsets]) {
  const %cos: f32[5, 4] = ...
  %y: f32[tokens, 8] = rotary(%x, %cos, %cos, %o) {heads = 2}
  return %y as y
})");
  ASSERT_EQ(plan.steps.size(), 1u);
  const ir::Bindings sizes{{"$batch", 3}, {"$longest", 5}, {"tokens", 9}, {"offsets", 4}};
  EXPECT_EQ(plan.steps[0].global[0].evaluate(sizes), 1);  // rows of an item on CPUs: 8
  EXPECT_EQ(plan.steps[0].global[1].evaluate(sizes), 1);
  EXPECT_EQ(plan.steps[0].global[2].evaluate(sizes), 3);
}

TEST(Positions, RotaryReadsTheTableOfTheSequence) {
  const auto table_rows = [](const std::string& table) {
    const Plan plan =
        plan_of("graph g(%x: f32[tokens, 8], %o: i32[offsets], %cos: f32[" + table +
                "]) {\n  %y: f32[tokens, 8] = rotary(%x, %cos, %cos, %o) {heads = 2}\n"
                "  return %y as y\n}");
    const auto& arguments = plan.steps.at(0).arguments;
    return std::get<SizeExpr>(arguments.at(arguments.size() - 2))
        .evaluate({{"batch", 3}, {"seq", 5}});
  };
  EXPECT_EQ(table_rows("batch, 1, seq, 4"), 5);
  EXPECT_EQ(table_rows("1, 1, seq, 4"), 0);
  EXPECT_EQ(table_rows("seq, 4"), 0);
}

TEST(Positions, RotaryPositionsOutsideOfPackedTokensAreRefused) {
  EXPECT_THAT(refusal(R"(graph g(%x: f32[batch, seq, 8]) {
  const %cos: f32[5, 4] = ...
  %y: f32[batch, seq, 8] = rotary(%x, %cos, %cos) {heads = 2}
  return %y as y
})"),
              HasSubstr("rotary (result 'y'): rotary positions need packed tokens; keep the pass "
                        "pack_tokens enabled"));
}

TEST(Positions, ScoresOfPositionsTakePanelsAndPackedTokens) {
  const std::string text = R"(graph g(%x: f32[$tokens, 8], %o: i32[offsets], %i: i32[1, seq, seq]) {
  const %p: f32[2, 4, 33] = ...
  %y: f32[2, $tokens, $longest] = position_scores(%x, %p, %i, _, _, _, %o) {heads = 2, scale = 0.5}
  return %y as y
})";
  const Plan plan = plan_of(text);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_EQ(plan.steps[0].variant, "x86");
  const ir::Bindings sizes{
      {"$batch", 3}, {"$longest", 50}, {"$attention_rows", 32}, {"$tokens", 90}, {"offsets", 4}};
  EXPECT_EQ(plan.steps[0].global[0].evaluate(sizes), 2);
  EXPECT_EQ(plan.steps[0].global[1].evaluate(sizes), 2);
  EXPECT_EQ(plan.steps[0].global[2].evaluate(sizes), 3);
  EXPECT_EQ(plan.steps[0].operations_per_unit, 2 * 4 * 2) << "two heads of four columns";
  EXPECT_EQ(plan.steps[0].work_units.evaluate(sizes), 90 * 50);
  EXPECT_EQ(plan.steps[0].why_not_faster, "") << "a kernel for bytes is no faster one of floats";
  const Plan of_bytes =
      plan_of(R"(graph g(%x: u8[$tokens, 8], %o: i32[offsets], %i: i32[1, seq, seq]) {
  const %p: u8[2, 4, 33] = ...  const %step: f32[] = 0.5  const %zero: u8[] = 3
  %y: f32[2, $tokens, $longest] = position_scores(%x, %p, %i, _, %step, %zero, %o, %step, %zero) {heads = 2, scale = 0.5}
  return %y as y
})");
  ASSERT_EQ(of_bytes.steps.size(), 1u);
  const bool vnni = device()->capabilities().avx512_vnni;
  EXPECT_EQ(of_bytes.steps[0].variant, vnni ? "x86_vnni" : "x86");
  EXPECT_THAT(refusal(R"(graph g(%x: f32[$tokens, 8], %o: i32[offsets], %i: i32[1, seq, seq]) {
  const %bytes: u8[2, 4, 33] = ...  const %step: f32[] = 0.5
  %p: f32[2, 4, 33] = DequantizeLinear(%bytes, %step)
  %y: f32[2, $tokens, $longest] = position_scores(%x, %p, %i, _, _, _, %o) {heads = 2, scale = 0.5}
  return %y as y
})"),
              HasSubstr("its positions are not constant; keep the pass fold_dequantize enabled"));
  EXPECT_THAT(
      refusal(R"(graph g(%x: f32[batch, seq, 8], %i: i32[1, seq, seq]) {
  const %p: f32[2, 4, 33] = ...
  %y: f32[batch, 2, seq, seq] = position_scores(%x, %p, %i) {heads = 2, scale = 0.5}
  return %y as y
})"),
      HasSubstr("position_scores (result 'y'): scores of positions need packed tokens; keep "
                "the pass pack_tokens enabled"));
}

}  // namespace
}  // namespace bertcl::plan
