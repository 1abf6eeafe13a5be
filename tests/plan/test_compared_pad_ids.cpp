// SPDX-License-Identifier: Apache-2.0
// Comparisons of token ids that find padding, and others.
#include "plan/compared_pad_ids.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/parse_graph.hpp"

namespace bertcl::plan {
namespace {

using testing::ElementsAre, testing::IsEmpty;

/// Of a graph whose nodes read %input_ids and give %y.
std::vector<std::int64_t> found_in(const std::string& nodes) {
  return compared_pad_ids(
      ir::parse("graph g(%input_ids: i64[batch, seq], %x: f32[batch, seq, 4]) {\n"
                "  const %three: i64[] = 3\n" +
                nodes + "  return %y as y\n}"));
}

TEST(ComparedPadIds, AreThoseThatTokensAreCountedWithout) {
  EXPECT_THAT(found_in(R"(  %same: bool[batch, seq] = Equal(%three, %input_ids)
  %other: bool[batch, seq] = Not(%same)
  %ones: i64[batch, seq] = Cast(%other) {to = "i64"}
  %y: i64[batch] = ReduceSum(%ones) {axes = [1], keepdims = 0}
)"),
              ElementsAre(3));
}

TEST(ComparedPadIds, AreThoseWhosePlaceIsLookedFor) {
  EXPECT_THAT(found_in(R"(  %ids: i32[batch, seq] = Cast(%input_ids) {to = "i32"}
  const %four: i32[] = 4
  %same: bool[batch, seq] = Equal(%ids, %four)
  %ones: i32[batch, seq] = Cast(%same) {to = "i32"}
  %y: i64[batch] = ArgMax(%ones) {axis = 1, keepdims = 0}
)"),
              ElementsAre(4));
}

// ESM scales its embeddings by the share of tokens that are hidden.
TEST(ComparedPadIds, AreNotThoseOfTokensThatAreCounted) {
  EXPECT_THAT(found_in(R"(  %same: bool[batch, seq] = Equal(%input_ids, %three)
  %ones: i64[batch, seq] = Cast(%same) {to = "i64"}
  %y: i64[batch] = ReduceSum(%ones) {axes = [1], keepdims = 0}
)"),
              IsEmpty());
}

// RoBERTa's positions: padding gets other ones, which changes no token.
TEST(ComparedPadIds, AreNotThoseOfPositions) {
  EXPECT_THAT(found_in(R"(  const %one: i64[] = 1
  %same: bool[batch, seq] = Equal(%input_ids, %three)
  %other: bool[batch, seq] = Not(%same)
  %ones: i64[batch, seq] = Cast(%other) {to = "i64"}
  %sums: i64[batch, seq] = CumSum(%ones, %one)
  %y: i64[batch, seq] = Mul(%sums, %ones)
)"),
              IsEmpty());
}

TEST(ComparedPadIds, DoNotFollowTheHiddenStates) {
  EXPECT_THAT(found_in(R"(  const %axes: i64[1] = [2]
  const %zero: f32[] = 0
  %same: bool[batch, seq] = Equal(%input_ids, %three)
  %other: bool[batch, seq] = Not(%same)
  %wide: bool[batch, seq, 1] = Unsqueeze(%other, %axes)
  %kept: f32[batch, seq, 4] = Where(%wide, %x, %zero)
  %y: f32[batch, seq] = ReduceMean(%kept) {axes = [2], keepdims = 0}
)"),
              IsEmpty());
}

}  // namespace
}  // namespace bertcl::plan
