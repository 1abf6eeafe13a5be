// SPDX-License-Identifier: Apache-2.0
// Excerpts of texts around an answer.
#include "tools/report/excerpt.hpp"

#include <gtest/gtest.h>

namespace bertcl::tools {
namespace {

TEST(Excerpt, MarksTheSpanAndCutsBetweenWords) {
  const std::string text = "one two three four five six seven";
  const std::size_t four = text.find("four");
  EXPECT_EQ(excerpt(text, {four, four + 4}, {"[", "]"}), "one two three [four] five six seven");
  EXPECT_EQ(excerpt(text, {four, four + 4}, {"[", "]"}, 7), "... three [four] five ...");
  EXPECT_EQ(excerpt(text, {0, 3}, {"<", ">"}, 5), "<one> two ...");
  EXPECT_EQ(excerpt(text, {28, 33}, {"<", ">"}, 5), "... six <seven>");
  EXPECT_EQ(excerpt("a\n\n b\tc", {4, 5}, {"[", "]"}), "a [b] c");
}

}  // namespace
}  // namespace bertcl::tools
