// SPDX-License-Identifier: Apache-2.0
// Metrics against slow definitions, and against values that SciPy 1.17.1 (pearsonr, spearmanr,
// rankdata) and seqeval 1.2.2 (default mode) gave for the same data.
#include "tasks/scores/metrics.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

using Values = std::vector<double>;
using Labels = std::vector<std::int64_t>;

TEST(Accuracy, CountsEqualOnes) {
  EXPECT_DOUBLE_EQ(accuracy(Labels{0, 1, 1, 0}, Labels{0, 1, 0, 0}), 75.0);
  EXPECT_DOUBLE_EQ(accuracy(Labels{3}, Labels{4}), 0.0);
  EXPECT_ERROR(HasSubstr("at least 1"), accuracy(Labels{}, Labels{}));
  EXPECT_ERROR(HasSubstr("2 predictions"), accuracy(Labels{1, 2}, Labels{1}));
}

TEST(MacroF1, IsTheMeanOfTheF1OfTheClassesThatOccur) {
  EXPECT_DOUBLE_EQ(macro_f1(Labels{0, 1}, Labels{0, 1}), 100.0);
  EXPECT_DOUBLE_EQ(macro_f1(Labels{5, 5}, Labels{7, 7}), 0.0);
  // Class 0: precision 1/2, recall 1; class 2: 0; class 1: precision 1, recall 1/2.
  EXPECT_NEAR(macro_f1(Labels{0, 0, 1, 2}, Labels{0, 1, 1, 3}), 100.0 * (2.0 / 3 + 2.0 / 3) / 4,
              1e-12);
  std::mt19937 random(5);
  for (const std::size_t count : {1, 3, 64, 257}) {
    Labels predicted(count), reference(count);
    for (auto& label : predicted) label = random() % 5;
    for (auto& label : reference) label = random() % 4;
    double sum = 0.0;
    std::set<std::int64_t> classes(predicted.begin(), predicted.end());
    classes.insert(reference.begin(), reference.end());
    for (const std::int64_t label : classes) {
      double right = 0, guessed = 0, true_ones = 0;
      for (std::size_t i = 0; i < count; ++i) {
        guessed += predicted[i] == label ? 1 : 0;
        true_ones += reference[i] == label ? 1 : 0;
        right += predicted[i] == label && reference[i] == label ? 1 : 0;
      }
      const double precision = guessed > 0 ? right / guessed : 0.0;
      const double recall = true_ones > 0 ? right / true_ones : 0.0;
      sum += right > 0 ? 2 * precision * recall / (precision + recall) : 0.0;
    }
    EXPECT_NEAR(macro_f1(predicted, reference), 100 * sum / static_cast<double>(classes.size()),
                1e-9);
  }
  EXPECT_ERROR(HasSubstr("at least 1"), macro_f1(Labels{}, Labels{}));
}

TEST(LabelScores, AreThoseOfScikitLearn) {
  // f1_score and accuracy_score of scikit-learn 1.9.1 on the indicator matrices of four classes.
  const LabelSets reference = {{0, 2}, {1}, {}, {0, 1, 2}, {3}},
                  predicted = {{0, 2}, {1, 3}, {0}, {2}, {}};
  const LabelScores scores = label_scores(predicted, reference);
  EXPECT_NEAR(scores.micro_f1, 61.53846153846154, 1e-12);
  EXPECT_NEAR(scores.macro_f1, 54.16666666666667, 1e-12);
  EXPECT_NEAR(scores.accuracy, 20.0, 1e-12);
  const LabelScores nothing = label_scores({{}, {}}, {{}, {}});
  EXPECT_EQ(nothing.micro_f1, 0.0);
  EXPECT_EQ(nothing.macro_f1, 0.0);
  EXPECT_EQ(nothing.accuracy, 100.0);
  EXPECT_ERROR(HasSubstr("at least 1"), label_scores({}, {}));
}

TEST(LabelScores, OfOneLabelEachAreThoseOfOneClass) {
  std::mt19937 random(11);
  for (const std::size_t count : {1, 3, 64, 257}) {
    Labels predicted(count), reference(count);
    LabelSets predicted_sets, reference_sets;
    for (std::size_t i = 0; i < count; ++i) {
      predicted[i] = random() % 5;
      reference[i] = random() % 4;
      predicted_sets.push_back({static_cast<std::size_t>(predicted[i])});
      reference_sets.push_back({static_cast<std::size_t>(reference[i])});
    }
    const LabelScores scores = label_scores(predicted_sets, reference_sets);
    EXPECT_NEAR(scores.macro_f1, macro_f1(predicted, reference), 1e-9);
    EXPECT_NEAR(scores.accuracy, accuracy(predicted, reference), 1e-9);
    EXPECT_NEAR(scores.micro_f1, accuracy(predicted, reference), 1e-9);
  }
}

TEST(Correlation, AgreesWithSciPyOnTies) {
  const Values x = {1.5, 2.0, 2.0, -3.25, 7.0, 0.5, 2.0, 9.75};
  const Values y = {1.0, 2.5, 2.5, -1.0, 4.0, 4.0, 0.0, 5.0};
  EXPECT_THAT(ranks(x), ElementsAre(3, 5, 5, 1, 7, 2, 5, 8));
  EXPECT_THAT(ranks(y), ElementsAre(3, 4.5, 4.5, 1, 6.5, 6.5, 2, 8));
  EXPECT_NEAR(pearson(x, y), 0.768074675380807, 1e-14);
  EXPECT_NEAR(spearman(x, y), 0.6296776178641135, 1e-14);
}

TEST(Correlation, AgreesWithSciPyOnAThousandPairs) {
  Numbers numbers(1);
  Values a, b;
  for (int i = 0; i < 1000; ++i) a.push_back(static_cast<double>(numbers.next() % 50) / 10);
  for (int i = 0; i < 1000; ++i)
    b.push_back(a[static_cast<std::size_t>(i)] * 0.5 +
                static_cast<double>(numbers.next() % 40) / 10);
  EXPECT_NEAR(pearson(a, b), 0.527517294880136, 1e-12);
  EXPECT_NEAR(spearman(a, b), 0.508790227977246, 1e-12);
}

TEST(Correlation, RanksAgreeWithTheirDefinition) {
  std::mt19937 random(3);
  for (const std::size_t count : {1, 2, 7, 64, 101}) {
    Values values(count);
    for (double& value : values) value = static_cast<double>(random() % 13);
    const Values found = ranks(values);
    for (std::size_t i = 0; i < count; ++i) {
      // 1 + the smaller ones + half of the other equal ones
      double expected = 1.0;
      for (std::size_t k = 0; k < count; ++k)
        expected += values[k] < values[i] ? 1.0 : k != i && values[k] == values[i] ? 0.5 : 0.0;
      ASSERT_EQ(found[i], expected) << "value " << i << " of " << count;
    }
  }
}

TEST(Correlation, DoesNotDependOnUnitsAndOrder) {
  const Values x = {1, 2, 3, 4, 5}, y = {2, 4, 6, 8, 10}, down = {5, 4, 3, 2, 1};
  EXPECT_DOUBLE_EQ(pearson(x, y), 1.0);
  EXPECT_DOUBLE_EQ(pearson(x, down), -1.0);
  EXPECT_DOUBLE_EQ(spearman(x, Values{1, 8, 27, 64, 125}), 1.0) << "monotonic, not linear";
  EXPECT_LT(pearson(x, Values{1, 8, 27, 64, 125}), 0.96);
  const double odd = pearson(Values{1, 3, 2, 7}, Values{4, 1, 2, 2});
  for (const double unit : {0x1p-1070, 0x1p-600, 0x1p600, 0x1p1020}) {
    EXPECT_EQ(pearson(Values{unit, 3 * unit, 2 * unit, 7 * unit}, Values{4, 1, 2, 2}), odd) << unit;
    EXPECT_EQ(pearson(Values{1, 3, 2, 7}, Values{4 * unit, unit, 2 * unit, 2 * unit}), odd) << unit;
  }
}

TEST(Correlation, IsUndefinedForConstants) {
  EXPECT_TRUE(std::isnan(pearson(Values{0.1, 0.1, 0.1}, Values{1, 2, 3})));
  EXPECT_TRUE(std::isnan(spearman(Values{1, 2, 3}, Values{0.7, 0.7, 0.7})));
  EXPECT_ERROR(HasSubstr("at least 2"), pearson(Values{1}, Values{2}));
  EXPECT_ERROR(HasSubstr("1 references"), pearson(Values{1, 2}, Values{2}));
}

TEST(Correlation, IsUndefinedWithNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Values& y : {Values{1, nan, 3}, Values{nan, nan, nan}, Values{nan, 2, 2}}) {
    EXPECT_TRUE(std::isnan(spearman(Values{1, 2, 3}, y)));
    EXPECT_TRUE(std::isnan(pearson(Values{1, 2, 3}, y)));
    for (const double rank : ranks(y)) EXPECT_TRUE(std::isnan(rank));
  }
}

std::vector<Entity> read(std::vector<std::string> tags) { return entities(tags); }

TEST(Entities, AreThoseOfSeqeval) {
  EXPECT_THAT(
      read({"I-person", "I-person", "O", "B-group", "I-group", "I-person", "B-person", "B-person"}),
      ElementsAre(Entity{"person", 0, 2}, Entity{"group", 3, 5}, Entity{"person", 5, 6},
                  Entity{"person", 6, 7}, Entity{"person", 7, 8}));
  EXPECT_THAT(
      read({"B-a", "E-a", "I-a", "S-a", "S-a", "I-a", "O", "E-b", "I-b"}),
      ElementsAre(Entity{"a", 0, 2}, Entity{"a", 2, 3}, Entity{"a", 3, 4}, Entity{"a", 4, 5},
                  Entity{"a", 5, 6}, Entity{"b", 7, 8}, Entity{"b", 8, 9}));
  EXPECT_THAT(
      read({"I-a", "B-a", "I-b", "I-b", "O", "O", "I-b"}),
      ElementsAre(Entity{"a", 0, 1}, Entity{"a", 1, 2}, Entity{"b", 2, 4}, Entity{"b", 6, 7}));
  EXPECT_THAT(read({"O", "O"}), IsEmpty());
  EXPECT_THAT(read({}), IsEmpty());
}

TEST(Entities, TagsOfOneLetterArePlacesWithoutAType) {
  EXPECT_THAT(read({"B", "I", "O", "B", "B", "I"}),
              ElementsAre(Entity{"_", 0, 2}, Entity{"_", 3, 4}, Entity{"_", 4, 6}));
  EXPECT_THAT(
      read({"I", "E", "I", "S", "I-x", "x"}),
      ElementsAre(Entity{"_", 0, 2}, Entity{"_", 2, 3}, Entity{"_", 3, 4}, Entity{"x", 4, 6}));
}

TEST(Entities, ScoresAreThoseOfSeqeval) {
  const std::array<const char*, 9> names = {"O",
                                            "O",
                                            "O",
                                            "B-person",
                                            "I-person",
                                            "B-group",
                                            "I-group",
                                            "B-creative-work",
                                            "I-creative-work"};
  Numbers numbers(5);
  Tags reference, predicted;
  for (int sentence = 0; sentence < 200; ++sentence) {
    const std::size_t words = 1 + numbers.next() % 12;
    auto& truth = reference.emplace_back();
    for (std::size_t i = 0; i < words; ++i) truth.push_back(names[numbers.next() % 9]);
    auto& guess = predicted.emplace_back();
    for (const std::string& tag : truth)
      guess.push_back(numbers.next() % 4 != 0 ? tag : names[numbers.next() % 9]);
  }
  const EntityScores scores = entity_scores(predicted, reference);
  EXPECT_EQ(scores.reference, 781u);
  EXPECT_EQ(scores.predicted, 791u);
  EXPECT_NEAR(scores.precision, 73.70417193426043, 1e-10);
  EXPECT_NEAR(scores.recall, 74.64788732394366, 1e-10);
  EXPECT_NEAR(scores.f1, 74.17302798982188, 1e-10);
  EXPECT_NEAR(scores.accuracy, 79.57153787299158, 1e-10);
}

TEST(Entities, NothingFoundIsNoDivision) {
  const EntityScores none = entity_scores({{"O", "O"}}, {{"B-a", "O"}});
  EXPECT_EQ(none.precision, 0.0);
  EXPECT_EQ(none.recall, 0.0);
  EXPECT_EQ(none.f1, 0.0);
  EXPECT_EQ(none.accuracy, 50.0);
  EXPECT_EQ(entity_scores({{"O"}}, {{"O"}}).f1, 0.0);
  EXPECT_ERROR(HasSubstr("sentence 0 has 1 predicted tags and 2"),
               entity_scores({{"O"}}, {{"O", "O"}}));
}

}  // namespace
}  // namespace bertcl::tasks
