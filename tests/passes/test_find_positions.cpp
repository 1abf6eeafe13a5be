// SPDX-License-Identifier: Apache-2.0
// Positions that are counted.
#include "check.hpp"

namespace bertcl::passes {

Pass find_positions();
namespace {

// What torch wrote around 2019: the end of the slice is clamped in float.
TEST(FindPositions, ASliceWhoseEndIsComputedInFloatCounts) {
  EXPECT_REWRITE(find_positions(), R"(graph g(%input_ids: i64[batch, seq]) {
  %shape: i64[2] = sizes() {values = "[batch, seq]"}
  %f: f32[2] = Cast(%shape) {to = "f32"}
  const %most: f32[2] = [1, 8]
  %least: f32[2] = Min(%f, %most)
  %end: i64[2] = Cast(%least) {to = "i64"}
  const %counted: i64[1, 8] = [0, 1, 2, 3, 4, 5, 6, 7]  const %start: i64[2] = [0, 0]
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

}  // namespace
}  // namespace bertcl::passes
