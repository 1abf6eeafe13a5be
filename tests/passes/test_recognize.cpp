// SPDX-License-Identifier: Apache-2.0
// find_positions, find_embedding, find_add_norm and lift_quantize.
#include <fmt/format.h>

#include "check.hpp"

namespace bertcl::passes {
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

// What torch wrote around 2019: the end of the slice is clamped in float.
TEST(FindPositions, ASliceWhoseEndIsComputedInFloatCounts) {
  EXPECT_REWRITE(find_positions(), R"(graph g(%input_ids: i64[batch, seq]) {
  %shape: i64[2] = sizes() {values = "[batch, seq]"}
  %f: f32[2] = Cast(%shape) {to = "f32"}
  const %most: f32[2] = [1, 8]
  %least: f32[2] = Min(%f, %most)
  %end: i64[2] = Cast(%least) {to = "i64"}
  const %counted: i64[1, 8] = [0, 1, 2, 3, 4, 5, 6, 7]
  const %start: i64[2] = [0, 0]
  const %axes: i64[2] = [0, 1]
  %cut: i64[n0, n1] = Slice(%counted, %start, %end, %axes)
  %ids: i64[batch, seq] = Expand(%cut)
  const %position: f32[8, 4] = ...
  %p: f32[batch, seq, 4] = Gather(%position, %ids) {axis = 0}
  return %p as p
})",
                 R"(graph g(%input_ids: i64[batch, seq]) {
  const %position: f32[8, 4] = ...
  %r: i64[seq] = Range() {start = 0, step = 1}
  %ids: i64[batch, seq] = Expand(%r)
  %p: f32[batch, seq, 4] = Gather(%position, %ids) {axis = 0}
  return %p as p
})");
}

TEST(FindPositions, IdsOfTheCallerAndCountedOnesOfKnownSizeStay) {
  EXPECT_UNCHANGED(find_positions(), R"(graph g(%input_ids: i64[batch, seq]) {
  const %word: f32[8, 4] = ...
  %w: f32[batch, seq, 4] = Gather(%word, %input_ids) {axis = 0}
  %r: i64[seq] = Range() {start = 0, step = 1}
  %r2: i64[1, seq] = Unsqueeze(%r) {axes = [0]}
  %p: f32[1, seq, 4] = Gather(%word, %r2) {axis = 0}
  %y: f32[batch, seq, 4] = Add(%w, %p)
  return %y as y
})");
}

TEST(FindAddNorm, ResidualSumAndNorm) {
  EXPECT_REWRITE(find_add_norm(), R"(graph g(%x: f32[batch, seq, 8], %r: f32[batch, seq, 8]) {
  %s: f32[batch, seq, 8] = Add(%x, %r)
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = LayerNormalization(%s, %gamma, %beta) {axis = -1, epsilon = 0.5}
  return %y as y
})",
                 R"(graph g(%x: f32[batch, seq, 8], %r: f32[batch, seq, 8]) {
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, seq, 8] = add_norm(%x, %r, %gamma, %beta) {epsilon = 0.5}
  return %y as y
})");
}

TEST(FindAddNorm, ASumThatIsReadElsewhereTooStaysOutside) {
  EXPECT_REWRITE(find_add_norm(), R"(graph g(%x: f32[batch, 8], %r: f32[batch, 8]) {
  %s: f32[batch, 8] = Add(%x, %r)
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, 8] = LayerNormalization(%s, %gamma, %beta) {axis = 1, epsilon = 0.5}
  return %y as y, %s as s
})",
                 R"(graph g(%x: f32[batch, 8], %r: f32[batch, 8]) {
  %s: f32[batch, 8] = Add(%x, %r)
  const %gamma: f32[8] = ...
  const %beta: f32[8] = ...
  %y: f32[batch, 8] = add_norm(%s, _, %gamma, %beta) {epsilon = 0.5}
  return %y as y, %s as s
})");
}

TEST(LiftQuantize, PairMovesAboveHeadsAndScale) {
  EXPECT_REWRITE(lift_quantize(), R"(graph g(%x: f32[batch, seq, 8]) {
  %r: f32[batch, seq, 2, 4] = Reshape(%x)
  %t: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
  const %c: f32[] = 0.5
  %m: f32[batch, 2, seq, 4] = Mul(%t, %c)
  const %s: f32[] = 0.125
  const %z: u8[] = 7
  %q: u8[batch, 2, seq, 4] = QuantizeLinear(%m, %s, %z)
  %d: f32[batch, 2, seq, 4] = DequantizeLinear(%q, %s, %z)
  return %d as y
})",
                 R"(graph g(%x: f32[batch, seq, 8]) {
  const %s_0: f32[] = 0.25
  const %z: u8[] = 7
  %q: u8[batch, seq, 8] = QuantizeLinear(%x, %s_0, %z)
  %d: f32[batch, seq, 8] = DequantizeLinear(%q, %s_0, %z)
  %r: f32[batch, seq, 2, 4] = Reshape(%d)
  %t: f32[batch, 2, seq, 4] = Transpose(%r) {perm = [0, 2, 1, 3]}
  const %c: f32[] = 0.5
  %m: f32[batch, 2, seq, 4] = Mul(%t, %c)
  return %m as y
})");
}

TEST(LiftQuantize, MergedHeadsStayWhereTheyAre) {
  EXPECT_UNCHANGED(lift_quantize(), R"(graph g(%x: f32[batch, 2, seq, 4]) {
  %t: f32[batch, seq, 2, 4] = Transpose(%x) {perm = [0, 2, 1, 3]}
  %r: f32[batch, seq, 8] = Reshape(%t)
  const %s: f32[] = 0.125
  %q: i8[batch, seq, 8] = QuantizeLinear(%r, %s)
  %d: f32[batch, seq, 8] = DequantizeLinear(%q, %s)
  return %d as y
})");
}

TEST(LiftQuantize, HeadsThatAreMovedAsBytes) {
  EXPECT_REWRITE(lift_quantize(), R"(graph g(%x: f32[batch, 2, seq, 4]) {
  const %s: f32[] = 0.125
  const %z: u8[] = 7
  %q: u8[batch, 2, seq, 4] = QuantizeLinear(%x, %s, %z)
  %t: u8[batch, seq, 2, 4] = Transpose(%q) {perm = [0, 2, 1, 3]}
  %r: u8[batch, seq, 8] = Reshape(%t)
  return %r as y
})",
                 R"(graph g(%x: f32[batch, 2, seq, 4]) {
  const %s: f32[] = 0.125
  const %z: u8[] = 7
  %t: f32[batch, seq, 2, 4] = Transpose(%x) {perm = [0, 2, 1, 3]}
  %r: f32[batch, seq, 8] = Reshape(%t)
  %q: u8[batch, seq, 8] = QuantizeLinear(%r, %s, %z)
  return %q as y
})");
}

}  // namespace
}  // namespace bertcl::passes
