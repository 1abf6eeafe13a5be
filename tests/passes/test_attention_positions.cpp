// SPDX-License-Identifier: Apache-2.0
// Scores of relative positions that find_attention takes off those of attention.
#include "attention_graphs.hpp"
#include "check.hpp"

namespace bertcl::passes {
namespace {

/// DeBERTa's: gathered from the products of queries, and of keys, with a table for each.
constexpr std::string_view positions = R"(
  const %pq: f32[2, 4, 9] = ...
  const %pk: f32[2, 4, 9] = ...  const %root: f32[] = 2
  const %most: i64[] = 4
  %i: i64[seq] = Range() {start = 0, step = 1}
  %column: i64[seq, 1] = Unsqueeze(%i) {axes = [1]}
  %apart: i64[seq, seq] = Sub(%column, %i)
  %near: i64[seq, seq] = Min(%apart, %most)
  %index: i64[1, 1, seq, seq] = Unsqueeze(%near) {axes = [0, 1]}
)";
constexpr std::string_view gathered = R"(
  %repeated: i64[batch, 2, seq, seq] = Expand(%index)
  %cq: f32[batch, 2, seq, 9] = MatMul(%qt, %pq)
  %cg: f32[batch, 2, seq, seq] = GatherElements(%cq, %repeated) {axis = 3}
  %cs: f32[batch, 2, seq, seq] = Div(%cg, %root)
  %kh: f32[batch, 2, seq, 4] = Transpose(%kr) {perm = [0, 2, 1, 3]}
  %ck: f32[batch, 2, seq, 9] = MatMul(%kh, %pk)
  %kg: f32[batch, 2, seq, seq] = GatherElements(%ck, %repeated) {axis = -1}
  %kg2: f32[batch, 2, seq, seq] = Transpose(%kg) {perm = [0, 1, 3, 2]}
  %d: f32[batch, 2, seq, seq] = Div(%kg2, %root)
  const %scale: f32[] = 2
  %1: f32[batch, 2, seq, seq] = Div(%0, %scale)
)";

TEST(AttentionPositions, ScoresOfPositions) {
  const std::string expected = expected_with(
      std::string(positions) + R"(  %small: i32[1, 1, seq, seq] = Cast(%index) {to = "i32"}
  %first: f32[batch, 2, seq, seq] = position_scores(%q, %pq, %small) {heads = 2, scale = 0.5}
  %bias: f32[batch, 2, seq, seq] = position_scores(%k, %pk, %small, %first) {heads = 2, of_keys = 1, scale = 0.5}
)",
      ", _, _, _, _, %bias", "");
  for (const char* sum : {R"(  %2: f32[batch, 2, seq, seq] = Add(%cs, %d)
  %3: f32[batch, 2, seq, seq] = Add(%1, %2)
)",
                          R"(  %2: f32[batch, 2, seq, seq] = Add(%1, %d)
  %3: f32[batch, 2, seq, seq] = Add(%2, %cs)
)"})
    EXPECT_REWRITE(
        find_attention(),
        attention(std::string(additive) + std::string(positions),
                  std::string(gathered) + sum + "  %s: f32[batch, 2, seq, seq] = Add(%3, %mask)\n"),
        expected);
}

TEST(AttentionPositions, BytesOfTokensAndPositions) {
  const auto with_bytes = [](std::string text) {
    text = replaced(text, "%q: f32[batch, seq, 8], %v: f32[", "%qb: u8[batch, seq, 8], %vb: u8[");
    text = replaced(text, "  %k: f32[batch, seq, 8] = Neg(%q)\n", "");
    return replaced(text, "  const %pq: f32[2, 4, 9] = ...\n", R"(  const %step: f32[] = 0.5
  const %zero: u8[] = 3  const %pb: i8[2, 4, 9] = ...  const %fine: f32[] = 0.25
  const %one_less: i8[] = -1  const %ps: f32[] = 0.004  const %pz: u8[] = 0
  %q: f32[batch, seq, 8] = DequantizeLinear(%qb, %step, %zero)
  %k: f32[batch, seq, 8] = DequantizeLinear(%qb, %step, %zero)
  %v: f32[batch, seq, 8] = DequantizeLinear(%vb, %step, %zero)
)");
  };
  const std::string tables(positions), scores = std::string(gathered) + R"(
  %2: f32[batch, 2, seq, seq] = Add(%cs, %d)
  %3: f32[batch, 2, seq, seq] = Add(%1, %2)
  %s: f32[batch, 2, seq, seq] = Add(%3, %mask)
)";
  const std::string text = with_bytes(attention(std::string(additive) + tables, scores, "%pd", R"(
  %pu: u8[batch, 2, seq, seq] = QuantizeLinear(%p, %ps, %pz)
  %pd: f32[batch, 2, seq, seq] = DequantizeLinear(%pu, %ps, %pz)
)"));
  EXPECT_REWRITE(find_attention(),
                 replaced(text, "  %cq: ",
                          "  %pq: f32[2, 4, 9] = DequantizeLinear(%pb, %fine, %one_less)\n  %cq: "),
                 replaced(with_bytes(expected_with(
                              tables + R"(  %small: i32[1, 1, seq, seq] = Cast(%index) {to = "i32"}
  %first: f32[batch, 2, seq, seq] = position_scores(%qb, %pb, %small, _, %step, %zero, _, %fine, %one_less) {heads = 2, scale = 0.5}
  %bias: f32[batch, 2, seq, seq] = position_scores(%qb, %pk, %small, %first, %step, %zero) {heads = 2, of_keys = 1, scale = 0.5}
)",
                              ", %ps, %pz, _, _, %bias", "")),
                          R"(p_type = "f32")", R"(p_type = "u8")"));
}

/// The scores with both terms, and another one.
std::string with_third(const std::string& before, std::string_view third) {
  return attention(std::string(additive) + before, std::string(gathered) + R"(
  %2: f32[batch, 2, seq, seq] = Add(%1, %cs)
  %3: f32[batch, 2, seq, seq] = Add(%2, %d)
  %4: f32[batch, 2, seq, seq] = Add(%3, )" + std::string(third) +
                                                       R"()
  %s: f32[batch, 2, seq, seq] = Add(%4, %mask)
)");
}

TEST(AttentionPositions, ATermOfOneHeadStays) {
  const std::string one_head = R"(
  const %narrow: f32[8, 4] = ...  const %p1: f32[1, 4, 9] = ...
  %n: f32[batch, seq, 4] = MatMul(%q, %narrow)
  %nr: f32[batch, seq, 1, 4] = Reshape(%n)
  %nt: f32[batch, 1, seq, 4] = Transpose(%nr) {perm = [0, 2, 1, 3]}
  %np: f32[batch, 1, seq, 9] = MatMul(%nt, %p1)
  %once: i64[batch, 1, seq, seq] = Expand(%index)
  %ng: f32[batch, 1, seq, seq] = GatherElements(%np, %once) {axis = 3}
)";
  EXPECT_UNCHANGED(find_attention(), with_third(std::string(positions) + one_head, "%ng"));
}

TEST(AttentionPositions, ABiasBesidesThemStays) {
  EXPECT_UNCHANGED(find_attention(), with_third(std::string(positions) + R"(
  %bias: f32[1, 1, seq, seq] = Cast(%index) {to = "f32"}
)",
                                                "%bias"));
}

TEST(AttentionPositions, PlacesThatDependOnAnInputStay) {
  const std::string given = replaced(positions, "Min(%apart, %most)", "Min(%apart, %length)");
  EXPECT_UNCHANGED(
      find_attention(),
      attention(std::string(additive) + "  %length: i64[] = ReduceSum(%m) {keepdims = 0}\n" + given,
                std::string(gathered) + R"(
  %2: f32[batch, 2, seq, seq] = Add(%1, %cs)
  %3: f32[batch, 2, seq, seq] = Add(%2, %d)
  %s: f32[batch, 2, seq, seq] = Add(%3, %mask)
)"));
}

TEST(AttentionPositions, PositionsThatAreNotOfTheseHeadsStay) {
  const auto unchanged = [](std::string_view from, std::string_view to) {
    const std::string text = attention(
        std::string(additive) + std::string(positions),
        replaced(gathered, from, to) +
            "  %2: f32[batch, 2, seq, seq] = Add(%1, %cs)\n  %3: f32[batch, 2, seq, seq] = "
            "Add(%2, %d)\n  %s: f32[batch, 2, seq, seq] = Add(%3, %mask)\n");
    EXPECT_UNCHANGED(find_attention(), text);
  };
  unchanged("GatherElements(%cq, %repeated) {axis = 3}",
            "GatherElements(%cq, %repeated) {axis = 2}");
  unchanged("Transpose(%kg) {perm = [0, 1, 3, 2]}", "Relu(%kg)");
  unchanged("MatMul(%qt, %pq)", "MatMul(%0, %0)");
}

}  // namespace
}  // namespace bertcl::passes
