// SPDX-License-Identifier: Apache-2.0
// Normalization, scores of pairs, and how v1.1 and v2.0 differ, on cases worked out by hand.
#include "squad/metrics.hpp"

#include <algorithm>
#include <random>

#include "tests/support/matchers.hpp"

namespace bertcl::squad {
namespace {

Question question(const std::string& id, const std::vector<std::string>& answers) {
  Question result;
  result.id = id;
  for (const std::string& answer : answers) result.answers.push_back({answer, 0});
  result.is_impossible = answers.empty();
  return result;
}

TEST(Normalize, LowerCasePunctuationArticlesSpaces) {
  EXPECT_EQ(normalize_answer("The  Cat, (an) OLD a-dog!"), "cat old adog");
  EXPECT_EQ(normalize_answer("theatre another a"), "theatre another");
  EXPECT_EQ(normalize_answer("a an the"), "");
  EXPECT_EQ(normalize_answer("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), "");
  EXPECT_EQ(normalize_answer("\tx\u00A0\u2003y\n"), "x y");
}

TEST(Normalize, PunctuationGoesBeforeTheArticles) {
  EXPECT_EQ(normalize_answer("a.b"), "ab");
  EXPECT_EQ(normalize_answer("t.h.e cat"), "cat");
  EXPECT_EQ(normalize_answer("the_cat"), "thecat");
}

TEST(Normalize, OnlyAsciiPunctuationGoes) {
  EXPECT_EQ(normalize_answer("24–10 “x”"), "24–10 “x”");
  EXPECT_EQ(normalize_answer("a–the"), "–") << "a dash is a border of words";
  EXPECT_EQ(normalize_answer("École Ä"), "école ä");
  EXPECT_EQ(normalize_answer("a²"), "a²") << "a superscript belongs to the word";
  EXPECT_EQ(normalize_answer("a\u0301"), "\u0301") << "a combining mark does not, in Python's re";
}

TEST(Score, ExactComparesNormalizedTexts) {
  EXPECT_EQ(exact_score("The Cat.", "cat"), 1.0);
  EXPECT_EQ(exact_score("cats", "cat"), 0.0);
}

TEST(Score, F1CountsWordsAsMultisets) {
  EXPECT_DOUBLE_EQ(f1_score("b c d", "b c"), 2 * (2.0 / 3) / (2.0 / 3 + 1));
  EXPECT_DOUBLE_EQ(f1_score("b b b", "b b c"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(f1_score("x y", "y x"), 1.0) << "the order of words does not count";
  EXPECT_EQ(f1_score("b", "c"), 0.0);
}

TEST(Score, EmptyAgainstEmptyDependsOnTheVersion) {
  EXPECT_EQ(exact_score("", "the"), 1.0);
  EXPECT_EQ(f1_score("", "the"), 0.0);
  EXPECT_EQ(f1_score_v2("", "the"), 1.0);
  EXPECT_EQ(f1_score_v2("", "x"), 0.0);
  EXPECT_EQ(f1_score_v2("x", ""), 0.0);
  EXPECT_EQ(f1_score_v2("b c d", "b c"), f1_score("b c d", "b c"));
}

TEST(ScoresV1, TheBestReferenceCountsAndMissingOnesCountZero) {
  const std::vector<Question> questions = {question("1", {"x y", "x"}), question("2", {"z"}),
                                           question("3", {"w"}), question("4", {"v u"})};
  const Scores scores = evaluate_v1(questions, {{"1", "X"}, {"2", "y"}, {"4", "v"}, {"9", "w"}});
  EXPECT_DOUBLE_EQ(scores.exact_match, 25.0);
  EXPECT_DOUBLE_EQ(scores.f1, 100.0 * (1.0 + 2.0 / 3) / 4);
  EXPECT_EQ(scores.total, 4u);
  EXPECT_THAT(scores.missing, ElementsAre("3"));
  EXPECT_THAT(scores.official_metrics(), ElementsAre(Key("exact_match"), Key("f1")));
}

TEST(ScoresV2, MissingOnesAreLeftOut) {
  const std::vector<Question> questions = {question("1", {"x y"}), question("2", {}),
                                           question("3", {}), question("4", {"z"})};
  const Scores scores = evaluate_v2(questions, {{"1", "x"}, {"2", ""}, {"3", "w"}});
  EXPECT_EQ(scores.total, 3u);
  EXPECT_THAT(scores.missing, ElementsAre("4"));
  EXPECT_DOUBLE_EQ(scores.exact_match, 100.0 / 3);
  EXPECT_DOUBLE_EQ(scores.f1, 100.0 * (2.0 / 3 + 1) / 3);
  EXPECT_DOUBLE_EQ(scores.has_answer->f1, 200.0 / 3);
  EXPECT_EQ(scores.has_answer->total, 1u);
  EXPECT_DOUBLE_EQ(scores.no_answer->exact, 50.0);
  EXPECT_EQ(scores.no_answer->total, 2u);
  EXPECT_FALSE(scores.thresholds.has_value());
  EXPECT_THAT(
      scores.official_metrics(),
      ElementsAre(Key("exact"), Key("f1"), Key("total"), Key("HasAns_exact"), Key("HasAns_f1"),
                  Key("HasAns_total"), Key("NoAns_exact"), Key("NoAns_f1"), Key("NoAns_total")));
}

TEST(ScoresV2, ReferencesThatNormalizeToNothingDoNotCount) {
  const std::vector<Question> questions = {question("1", {"the", "x"}), question("2", {"a", "!"})};
  const Scores scores = evaluate_v2(questions, {{"1", ""}, {"2", ""}});
  EXPECT_DOUBLE_EQ(scores.exact_match, 50.0) << "the second has only \"\" left as reference";
}

TEST(ScoresV2, TheThresholdTurnsAnswersIntoNone) {
  const std::vector<Question> questions = {question("1", {"x"}), question("2", {})};
  const Predictions predictions = {{"1", "x"}, {"2", "y"}};
  const NullOdds odds = {{"1", -2.0}, {"2", 0.5}};
  EXPECT_DOUBLE_EQ(evaluate_v2(questions, predictions, &odds, 0.5).exact_match, 50.0);
  EXPECT_DOUBLE_EQ(evaluate_v2(questions, predictions, &odds, 0.4).exact_match, 100.0);
  EXPECT_DOUBLE_EQ(evaluate_v2(questions, predictions, &odds, -3.0).exact_match, 50.0);
}

TEST(Thresholds, AreThoseOfTheOfficialWalk) {
  const std::vector<Question> questions = {question("1", {"x"}), question("2", {}),
                                           question("3", {"y"}), question("4", {})};
  const Predictions predictions = {{"1", "x"}, {"2", "w"}, {"3", "y"}, {"4", ""}};
  const NullOdds odds = {{"1", -2.0}, {"2", 0.5}, {"3", 0.25}, {"4", 3.0}};
  const auto scores = evaluate_v2(questions, predictions, &odds).thresholds;
  ASSERT_TRUE(scores.has_value());
  // From 2 (both without an answer) to 3 (question 1), 4 (3), 3 (2 answered wrongly), 3.
  EXPECT_DOUBLE_EQ(scores->best_exact, 100.0);
  EXPECT_DOUBLE_EQ(scores->best_exact_thresh, 0.25);
  EXPECT_DOUBLE_EQ(scores->best_f1, 100.0);
  EXPECT_DOUBLE_EQ(scores->best_f1_thresh, 0.25);
  // Precision 1, 1, 2/3, 2/4 at recall 1/2, 1, 1, 1.
  EXPECT_DOUBLE_EQ(*scores->pr_exact_ap, 100.0);
  EXPECT_DOUBLE_EQ(*scores->pr_oracle_ap, 100.0);
}

TEST(Thresholds, NothingBetterThanNoAnswerKeepsZero) {
  const std::vector<Question> questions = {question("1", {"x"}), question("2", {})};
  const NullOdds odds = {{"1", 1.0}, {"2", 2.0}};
  const auto scores = evaluate_v2(questions, {{"1", "z"}, {"2", "z"}}, &odds).thresholds;
  EXPECT_DOUBLE_EQ(scores->best_exact, 50.0);
  EXPECT_DOUBLE_EQ(scores->best_exact_thresh, 0.0);
  EXPECT_DOUBLE_EQ(*scores->pr_exact_ap, 0.0);
}

/// The best threshold must be as good as trying each one with the thresholded score.
TEST(Thresholds, EqualBruteForceOnRandomAnswers) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    std::vector<Question> questions;
    Predictions predictions;
    NullOdds odds;
    for (int i = 0; i < 40; ++i) {
      const std::string id = std::to_string(i);
      questions.push_back(question(
          id, random() % 2 == 0 ? std::vector<std::string>{"x y"} : std::vector<std::string>{}));
      predictions[id] = std::vector<std::string>{"x y", "x", "z", ""}[random() % 4];
      odds[id] = i * 0.5 + static_cast<double>(random() % 20);
      odds[id] += i * 1e-6;  // no ties: the official walk may cut between equal odds
    }
    const Scores scores = evaluate_v2(questions, predictions, &odds);
    double best_exact = 0.0;
    double best_f1 = 0.0;
    std::vector<double> cuts = {-1e9};
    for (const auto& [id, value] : odds) cuts.push_back(value);
    for (const double cut : cuts) {
      const Scores at = evaluate_v2(questions, predictions, &odds, cut);
      best_exact = std::max(best_exact, at.exact_match);
      best_f1 = std::max(best_f1, at.f1);
    }
    EXPECT_NEAR(scores.thresholds->best_exact, best_exact, 1e-9);
    EXPECT_NEAR(scores.thresholds->best_f1, best_f1, 1e-9);
  }
}

}  // namespace
}  // namespace bertcl::squad
