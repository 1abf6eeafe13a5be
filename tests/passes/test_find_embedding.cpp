// SPDX-License-Identifier: Apache-2.0
// Sums of embedding tables and their norm.
#include <fmt/format.h>

#include "check.hpp"

namespace bertcl::passes {

Pass find_embedding();
namespace {

TEST(FindEmbedding, ThreeTablesWithPositionsBySlice) {
  EXPECT_DIFF(find_embedding(),
              R"(graph g(%input_ids: i64[batch, seq], %token_type_ids: i64[batch, seq]) {
  const %word: f32[100, 8] = ...
- %w: f32[batch, seq, 8] = Gather(%word, %input_ids) {axis = 0}
  const %type: f32[2, 8] = ...
- %t: f32[batch, seq, 8] = Gather(%type, %token_type_ids) {axis = 0}
- %a: f32[batch, seq, 8] = Add(%w, %t)
- %r: i64[seq] = Range() {start = 0, step = 1}
- %r2: i64[1, seq] = Unsqueeze(%r) {axes = [0]}
  const %position: f32[32, 8] = ...
- %p: f32[1, seq, 8] = Gather(%position, %r2) {axis = 0}
- %b: f32[batch, seq, 8] = Add(%p, %a)
  const %gamma: f32[8] = ...  const %beta: f32[8] = ...
- %y: f32[batch, seq, 8] = LayerNormalization(%b, %gamma, %beta) {axis = -1, epsilon = 0.5}
+ %y: f32[batch, seq, 8] = embed_norm(%input_ids, %token_type_ids, _, %word, %type, %position, %gamma, %beta) {epsilon = 0.5}
  return %y as y
})");
}

TEST(FindEmbedding, PositionsThatCountFromTwoAreNotTakenForPositions) {
  EXPECT_UNCHANGED(find_embedding(), R"(graph g(%input_ids: i64[batch, seq]) {
  const %word: f32[100, 8] = ...
  %w: f32[batch, seq, 8] = Gather(%word, %input_ids) {axis = 0}
  %r: i64[seq] = Range() {start = 2, step = 1}
  const %position: f32[32, 8] = ...
  %p: f32[seq, 8] = Gather(%position, %r) {axis = 0}
  %b: f32[batch, seq, 8] = Add(%w, %p)
  const %gamma: f32[8] = ...  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = LayerNormalization(%b, %gamma, %beta) {axis = -1, epsilon = 0.5}
  return %y as y
})");
}

constexpr std::string_view positions_of_the_caller =
    R"(graph g(%input_ids: i64[batch, seq], %position_ids: i64[{}, seq]) {{
  const %word: f32[100, 8] = ...
  %w: f32[batch, seq, 8] = Gather(%word, %input_ids) {{axis = 0}}
  const %position: f32[32, 8] = ...
  %p: f32[{}, seq, 8] = Gather(%position, %position_ids) {{axis = 0}}
  %b: f32[batch, seq, 8] = Add(%w, %p)
  const %gamma: f32[8] = ...  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = LayerNormalization(%b, %gamma, %beta) {{axis = -1, epsilon = 0.5}}
  return %y as y
}})";

TEST(FindEmbedding, PositionsOfTheCallerAreAnOperand) {
  EXPECT_REWRITE(find_embedding(), fmt::format(positions_of_the_caller, "batch", "batch"),
                 R"(graph g(%input_ids: i64[batch, seq], %position_ids: i64[batch, seq]) {
  const %word: f32[100, 8] = ...  const %position: f32[32, 8] = ...  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = embed_norm(%input_ids, _, %position_ids, %word, _, %position, %gamma, %beta) {epsilon = 0.5}
  return %y as y
})");
}

TEST(FindEmbedding, PositionsOfAnotherShapeThanTheIdsStayOutside) {
  const std::string one_row = fmt::format(positions_of_the_caller, "1", "1");
  EXPECT_UNCHANGED(find_embedding(), one_row);
}

/// Words and a term %p, in a sum of that many rows.
std::string words_and(std::string_view term, std::string_view ids = "[batch, seq]",
                      std::string_view sum = "[batch, seq, 8]") {
  return fmt::format(R"(graph g(%input_ids: i64{1}, %token_type_ids: i64[1, seq]) {{
  const %word: f32[100, 8] = ...  const %gamma: f32[8] = ...
  %w: f32{2} = Gather(%word, %input_ids) {{axis = 0}}
{0}
  %b: f32{2} = Add(%w, %p)
  %y: f32{2} = LayerNormalization(%b, %gamma) {{axis = -1, epsilon = 0.5}}
  return %y as y
}})",
                     term, ids, sum);
}

/// Positions as the rows of a table from `start` up to `end`, which follows from %seq.
std::string positions_by_slice(int start, std::string_view end, int step = 1) {
  return words_and(fmt::format(R"(  const %position: f32[1, 32, 8] = ...
  const %start: i64[1] = [{}]  const %axis: i64[1] = [1]  const %step: i64[1] = [{}]
  const %two: i64[1] = [2]  const %one: i64[1] = [1]
  %seq: i64[1] = sizes() {{values = "[seq]"}}
  %end: i64[1] = {}
  %p: f32[1, rows, 8] = Slice(%position, %start, %end, %axis, %step))",
                               start, step, end));
}

TEST(FindEmbedding, RowsOfPositionsFromAConstantOneOn) {
  const auto fused = [](const std::string& text) {
    return after(find_embedding(), text).find("embed_norm") != std::string::npos;
  };
  EXPECT_TRUE(fused(positions_by_slice(0, "Identity(%seq)")));
  EXPECT_FALSE(fused(positions_by_slice(0, "Mul(%seq, %two)", 2)));
  EXPECT_FALSE(fused(positions_by_slice(0, "Identity(%one)"))) << "the same for all";
  const std::string offset = positions_by_slice(2, "Add(%seq, %two)");
  EXPECT_THAT(after(find_embedding(), offset), HasSubstr("f32[30, 8]"));
}

TEST(FindEmbedding, PositionsHaveAsManyRowsAsTheIds) {
  EXPECT_UNCHANGED(find_embedding(), words_and(R"(  const %position: f32[32, 8] = ...
  const %first: i64[1] = [0]
  %p: f32[1, 8] = Gather(%position, %first) {axis = 0})"));
}

TEST(FindEmbedding, IdsOfOneSequenceAloneAreNotPacked) {
  EXPECT_UNCHANGED(find_embedding(), words_and(R"(  const %position: f32[32, 8] = ...
  %r: i64[seq] = Range() {start = 0, step = 1}
  %p: f32[seq, 8] = Gather(%position, %r) {axis = 0})",
                                               "[seq]", "[seq, 8]"));
}

TEST(FindEmbedding, ConstantRowsOfAFixedSequenceAreThePositionTable) {
  EXPECT_REWRITE(find_embedding(),
                 words_and("  const %p: f32[1, 6, 8] = ...", "[1, 6]", "[1, 6, 8]"),
                 R"(graph g(%input_ids: i64[1, 6], %token_type_ids: i64[1, seq]) {
  const %word: f32[100, 8] = ...  const %position_table: f32[6, 8] = ...  const %gamma: f32[8] = ...
  %y: f32[1, 6, 8] = embed_norm(%input_ids, _, _, %word, _, %position_table, %gamma, _) {epsilon = 0.5}
  return %y as y
})");
}

TEST(FindEmbedding, TokenTypesHaveTheShapeOfTheIdsAndTheirTableItsColumns) {
  const std::string positions = R"(  const %position: f32[32, 8] = ...
  %r: i64[seq] = Range() {start = 0, step = 1}
  %p0: f32[seq, 8] = Gather(%position, %r) {axis = 0}
)";
  EXPECT_UNCHANGED(find_embedding(), words_and(positions + R"(  const %type: f32[2, 8] = ...
  %t: f32[1, seq, 8] = Gather(%type, %token_type_ids) {axis = 0}
  %p: f32[1, seq, 8] = Add(%t, %p0))"));
  EXPECT_UNCHANGED(find_embedding(), words_and(positions + R"(  const %k: f32[1] = [0.5]
  %p: f32[seq, 8] = Add(%p0, %k))"));
}

TEST(FindEmbedding, ACastThatMayChangeAnIndexIsNotLeftOut) {
  const auto by_casts = [](std::string_view type, std::string_view casts) {
    return fmt::format(R"(graph g(%input_ids: i64[batch, seq], %token_type_ids: {}[batch, seq]) {{
  const %word: f32[400, 8] = ...
  %w: f32[batch, seq, 8] = Gather(%word, %input_ids) {{axis = 0}}
  const %type: f32[5, 8] = ...
{}
  %t: f32[batch, seq, 8] = Gather(%type, %index) {{axis = 0}}
  %r: i64[seq] = Range() {{start = 0, step = 1}}
  const %position: f32[32, 8] = ...
  %p: f32[seq, 8] = Gather(%position, %r) {{axis = 0}}
  %a: f32[batch, seq, 8] = Add(%w, %t)
  %b: f32[batch, seq, 8] = Add(%a, %p)
  const %gamma: f32[8] = ...
  %y: f32[batch, seq, 8] = LayerNormalization(%b, %gamma) {{axis = -1, epsilon = 0.5}}
  return %y as y
}})",
                       type, casts);
  };
  const auto through = [&](std::string_view between) {
    return by_casts(
        "i64", fmt::format("  %cast: {0}[batch, seq] = Cast(%token_type_ids) {{to = \"{0}\"}}\n"
                           "  %index: i64[batch, seq] = Cast(%cast) {{to = \"i64\"}}",
                           between));
  };
  const std::string widened = "  %index: i64[batch, seq] = Cast(%token_type_ids) {to = \"i64\"}";
  for (const std::string& text :
       {through("i32"), by_casts("i32", widened), by_casts("u8", widened)})
    EXPECT_THAT(after(find_embedding(), text), HasSubstr("embed_norm")) << text;
  EXPECT_UNCHANGED(find_embedding(), through("bool"));
  EXPECT_UNCHANGED(find_embedding(), through("u8"));
  EXPECT_UNCHANGED(find_embedding(), by_casts("bool", widened));
}

TEST(FindEmbedding, ASecondEmbeddingStays) {
  constexpr std::string_view graph =
      R"(graph g(%input_ids: i64[batch, seq], %ids_b: i64[batch, seq]) {{
  const %word: f32[100, 8] = ...  const %position: f32[32, 8] = ...  const %gamma: f32[8] = ...
{}  %v: f32[batch, seq, 8] = Gather(%word, %ids_b) {{axis = 0}}
  %r: i64[seq] = Range() {{start = 0, step = 1}}
  %q: f32[seq, 8] = Gather(%position, %r) {{axis = 0}}
  %c: f32[batch, seq, 8] = Add(%v, %q)
  %z: f32[batch, seq, 8] = LayerNormalization(%c, %gamma) {{axis = -1, epsilon = 0.5}}
  return %y as y, %z as z
}})";
  EXPECT_REWRITE(
      find_embedding(),
      fmt::format(graph, R"(  %w: f32[batch, seq, 8] = Gather(%word, %input_ids) {axis = 0}
  %s: i64[seq] = Range() {start = 0, step = 1}
  %p: f32[seq, 8] = Gather(%position, %s) {axis = 0}
  %b: f32[batch, seq, 8] = Add(%w, %p)
  %y: f32[batch, seq, 8] = LayerNormalization(%b, %gamma) {axis = -1, epsilon = 0.5}
)"),
      fmt::format(
          graph,
          "  %y: f32[batch, seq, 8] = embed_norm(%input_ids, _, _, %word, _, %position, %gamma, _)"
          " {epsilon = 0.5}\n"));
}

constexpr std::string_view words_and_positions = R"(  const %word: f32[100, 8] = ...
  %w: f32[batch, seq, 8] = Gather(%word, %input_ids) {axis = 0}
  %r: i64[seq] = Range() {start = 0, step = 1}
  const %position: f32[32, 8] = ...
  %p: f32[seq, 8] = Gather(%position, %r) {axis = 0}
  %b: f32[batch, seq, 8] = Add(%w, %p)
  const %gamma: f32[8] = ...
  %y: f32[batch, seq, 8] = LayerNormalization(%b, %gamma) {axis = -1, epsilon = 0.5}
)";

TEST(FindEmbedding, IdsOfOtherRowsThanThoseOfAttentionStayOutside) {
  const auto with_attention = [](std::string_view rows) {
    return fmt::format(R"(graph g(%input_ids: i64[batch, seq], %x: f32[{0}, 8]) {{
{1}  %a: f32[{0}, 8] = attention(%x, %x, %x, _) {{heads = 2, p_type = "f32", scale = 0.5}}
  return %y as y, %a as a
}})",
                       rows, words_and_positions);
  };
  EXPECT_THAT(after(find_embedding(), with_attention("batch, seq")), HasSubstr("embed_norm"));
  EXPECT_UNCHANGED(find_embedding(), with_attention("batch, k"));
}

TEST(FindEmbedding, IdsThatNoMaskedAttentionReadsStayOutside) {
  const auto with_attention_of = [](std::string_view rows) {
    return fmt::format(
        R"(graph g(%input_ids: i64[batch, seq], %mask: i64[batch, seq], %x: f32[batch, seq, 8]) {{
{1}  %q: f32[batch, seq, 8] = Neg({0})
  %a: f32[batch, seq, 8] = attention(%q, %x, %x, %mask) {{heads = 2, p_type = "f32", scale = 0.5}}
  return %y as y, %a as a
}})",
        rows, words_and_positions);
  };
  EXPECT_THAT(after(find_embedding(), with_attention_of("%y")), HasSubstr("embed_norm"));
  EXPECT_UNCHANGED(find_embedding(), with_attention_of("%x"));
}

}  // namespace
}  // namespace bertcl::passes
