// SPDX-License-Identifier: Apache-2.0
// Matrix transposes on merged axes, as torch's exporter writes those of attention keys.
#include "check.hpp"

namespace bertcl::passes {

Pass unmerge_transpose();
namespace {

TEST(UnmergeTranspose, TakesTheLeadingAxesBack) {
  EXPECT_REWRITE(unmerge_transpose(), R"(graph g(%x: f32[batch, 4, seq, 8]) {
  %a: f32[4*batch, seq, 8] = Reshape(%x)
  %b: f32[4*batch, 8, seq] = Transpose(%a) {perm = [0, 2, 1]}
  %y: f32[batch, 4, 8, seq] = Reshape(%b)
  return %y as y
})",
                 R"(graph g(%x: f32[batch, 4, seq, 8]) {
  %y: f32[batch, 4, 8, seq] = Transpose(%x) {perm = [0, 1, 3, 2]}
  return %y as y
})");
}

TEST(UnmergeTranspose, LeavesOtherReshapesAlone) {
  // The second Reshape does not take back what the first merged.
  EXPECT_UNCHANGED(unmerge_transpose(), R"(graph g(%x: f32[2, 4, 3, 8]) {
  %a: f32[8, 3, 8] = Reshape(%x)
  %b: f32[8, 8, 3] = Transpose(%a) {perm = [0, 2, 1]}
  %y: f32[4, 2, 8, 3] = Reshape(%b)
  return %y as y
})");
  // The merged axes are others.
  EXPECT_UNCHANGED(unmerge_transpose(), R"(graph g(%x: f32[2, 4, 3, 8]) {
  %a: f32[2, 12, 8] = Reshape(%x)
  %b: f32[2, 8, 12] = Transpose(%a) {perm = [0, 2, 1]}
  %y: f32[2, 4, 8, 3] = Reshape(%b)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
