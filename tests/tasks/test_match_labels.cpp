// SPDX-License-Identifier: Apache-2.0
// Which classes the labels of the data stand for.
#include "tasks/match_labels.hpp"

#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

TEST(MatchLabels, NegativeAndPositiveAreTwoClasses) {
  for (const std::size_t least : {1, 2}) {
    const auto matched = match_labels({{"NEG", 1}, {"Positive", 2}}, {}, least);
    EXPECT_EQ(matched.head.classes, 2u);
    EXPECT_FALSE(matched.head.or_more);
    EXPECT_EQ(matched.head.meaning, "2 classes: negative, positive");
    EXPECT_EQ(matched.class_of.at("Positive"), 1u);
  }
  EXPECT_TRUE(match_labels({{"0", 1}, {"1", 2}}, {}, 2).head.or_more) << "numbers of classes";
}

TEST(MatchLabels, PolarityIsAWholeWord) {
  EXPECT_ERROR(HasSubstr("cannot map negligence, post to the model's classes"),
               match_labels({{"post", 1}, {"negligence", 2}}, {}, 2));
  EXPECT_EQ(match_labels({{"neg", 1}}, {"Positive", "Negative"}, 2).class_of.at("neg"), 1u);
}

}  // namespace
}  // namespace bertcl::tasks
