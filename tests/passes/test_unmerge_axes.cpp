// SPDX-License-Identifier: Apache-2.0
// Axes that exporters merge for batched MatMuls: attention keys of torch, scores of DeBERTa.
#include "check.hpp"

namespace bertcl::passes {

Pass unmerge_axes();
namespace {

TEST(UnmergeAxes, TransposeTakesTheLeadingAxesBack) {
  EXPECT_DIFF(unmerge_axes(), R"(graph g(%x: f32[batch, 4, seq, 8]) {
- %a: f32[4*batch, seq, 8] = Reshape(%x)
- %b: f32[4*batch, 8, seq] = Transpose(%a) {perm = [0, 2, 1]}
- %y: f32[batch, 4, 8, seq] = Reshape(%b)
+ %y: f32[batch, 4, 8, seq] = Transpose(%x) {perm = [0, 1, 3, 2]}
  %z: f32[batch, 4, 8, seq] = Neg(%y)
  return %z as z
})");
}

TEST(UnmergeAxes, SharedHeadsAreMergedBeforeTheyAreTransposed) {
  const auto graph = [](const std::string& perm) {
    return R"(graph g(%x: f32[batch, 2, 3, seq, 8]) {
  %t: f32[batch, 2, 3, 8, seq] = Transpose(%x) {perm = [)" +
           perm + R"(]}
  %y: f32[batch, 6, 8, seq] = Reshape(%t)
  return %y as y
})";
  };
  EXPECT_REWRITE(unmerge_axes(), graph("0, 1, 2, 4, 3"), R"(graph g(%x: f32[batch, 2, 3, seq, 8]) {
  %m: f32[batch, 6, seq, 8] = Reshape(%x)
  %y: f32[batch, 6, 8, seq] = Transpose(%m) {perm = [0, 1, 3, 2]}
  return %y as y
})");
  const std::string swapped =
      replaced(graph("0, 2, 1, 4, 3"), "f32[batch, 2, 3, 8, seq]", "f32[batch, 3, 2, 8, seq]");
  EXPECT_UNCHANGED(unmerge_axes(), swapped);
}

TEST(UnmergeAxes, AttentionOnMergedHeads) {
  EXPECT_REWRITE(unmerge_axes(), R"(graph g(%q: f32[batch, 4, seq, 8], %v: f32[batch, 4, seq, 8]) {
  const %c: f32[] = 3  const %s: f32[] = 0.5
  %q3: f32[4*batch, seq, 8] = Reshape(%q)
  %v3: f32[4*batch, seq, 8] = Reshape(%v)
  %b: u8[4*batch, seq, 8] = QuantizeLinear(%v3, %s)
  %d: f32[4*batch, seq, 8] = DequantizeLinear(%b, %s)
  %t: f32[4*batch, 8, seq] = Transpose(%d) {perm = [0, 2, 1]}
  %k: f32[4*batch, 8, seq] = Div(%t, %c)
  %m: f32[4*batch, seq, seq] = MatMul(%q3, %k)
  %a: f32[4*batch, seq, seq] = Add(%m, %m)
  %p: f32[4*batch, seq, seq] = Softmax(%a) {axis = 2}
  %o: f32[4*batch, seq, 8] = MatMul(%p, %v3)
  %y: f32[batch, 4, seq, 8] = Reshape(%o)
  %z: f32[batch, 4, seq, 8] = Neg(%y)
  return %z as z
})",
                 R"(graph g(%q: f32[batch, 4, seq, 8], %v: f32[batch, 4, seq, 8]) {
  const %c: f32[] = 3  const %s: f32[] = 0.5
  %b: u8[batch, 4, seq, 8] = QuantizeLinear(%v, %s)
  %d: f32[batch, 4, seq, 8] = DequantizeLinear(%b, %s)
  %t: f32[batch, 4, 8, seq] = Transpose(%d) {perm = [0, 1, 3, 2]}
  %k: f32[batch, 4, 8, seq] = Div(%t, %c)
  %m: f32[batch, 4, seq, seq] = MatMul(%q, %k)
  %a: f32[batch, 4, seq, seq] = Add(%m, %m)
  %p: f32[batch, 4, seq, seq] = Softmax(%a) {axis = -1}
  %y: f32[batch, 4, seq, 8] = MatMul(%p, %v)
  %z: f32[batch, 4, seq, 8] = Neg(%y)
  return %z as z
})");
}

TEST(UnmergeAxes, IndicesThatEverySequenceHas) {
  EXPECT_REWRITE(unmerge_axes(),
                 R"(graph g(%x: f32[batch, 4, seq, 16], %i: i64[1, seq, seq]) {
  %a: f32[4*batch, seq, 16] = Reshape(%x)
  %e: i64[4*batch, seq, seq] = Expand(%i)
  %g: f32[4*batch, seq, seq] = GatherElements(%a, %e) {axis = 2}
  %y: f32[batch, 4, seq, seq] = Reshape(%g)
  %z: f32[batch, 4, seq, seq] = Neg(%y)
  return %z as z
})",
                 R"(graph g(%x: f32[batch, 4, seq, 16], %i: i64[1, seq, seq]) {
  %0: i64[1, 1, seq, seq] = Reshape(%i)
  %e: i64[batch, 4, seq, seq] = Expand(%0)
  %y: f32[batch, 4, seq, seq] = GatherElements(%x, %e) {axis = -1}
  %z: f32[batch, 4, seq, seq] = Neg(%y)
  return %z as z
})");
}

TEST(UnmergeAxes, IndicesOfSomeSequencesStay) {
  EXPECT_UNCHANGED(unmerge_axes(), R"(graph g(%x: f32[2, 4, 8, 8], %i: i64[1, 8, 8]) {
  %a: f32[8, 8, 8] = Reshape(%x)
  %e: i64[4, 8, 8] = Expand(%i)
  %g: f32[4, 8, 8] = GatherElements(%a, %e) {axis = 2}
  return %g as z
})");
}

TEST(UnmergeAxes, WhatDependsOnTheMergedAxisStays) {
  for (const char* node :
       {"Add(%a, %c)", "Softmax(%a) {axis = 0}", "Transpose(%a) {perm = [1, 0, 2]}",
        "GatherElements(%a, %i) {axis = 2}", "GatherElements(%a, %i) {axis = 1}", "MatMul(%a, %w)"})
    EXPECT_UNCHANGED(unmerge_axes(), std::string(R"(graph g(%x: f32[2, 4, 8, 8]) {
  const %c: f32[8, 1, 1] = ...  const %w: f32[8, 8, 8] = ...  const %i: i64[8, 8, 8] = ...
  %a: f32[8, 8, 8] = Reshape(%x)
  %b: f32[8, 8, 8] = )") + node + R"(
  %y: f32[2, 4, 8, 8] = Reshape(%b)
  return %y as y
})");
}

TEST(UnmergeAxes, OtherReshapesStay) {
  // The second Reshape does not take back what the first merged: it is only moved.
  EXPECT_DIFF(unmerge_axes(), R"(graph g(%x: f32[2, 4, 3, 8]) {
- %a: f32[8, 3, 8] = Reshape(%x)
- %b: f32[8, 8, 3] = Transpose(%a) {perm = [0, 2, 1]}
+ %a: f32[2, 4, 8, 3] = Transpose(%x) {perm = [0, 1, 3, 2]}
+ %b: f32[8, 8, 3] = Reshape(%a)
  %y: f32[4, 2, 8, 3] = Reshape(%b)
  return %y as y
})");
  // The merged axes are others.
  EXPECT_UNCHANGED(unmerge_axes(), R"(graph g(%x: f32[2, 4, 3, 8]) {
  %a: f32[2, 12, 8] = Reshape(%x)
  %b: f32[2, 8, 12] = Transpose(%a) {perm = [0, 2, 1]}
  %y: f32[2, 4, 8, 3] = Reshape(%b)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
