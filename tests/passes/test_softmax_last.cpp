// SPDX-License-Identifier: Apache-2.0
// Softmax along every axis.
#include "check.hpp"

namespace bertcl::passes {

Pass softmax_last();
namespace {

TEST(SoftmaxLast, AnotherAxisIsMovedToTheEndAndBack) {
  EXPECT_REWRITE(softmax_last(), R"(graph g(%x: f32[batch, seq, 3]) {
  %a: f32[batch, seq, 3] = Softmax(%x) {axis = 1}
  %b: f32[batch, seq, 3] = LogSoftmax(%a) {axis = -3}
  return %b as y
})",
                 R"(graph g(%x: f32[batch, seq, 3]) {
  %t: f32[batch, 3, seq] = Transpose(%x) {perm = [0, 2, 1]}
  %s: f32[batch, 3, seq] = Softmax(%t) {axis = 2}
  %a: f32[batch, seq, 3] = Transpose(%s) {perm = [0, 2, 1]}
  %u: f32[3, seq, batch] = Transpose(%a) {perm = [2, 1, 0]}
  %l: f32[3, seq, batch] = LogSoftmax(%u) {axis = 2}
  %b: f32[batch, seq, 3] = Transpose(%l) {perm = [2, 1, 0]}
  return %b as y
})");
}

TEST(SoftmaxLast, TheLastAxisStays) {
  EXPECT_UNCHANGED(softmax_last(), R"(graph g(%x: f32[batch, seq, 3]) {
  %a: f32[batch, seq, 3] = Softmax(%x) {axis = 2}
  %b: f32[batch, seq, 3] = Softmax(%a) {axis = -1}
  return %b as y
})");
}

}  // namespace
}  // namespace bertcl::passes
