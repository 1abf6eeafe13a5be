// SPDX-License-Identifier: Apache-2.0
// Sums of embedding tables and their norm.
#include <fmt/format.h>

#include "check.hpp"

namespace bertcl::passes {

Pass find_embedding();
namespace {

TEST(FindEmbedding, ThreeTablesWithPositionsBySlice) {
  EXPECT_REWRITE(find_embedding(),
                 R"(graph g(%input_ids: i64[batch, seq], %token_type_ids: i64[batch, seq]) {
  const %word: f32[100, 8] = ...
  %w: f32[batch, seq, 8] = Gather(%word, %input_ids) {axis = 0}
  const %type: f32[2, 8] = ...
  %t: f32[batch, seq, 8] = Gather(%type, %token_type_ids) {axis = 0}
  %a: f32[batch, seq, 8] = Add(%w, %t)
  %r: i64[seq] = Range() {start = 0, step = 1}
  %r2: i64[1, seq] = Unsqueeze(%r) {axes = [0]}
  const %position: f32[32, 8] = ...
  %p: f32[1, seq, 8] = Gather(%position, %r2) {axis = 0}
  %b: f32[batch, seq, 8] = Add(%p, %a)
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = LayerNormalization(%b, %gamma, %beta) {axis = -1, epsilon = 0.5}
  return %y as y
})",
                 R"(graph g(%input_ids: i64[batch, seq], %token_type_ids: i64[batch, seq]) {
  const %word: f32[100, 8] = ...
  const %type: f32[2, 8] = ...
  const %position: f32[32, 8] = ...
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = embed_norm(%input_ids, %token_type_ids, _, %word, %type, %position, %gamma, %beta) {epsilon = 0.5}
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
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
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
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = LayerNormalization(%b, %gamma, %beta) {{axis = -1, epsilon = 0.5}}
  return %y as y
}})";

TEST(FindEmbedding, PositionsOfTheCallerAreAnOperand) {
  EXPECT_REWRITE(find_embedding(), fmt::format(positions_of_the_caller, "batch", "batch"),
                 R"(graph g(%input_ids: i64[batch, seq], %position_ids: i64[batch, seq]) {
  const %word: f32[100, 8] = ...
  const %position: f32[32, 8] = ...
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = embed_norm(%input_ids, _, %position_ids, %word, _, %position, %gamma, %beta) {epsilon = 0.5}
  return %y as y
})");
}

TEST(FindEmbedding, PositionsOfAnotherShapeThanTheIdsStayOutside) {
  const std::string one_row = fmt::format(positions_of_the_caller, "1", "1");
  EXPECT_UNCHANGED(find_embedding(), one_row);
}

}  // namespace
}  // namespace bertcl::passes
