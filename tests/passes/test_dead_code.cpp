// SPDX-License-Identifier: Apache-2.0
// What nothing reads.
#include "check.hpp"

namespace bertcl::passes {

Pass dead_code();
namespace {

TEST(DeadCode, WhatNothingReadsDisappears) {
  EXPECT_DIFF(dead_code(), R"(graph g(%x: f32[4]) {
  %a: f32[4] = Relu(%x)
- %b: f32[4] = Exp(%a)
- %c: f32[4] = Neg(%b)
  return %a as y
})");
}

TEST(DeadCode, WhatIsReadAndNodesWithoutResultsStay) {
  EXPECT_UNCHANGED(dead_code(), R"(graph g(%x: f32[4]) {
  %a: f32[4] = Relu(%x)
  %b: f32[4] = Exp(%a)
  observe(%a) {name = "a"}
  return %b as y
})");
}

}  // namespace
}  // namespace bertcl::passes
