// SPDX-License-Identifier: Apache-2.0
// Sums before a norm.
#include "check.hpp"

namespace bertcl::passes {

Pass find_add_norm();
namespace {

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

}  // namespace
}  // namespace bertcl::passes
