// SPDX-License-Identifier: Apache-2.0
// Which classes the labels of the data stand for.
#include "tasks/kinds/match_labels.hpp"

#include <fmt/format.h>

#include "tasks/load.hpp"
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

TEST(MatchLabels, NamesAndNumbersInOneFile) {
  const auto matched =
      match_labels({{"BAD", 1}, {"1", 2}, {"good", 3}, {"2", 4}}, {"bad", "good", "ok"}, 2);
  EXPECT_EQ(matched.class_of.at("BAD"), 0u);
  EXPECT_EQ(matched.class_of.at("1"), 1u);
  EXPECT_EQ(matched.class_of.at("good"), 1u);
  EXPECT_EQ(matched.class_of.at("2"), 2u);
  EXPECT_EQ(matched.name_of(1), "good") << "rather than its number";
  EXPECT_EQ(matched.name_of(2), "2");
  EXPECT_EQ(match_labels({{"(good)", 1}, {"0", 2}}, {"(good)"}, 1).name_of(0), "(good)");
}

TEST(MatchLabels, OnlyWhatHasNoClassIsNamed) {
  const std::vector<std::string> names = {"bad", "good", "ok"};
  EXPECT_ERROR(HasSubstr("the data contain 3, fine, not among the model's classes: bad, good, ok"),
               match_labels({{"fine", 1}, {"Good", 2}, {"2", 3}, {"3", 4}}, names, 2));
}

TEST(MatchLabels, LabelsWithoutAClassHaveTheirLine) {
  EXPECT_ERROR(HasSubstr("line 2: the data contain 7, fine, not among"),
               match_labels({{"fine", 4}, {"bad", 1}, {"7", 2}}, {"bad", "good"}, 2));
  EXPECT_ERROR(HasSubstr("line 3: the data contain \"\", not among"),
               match_labels({{"", 3}, {"bad", 1}}, {"bad", "good"}, 2));
  DataLabels many;
  for (std::size_t i = 0; i < 20'000; ++i) many[fmt::format("label{:05}", i)] = i + 2;
  EXPECT_ERROR(AllOf(HasSubstr("line 2: the data contain label00000, "),
                     HasSubstr("label00007 and 19992 more, not among the model's classes: bad")),
               match_labels(many, {"bad", "good"}, 2));
  EXPECT_ERROR(HasSubstr("label00007 and 19992 more to the model's classes"),
               match_labels(many, {}, 2));
  EXPECT_ERROR(HasSubstr("contain po\\x00s, not"),
               match_labels({{std::string("po\0s", 4), 1}}, {"bad", "good"}, 2));
}

TEST(LoadTask, NamesTheFileAndTheLineOfALabelWithoutAClass) {
  const auto refused = [](const std::string& task, const std::string& content,
                          const std::vector<std::string>& labels,
                          std::optional<bool> several = {}) {
    const ScratchFile file(content, ".txt");
    return error_of([&] { load_task({task, file.path(), labels, several}, 100); });
  };
  EXPECT_THAT(refused(kClassify, "a\tpos\nb\tneutral\n", {"neg", "pos"}),
              HasSubstr(".txt: line 2: the data contain neutral, not among"));
  EXPECT_THAT(refused(kClassify, "a\tpos\n\nb\tpos,,neg\n", {"neg", "pos"}, true),
              HasSubstr(".txt: line 3: the data contain \"\", an empty label; check for stray"));
  EXPECT_THAT(refused(kTag, "a\tO\n\nb\tO\nc\tB-x\n", {"O", "B-y"}),
              HasSubstr(".txt: line 4: the data contain B-x, which is not among"));
  EXPECT_THAT(
      refused(kTag, "\n{\"tokens\": [\"b\", \"c\"], \"tags\": [\"O\", \"B-x\"]}\n", {"O", "B-y"}),
      HasSubstr(".txt: line 2: the data contain B-x, which is not among"));
}

TEST(MatchLabels, NumbersThatAreNamesDoNotCount) {
  const std::vector<std::string> stars = {"1", "2", "3", "none"};
  EXPECT_EQ(match_labels({{"1", 1}, {"none", 2}}, stars, 2).class_of.at("1"), 0u);
  EXPECT_EQ(match_labels({{"0", 1}, {"1", 2}}, stars, 2).class_of.at("1"), 1u)
      << "all of them count";
  EXPECT_ERROR(HasSubstr("the data contain 0, not among the model's classes: 1, 2, 3, none"),
               match_labels({{"0", 1}, {"1", 2}, {"none", 3}}, stars, 2));
}

TEST(MatchLabels, NamesMayDifferInCase) {
  const auto matched = match_labels({{"A", 1}, {"B", 2}}, {"a", "A", "b"}, 2);
  EXPECT_EQ(matched.class_of.at("A"), 1u);
  EXPECT_EQ(matched.class_of.at("B"), 2u);
}

TEST(MatchLabels, AFirstRowMayBeAHeader) {
  const std::vector<std::string> names = {"bad", "good"};
  const std::string hint = "; if it is a header, name its columns text and label";
  const DataLabels with_names = {{"good", 2}, {"sentiment", 1}, {"1", 4}};
  EXPECT_ERROR(
      AllOf(HasSubstr("line 1: sentiment is not among the model's classes: bad, good" + hint),
            HasSubstr("'labels'")),
      match_labels(with_names, names, 2, "sentiment"));
  const DataLabels with_numbers = {{"0", 2}, {"1", 3}, {"sentiment", 1}};
  EXPECT_ERROR(AllOf(HasSubstr("line 1: sentiment is not a number" + hint), HasSubstr("'labels'")),
               match_labels(with_numbers, {}, 2, "sentiment"));
  // Where other labels have no class, either, or there is no other label.
  EXPECT_ERROR(HasSubstr("the data contain fine, sentiment"),
               match_labels({{"good", 2}, {"sentiment", 1}, {"fine", 3}}, names, 2, "sentiment"));
  EXPECT_ERROR(HasSubstr("cannot map 0, fine, sentiment"),
               match_labels({{"0", 2}, {"sentiment", 1}, {"fine", 3}}, {}, 2, "sentiment"));
  EXPECT_ERROR(HasSubstr("the data contain sentiment"),
               match_labels({{"sentiment", 1}}, names, 2, "sentiment"));
}

TEST(MatchLabels, OnlyAFirstRowOfATableMayBeAHeader) {
  const auto header = [](const std::string& content, const std::string& extension) {
    return possible_header(read_classified(ScratchFile(content, extension).path()));
  };
  EXPECT_EQ(header("review,sentiment\nfine,good\n", ".csv"), "sentiment");
  EXPECT_EQ(header("review\tsentiment\nfine\tgood\n", ".tsv"), "sentiment");
  EXPECT_EQ(header("review\tsentiment\nfine\tsentiment\n", ".tsv"), "") << "a label of others";
  EXPECT_EQ(header("text,label\nreview,sentiment\nfine,good\n", ".csv"), "");
  EXPECT_EQ(header("text\tlabel\nreview\tsentiment\nfine\tgood\n", ".tsv"), "");
  EXPECT_EQ(header("{\"text\": \"a\", \"label\": \"sentiment\"}\n", ".jsonl"), "");
}

TEST(MatchLabels, ANameOfTwoClassesIsRefusedWhereTheDataHaveIt) {
  const std::vector<std::string> names = {"a", "b", "a", "c", "c"};
  EXPECT_ERROR(HasSubstr("line 2: the data contain a, the name of more than one of the model's "
                         "classes: a, b, a, c, c; tell them apart with "),
               match_labels({{"a", 2}, {"b", 1}}, names, 2));
  EXPECT_EQ(match_labels({{"b", 1}}, names, 2).class_of.at("b"), 1u);
  EXPECT_EQ(match_labels({{"2", 1}, {"0", 2}}, names, 2).class_of.at("2"), 2u) << "by number";
}

}  // namespace
}  // namespace bertcl::tasks
