// SPDX-License-Identifier: Apache-2.0
// Candidates, ties, null answers and spans on hand-made logits.
#include "squad/predictions.hpp"

#include <cmath>
#include <limits>

#include "support/best_indexes.hpp"
#include "tests/squad/support.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::squad {
namespace {

/// One question over a document of letters; logits are -5 where not set.
class Case {
 public:
  explicit Case(std::string context, FeatureOptions options = {}) : context_(std::move(context)) {
    document_ = make_document(context_, letter_tokenizer());
    features_ = make_features(document_, "who", letter_tokenizer(), options);
    for (const Feature& feature : features_) {
      logits_.push_back({std::vector<float>(feature.length(), -5.0F),
                         std::vector<float>(feature.length(), -5.0F)});
    }
  }

  /// `token` counts the document tokens of the window from 0; [CLS] is `null`.
  static constexpr int null = -3;
  Case& start(int token, float value, std::size_t window = 0) {
    logits_[window].start[position(token, window)] = value;
    return *this;
  }
  Case& end(int token, float value, std::size_t window = 0) {
    logits_[window].end[position(token, window)] = value;
    return *this;
  }
  Prediction predict(PredictionOptions options = {}) const {
    std::vector<WindowLogits> windows;
    for (std::size_t i = 0; i < features_.size(); ++i) {
      windows.push_back({&features_[i], logits_[i].start, logits_[i].end});
    }
    return squad::predict(document_, windows, letter_tokenizer(), options);
  }
  std::string in_context(const std::optional<Span>& span) const {
    return span ? context_.substr(span->begin, span->end - span->begin) : "(no span)";
  }
  std::size_t windows() const { return features_.size(); }

 private:
  std::size_t position(int token, std::size_t window) const {
    return features_[window].doc_begin + static_cast<std::size_t>(token);
  }

  std::string context_;
  Document document_;
  std::vector<Feature> features_;
  std::vector<Logits> logits_;
};

std::vector<std::string> texts(const Prediction& prediction) {
  std::vector<std::string> result;
  for (const NBestEntry& entry : prediction.nbest) result.push_back(entry.text);
  return result;
}

TEST(BestIndexes, EqualValuesRankByLowerIndex) {
  const std::vector<float> all = {1, 3, 2, 3, 1, 3, NAN};
  const std::span<const float> values = all;
  EXPECT_THAT(best_indexes(values, 4), ElementsAre(1, 3, 5, 2));
  EXPECT_THAT(best_indexes(values, 9), ElementsAre(1, 3, 5, 2, 0, 4, 6));
  EXPECT_THAT(best_indexes(values.first(0), 3), ElementsAre());
}

TEST(Predict, TheBestSumWins) {
  Case c("the cat sat on the mat");
  const Prediction prediction = c.start(1, 2).start(5, 3).end(2, 4).end(5, 2.5).predict();
  EXPECT_EQ(prediction.text, "cat sat") << "2 + 4 against 3 + 2.5";
  EXPECT_EQ(prediction.nbest[1].text, "mat");
  EXPECT_EQ(c.in_context(prediction.span), "cat sat");
  EXPECT_FALSE(prediction.null_odds.has_value());
  double total = 0.0;
  for (const NBestEntry& entry : prediction.nbest) total += entry.probability;
  EXPECT_NEAR(total, 1.0, 1e-12);
  EXPECT_NEAR(prediction.nbest[0].probability / prediction.nbest[1].probability, std::exp(0.5),
              1e-9);
}

TEST(Predict, TiesKeepTheOrderOfSearch) {
  // All sums equal: starts by index, for each the ends by index.
  const Prediction prediction =
      Case("a b c").start(0, 0).start(1, 0).start(2, 0).end(0, 0).end(1, 0).end(2, 0).predict(
          {.n_best_size = 6});
  EXPECT_THAT(texts(prediction), ElementsAre("a", "a b", "a b c", "b", "b c", "c"));
}

TEST(Predict, EndBeforeStartAndLongAnswersAreExcluded) {
  Case c("a b c d e f");
  c.start(3, 9).end(1, 9).end(5, 8).start(1, 1);
  EXPECT_EQ(c.predict({.max_answer_length = 3}).text, "d e f");
  EXPECT_EQ(c.predict({.max_answer_length = 2}).text, "b") << "d..f has 3 tokens";
}

TEST(Predict, QuestionAndSeparatorsAreExcluded) {
  Case c("a b");
  c.start(Case::null, 100).end(Case::null, 100);        // [CLS]
  c.start(Case::null + 1, 90).end(Case::null + 1, 90);  // the question
  c.start(2, 80).end(2, 80);                            // the last [SEP]
  EXPECT_EQ(c.start(1, 1).end(1, 1).predict().text, "b");
}

TEST(Predict, AStartCountsOnlyInItsBestWindow) {
  Case c("a b c d e f g h i j", {.max_seq_length = 10, .doc_stride = 2, .max_query_length = 64});
  ASSERT_EQ(c.windows(), 3u);
  c.start(4, 50, 0).end(5, 6, 0);  // e in the first window: its best is the second
  c.start(2, 7, 1).end(4, 7, 1);
  EXPECT_EQ(c.predict().text, "e f g");
}

TEST(Predict, TokensBeyondTheWindowNeverWin) {
  const std::string context = "a b";
  const Document document = make_document(context, letter_tokenizer());
  const auto features = make_features(document, "who", letter_tokenizer(), {});
  std::vector<float> start(features[0].length() + 20, 99.0F);
  std::vector<float> end(start);
  for (std::size_t i = 0; i < features[0].length(); ++i) start[i] = end[i] = 1.0F;
  const WindowLogits padded{&features[0], start, end};
  EXPECT_EQ(predict(document, {&padded, 1}, letter_tokenizer(), {}).text, "empty")
      << "padding fills the best 20, as in the reference";
  const WindowLogits cut{&features[0], std::span(start).first(features[0].length()),
                         std::span(end).first(features[0].length())};
  EXPECT_EQ(predict(document, {&cut, 1}, letter_tokenizer(), {}).text, "a");
}

TEST(Predict, EqualTextsAppearOnce) {
  Case c("cat dog cat");
  const Prediction prediction =
      c.start(0, 5).end(0, 5).start(2, 4).end(2, 4).predict({.n_best_size = 3});
  EXPECT_EQ(prediction.nbest[0].text, "cat");
  EXPECT_EQ(prediction.nbest[0].span, (Span{0, 3}));
  for (std::size_t i = 1; i < prediction.nbest.size(); ++i) {
    EXPECT_NE(prediction.nbest[i].text, "cat");
  }
}

TEST(Predict, SpansPointIntoTheContextThroughOddSpaces) {
  Case c("\tThe  CAT,\n\nthe  dog's  mat ");
  // the, cat, ",", the, dog, ', s, mat
  Prediction prediction = c.start(1, 9).end(4, 9).predict();
  EXPECT_EQ(prediction.text, "CAT, the dog");
  EXPECT_EQ(c.in_context(prediction.span), "CAT,\n\nthe  dog");
  prediction = c.start(6, 20).end(6, 20).predict();
  EXPECT_EQ(prediction.text, "s");
  EXPECT_EQ(c.in_context(prediction.span), "s");
}

TEST(Predict, SpansAreWhereTheTokensStand) {
  // the . cat , a . cat , mat: one word of the context, as a text without spaces is.
  Case c("the.cat,a.CAT,mat");
  Prediction prediction = c.start(6, 9).end(6, 9).predict();
  EXPECT_EQ(prediction.text, "cat") << "run_squad.py takes the first that reads so";
  EXPECT_EQ(prediction.span, (Span{10, 13}));
  EXPECT_EQ(c.in_context(prediction.span), "CAT");
  prediction = c.start(5, 20).end(6, 20).predict();
  EXPECT_EQ(c.in_context(prediction.span), ".CAT");
  // x ##c ##c, q: the second piece.
  Case pieces("the xcc,q xcc,q");
  prediction = pieces.start(7, 9).end(7, 9).predict();
  EXPECT_EQ(prediction.text, "c");
  EXPECT_EQ(prediction.span, (Span{11, 12}));
  prediction = pieces.start(8, 20).end(8, 20).predict();
  EXPECT_EQ(prediction.text, "c");
  EXPECT_EQ(prediction.span, (Span{12, 13}));
}

TEST(Predict, SpansFollowUnknownTokensAndOtherWindows) {
  Case c("\U0001F600x.cat,\u00C9t\u00E9.Cat");  // [UNK] . cat , e ##t ##e . cat
  Prediction prediction = c.start(8, 9).end(8, 9).predict();
  EXPECT_EQ(prediction.text, "cat");
  EXPECT_EQ(c.in_context(prediction.span), "Cat");
  Case windows("a.a.a.a.A", {.max_seq_length = 8, .doc_stride = 2, .max_query_length = 64});
  ASSERT_EQ(windows.windows(), 4u);
  prediction = windows.start(2, 9, 3).end(2, 9, 3).predict();
  EXPECT_EQ(prediction.span, (Span{8, 9})) << "of piece 8, the third of the last window";
}

// Pieces before the answer that the text does not spell: text and span stay the same place.
TEST(Predict, SpansAreTheFirstPlaceWhereTheTextSpellsOthers) {
  Document document = make_document("a.a", letter_tokenizer());
  const auto features = make_features(document, "who", letter_tokenizer(), {});
  document.piece_ids[0] = document.piece_ids[1] = letter_tokenizer().token_id("who");
  std::vector<float> logits(features[0].length(), -5.0F);
  logits[features[0].doc_begin + 2] = 5.0F;
  const WindowLogits window{&features[0], logits, logits};
  const Prediction prediction = predict(document, {&window, 1}, letter_tokenizer(), {});
  EXPECT_EQ(prediction.text, "a");
  EXPECT_EQ(prediction.span, (Span{0, 1}));
}

TEST(Predict, UnknownWordsGiveTheWholeWord) {
  Case c("the \U0001F600x, cat");
  // the, [UNK], ",", cat: "[UNK]" is not in the text, so the words stand as they are.
  const Prediction prediction = c.start(1, 9).end(1, 9).predict();
  EXPECT_EQ(prediction.text, "\U0001F600x,");
  EXPECT_EQ(c.in_context(prediction.span), "\U0001F600x,");
}

TEST(Predict, NothingLeftIsEmpty) {
  const Document document = make_document("", letter_tokenizer());
  const Prediction v1 = predict(document, {}, letter_tokenizer(), {});
  EXPECT_EQ(v1.text, "empty");
  EXPECT_FALSE(v1.span.has_value());
  ASSERT_EQ(v1.nbest.size(), 1u);
  EXPECT_EQ(v1.nbest[0].probability, 1.0);
  const Prediction v2 = predict(document, {}, letter_tokenizer(), {.version_2 = true});
  EXPECT_EQ(v2.text, "");
  EXPECT_EQ(v2.null_odds, 1000000.0);
}

TEST(NullAnswer, IsPredictedOnlyAboveTheThreshold) {
  Case c("a b");
  c.start(0, 2).end(0, 1).start(Case::null, 3).end(Case::null, 1);
  const auto with = [&](double threshold) {
    return c.predict({.version_2 = true, .null_score_diff_threshold = threshold});
  };
  EXPECT_EQ(with(0.0).null_odds, 1.0) << "(3 + 1) - (2 + 1)";
  EXPECT_EQ(with(0.0).text, "");
  EXPECT_FALSE(with(0.0).span.has_value());
  EXPECT_EQ(with(0.999).text, "");
  EXPECT_EQ(with(1.0).text, "a") << "not above the threshold";
  EXPECT_TRUE(with(1.0).span.has_value());
  EXPECT_EQ(c.predict().text, "a") << "v1.1 knows no null answer";
}

TEST(NullAnswer, TheLeastScoreOfAllWindowsCounts) {
  Case c("a b c d e f g h", {.max_seq_length = 8, .doc_stride = 4, .max_query_length = 64});
  ASSERT_EQ(c.windows(), 2u);
  c.start(Case::null, 8, 0).end(Case::null, 1, 0);
  c.start(Case::null, 2, 1).end(Case::null, 1, 1);
  c.start(1, 4, 0).end(1, 2, 0);
  const Prediction prediction = c.predict({.version_2 = true});
  EXPECT_EQ(prediction.null_odds, -3.0) << "min(9, 3) - 6";
  EXPECT_EQ(prediction.text, "b");
}

TEST(NullAnswer, StandsInTheListByItsScoreOrAtItsEnd) {
  Case c("a b");
  c.start(0, 2).end(0, 2).start(1, 1).end(1, 1).start(Case::null, 1.5).end(Case::null, 1.5);
  // a 4, a b 3, null 3, b 2; equal sums: the null answer was found last.
  const Prediction all = c.predict({.version_2 = true});
  EXPECT_THAT(texts(all), ElementsAre("a", "a b", "", "b"));
  c.start(Case::null, 0.5).end(Case::null, 0.5);
  const Prediction two = c.predict({.n_best_size = 2, .version_2 = true});
  EXPECT_THAT(texts(two), ElementsAre("a", "a b", "")) << "always in the list, as one entry more";
}

TEST(Predict, BadLogitsAreRefused) {
  Case nan("a b");
  EXPECT_ERROR(HasSubstr("returned NaN or infinity for a window"),
               nan.end(1, std::nanf("")).predict());
  Case infinite("a b");
  EXPECT_ERROR(HasSubstr("returned NaN or infinity for a window"),
               infinite.start(0, std::numeric_limits<float>::infinity()).predict());
  const Document document = make_document("a b", letter_tokenizer());
  const auto features = make_features(document, "who", letter_tokenizer(), {});
  const std::vector<float> few(features[0].length() - 1, 0.0F);
  const WindowLogits window{&features[0], few, few};
  EXPECT_ERROR(HasSubstr("a window of 6 tokens has 5 start and 5 end logits"),
               predict(document, {&window, 1}, letter_tokenizer(), {}));
  EXPECT_ERROR(HasSubstr("'n_best' 0"), Case("a").predict({.n_best_size = 0}));
}

TEST(FinalText, FindsTheOriginalSpelling) {
  const text::BasicTokenizer basic;
  EXPECT_EQ(get_final_text("steve smith", "Steve Smith's", basic), "Steve Smith");
  EXPECT_EQ(get_final_text("u . s .", "the U.S. army", basic), "U.S.");
  EXPECT_EQ(get_final_text("cafe", "Café,", basic), "Café") << "equal numbers of characters";
  EXPECT_EQ(get_final_text("not there", "some Text", basic), "some Text");
  EXPECT_EQ(get_final_text("istanbul", "in İstanbul", basic), "İstanbul");
  EXPECT_EQ(get_final_text("cd", "ab\u200B cd", basic), "ab\u200B cd")
      << "a dropped character makes the lengths differ";
  EXPECT_EQ(get_final_text("", "some Text", basic), "some Text");
}

}  // namespace
}  // namespace bertcl::squad
