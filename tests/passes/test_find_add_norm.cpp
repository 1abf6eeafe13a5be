// SPDX-License-Identifier: Apache-2.0
// Sums before a norm.
#include <string>

#include "check.hpp"

namespace bertcl::passes {

Pass find_add_norm();
namespace {

TEST(FindAddNorm, ResidualSumAndNorm) {
  EXPECT_DIFF(find_add_norm(), R"(graph g(%x: f32[batch, seq, 8], %r: f32[batch, seq, 8]) {
- %s: f32[batch, seq, 8] = Add(%x, %r)
  const %gamma: f32[8] = ...  const %beta: f32[8] = ...
- %y: f32[batch, seq, 8] = LayerNormalization(%s, %gamma, %beta) {axis = -1, epsilon = 0.5}
+ %y: f32[batch, seq, 8] = add_norm(%x, %r, %gamma, %beta) {epsilon = 0.5}
  return %y as y
})");
}

TEST(FindAddNorm, ASumThatIsReadElsewhereTooIsASecondResult) {
  EXPECT_DIFF(find_add_norm(), R"(graph g(%x: f32[batch, 8], %r: f32[batch, 8]) {
- %s: f32[batch, 8] = Add(%x, %r)
  const %gamma: f32[8] = ...  const %beta: f32[8] = ...
- %y: f32[batch, 8] = LayerNormalization(%s, %gamma, %beta) {axis = 1, epsilon = 0.5}
+ %y: f32[batch, 8], %s: f32[batch, 8] = add_norm(%x, %r, %gamma, %beta) {epsilon = 0.5, sum = 1}
  return %y as y, %s as s
})");
}

TEST(FindAddNorm, TheSumStandsBeforeAllOfItsReaders) {
  EXPECT_DIFF(find_add_norm(), R"(graph g(%x: f32[batch, 8], %r: f32[batch, 8]) {
- %s: f32[batch, 8] = Add(%x, %r)
+ const %gamma: f32[8] = ...
+ %y: f32[batch, 8], %s: f32[batch, 8] = add_norm(%x, %r, %gamma, _) {epsilon = 0.5, rms = 1, sum = 1}
  %t: f32[batch, 8] = Tanh(%s)
- const %gamma: f32[8] = ...
- %y: f32[batch, 8] = RMSNormalization(%s, %gamma) {axis = -1, epsilon = 0.5}
  %z: f32[batch, 8] = Add(%y, %t)
  return %z as z
})");
}

TEST(FindAddNorm, TheSecondOfTwoNormsOfASumReadsIt) {
  EXPECT_DIFF(find_add_norm(), R"(graph g(%x: f32[batch, 8], %r: f32[batch, 8]) {
- %s: f32[batch, 8] = Add(%x, %r)
  const %gamma: f32[8] = ...
- %y: f32[batch, 8] = RMSNormalization(%s, %gamma) {axis = -1, epsilon = 0.5}
- %z: f32[batch, 8] = LayerNormalization(%s, %gamma) {axis = -1, epsilon = 0.5}
+ %y: f32[batch, 8], %s: f32[batch, 8] = add_norm(%x, %r, %gamma, _) {epsilon = 0.5, rms = 1, sum = 1}
+ %z: f32[batch, 8] = add_norm(%s, _, %gamma, _) {epsilon = 0.5}
  return %y as y, %z as z
})");
}

TEST(FindAddNorm, VectorsOfOneElementStayWithTheNorm) {
  for (const char* operands : {"%one", "%gamma, %one"})
    EXPECT_UNCHANGED(find_add_norm(), std::string(R"(graph g(%x: f32[batch, 8]) {
  const %gamma: f32[8] = ...  const %one: f32[1] = ...
  %y: f32[batch, 8] = LayerNormalization(%x, )") +
                                          operands + R"() {axis = -1, epsilon = 0.5}
  return %y as y
})");
}

}  // namespace
}  // namespace bertcl::passes
