// SPDX-License-Identifier: Apache-2.0
// Transposed weights.
#include "check.hpp"

namespace bertcl::passes {

Pass fold_weight_transpose();
namespace {

TEST(FoldWeightTranspose, AxisMovesWithTheWeight) {
  EXPECT_REWRITE(fold_weight_transpose(), R"(graph g(%x: f32[1, 3]) {
  const %w: i8[2, 3] = [1, 2, 3, 4, 5, 6]  const %s: f32[2] = [0.5, 0.25]
  %d: f32[2, 3] = DequantizeLinear(%w, %s) {axis = 0}
  %t: f32[3, 2] = Transpose(%d) {perm = [1, 0]}
  %y: f32[1, 2] = MatMul(%x, %t)
  return %y as y
})",
                 R"(graph g(%x: f32[1, 3]) {
  const %w: i8[3, 2] = [1, 4, 2, 5, 3, 6]  const %s: f32[2] = [0.5, 0.25]
  %d: f32[3, 2] = DequantizeLinear(%w, %s) {axis = 1}
  %y: f32[1, 2] = MatMul(%x, %d)
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
