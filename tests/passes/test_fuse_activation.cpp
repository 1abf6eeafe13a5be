// SPDX-License-Identifier: Apache-2.0
// A linear and the activation after it.
#include "check.hpp"

namespace bertcl::passes {

Pass fuse_activation();
namespace {

TEST(FuseActivation, GeluMovesIntoTheLinear) {
  EXPECT_DIFF(fuse_activation(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
- %a: f32[batch, 8] = linear(%x, %w)
- %y: f32[batch, 8] = Gelu(%a) {approximate = "tanh"}
+ %y: f32[batch, 8] = linear(%x, %w) {activation = "gelu_tanh"}
  return %y as y
})");
}

TEST(FuseActivation, ALinearThatIsReadElsewhereStays) {
  EXPECT_UNCHANGED(fuse_activation(), R"(graph g(%x: f32[batch, 4]) {
  const %w: f32[4, 8] = ...
  %a: f32[batch, 8] = linear(%x, %w)
  %y: f32[batch, 8] = Tanh(%a)
  return %y as y, %a as a
})");
}

}  // namespace
}  // namespace bertcl::passes
