// SPDX-License-Identifier: Apache-2.0
// Entities from labels of tokens, and scores of classes. tests/python/test_pipelines.py compares
// them with Hugging Face's.
#include "tasks/entities.hpp"

#include <limits>

#include "tasks/scores/class_scores.hpp"
#include "tests/support/matchers.hpp"
#include "tests/tasks/support.hpp"

namespace bertcl::tasks {
namespace {

const std::vector<std::string> kTagNames = {"O", "B-PER", "I-PER", "B-LOC", "I-LOC"};

/// Entities of a text whose letters have these labels, each with a probability of 0.6 but for
/// those that are given.
std::vector<TextEntity> found_entities(const std::string& text,
                                       const std::vector<std::size_t>& chosen,
                                       Aggregation aggregation,
                                       const std::vector<float>& sure = {}) {
  const text::Tokenizer tokenizer = letter_tokenizer().as_tokenizer_json();
  const text::Encoding encoding = tokenizer.encode_with_spans(text);
  EXPECT_EQ(encoding.ids.size(), chosen.size());
  std::vector<float> scores(chosen.size() * kTagNames.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const float most = i < sure.size() ? sure[i] : 0.6F;
    for (std::size_t label = 0; label < kTagNames.size(); ++label)
      scores[i * kTagNames.size() + label] = label == chosen[i] ? most : (1 - most) / 4;
  }
  return find_entities(text, encoding, scores, tokenizer, kTagNames, aggregation);
}

testing::Matcher<TextEntity> entity(const std::string& label, std::uint32_t begin,
                                    std::uint32_t end, float score = 0.6F) {
  return AllOf(Field(&TextEntity::label, label), Field(&TextEntity::span, text::Span{begin, end}),
               Field(&TextEntity::score, FloatNear(score, 1e-6F)));
}

TEST(Entities, NoneListsTokens) {
  EXPECT_THAT(found_entities("ab c", {1, 2, 0}, Aggregation::none),
              ElementsAre(entity("B-PER", 0, 1), entity("I-PER", 1, 2)));
  EXPECT_THAT(found_entities("ab c", {0, 2, 1}, Aggregation::none),
              ElementsAre(Field(&TextEntity::token, 1), Field(&TextEntity::token, 2)));
}

TEST(Entities, NeighboursOfOneKindAreOneAndBBeginsAnother) {
  EXPECT_THAT(found_entities("ab c d", {1, 2, 2, 1}, Aggregation::simple),
              ElementsAre(entity("PER", 0, 4), entity("PER", 5, 6)));
  EXPECT_THAT(found_entities("ab c d", {2, 2, 4, 4}, Aggregation::simple),
              ElementsAre(entity("PER", 0, 2), entity("LOC", 3, 6)));
  EXPECT_THAT(found_entities("a b c", {1, 0, 2}, Aggregation::simple),
              ElementsAre(entity("PER", 0, 1), entity("PER", 4, 5)));
  EXPECT_THAT(found_entities("a b", {0, 0}, Aggregation::simple), IsEmpty());
  EXPECT_THAT(found_entities("", {}, Aggregation::first), IsEmpty());
}

TEST(Entities, TheScoreIsTheMeanOfTheParts) {
  EXPECT_THAT(found_entities("a b", {1, 2}, Aggregation::simple, {0.9F, 0.5F}),
              ElementsAre(entity("PER", 0, 3, 0.7F)));
}

TEST(Entities, WordsAreLabelledAsAWhole) {
  EXPECT_THAT(found_entities("ab", {1, 4}, Aggregation::first, {0.5F, 0.9F}),
              ElementsAre(entity("PER", 0, 2, 0.5F)));
  EXPECT_THAT(found_entities("ab", {1, 4}, Aggregation::max, {0.5F, 0.9F}),
              ElementsAre(entity("LOC", 0, 2, 0.9F)));
  EXPECT_THAT(found_entities("ab", {1, 4}, Aggregation::average, {0.5F, 0.9F}),
              ElementsAre(entity("LOC", 0, 2, (0.9F + 0.125F) / 2)));
  EXPECT_THAT(found_entities("abc d", {0, 1, 1, 1}, Aggregation::first),
              ElementsAre(entity("PER", 4, 5)));
}

TEST(Entities, UnknownTokensBeginWordsWhateverTheirName) {
  const text::Tokenizer tokenizer = [] {
    const ScratchFile file(R"({"model": {"type": "Unigram", "unk_id": 0,
                                "vocab": [["<unknown>", 0], ["a", -1], ["b", -1]]}})");
    return text::Tokenizer::from_file(file.path());
  }();
  const text::Encoding encoding = tokenizer.encode_with_spans("aéb");
  ASSERT_THAT(encoding.ids, ElementsAre(1, 0, 2));
  EXPECT_THAT(find_entities("aéb", encoding, std::vector{0.1F, 0.9F, 0.8F, 0.2F, 0.3F, 0.7F},
                            tokenizer, {"O", "B-PER"}, Aggregation::first),
              ElementsAre(entity("PER", 0, 1, 0.9F)));
}

TEST(Entities, WordsEndWhereNoPrefixContinuesThem) {
  const auto entities = [](const char* model) {
    const ScratchFile file(std::string(R"({"pre_tokenizer": {"type": "BertPreTokenizer"},
                                           "model": {)") +
                           model + "}}");
    const text::Tokenizer tokenizer = text::Tokenizer::from_file(file.path());
    const text::Encoding encoding = tokenizer.encode_with_spans("a.a");
    EXPECT_THAT(encoding.ids, ElementsAre(1, 2, 1));
    return find_entities("a.a", encoding, std::vector{0.1F, 0.9F, 0.8F, 0.2F, 0.3F, 0.7F},
                         tokenizer, {"O", "B-PER"}, Aggregation::first);
  };
  const auto two = ElementsAre(entity("PER", 0, 1, 0.9F), entity("PER", 2, 3, 0.7F));
  const auto one = ElementsAre(entity("PER", 0, 3, 0.9F));
  const std::string bpe = R"("type": "BPE", "merges": [], "vocab": {"x": 0, "a": 1, ".": 2})";
  EXPECT_THAT(entities((bpe + R"(, "continuing_subword_prefix": "##")").c_str()), two);
  EXPECT_THAT(entities((bpe + R"(, "continuing_subword_prefix": null)").c_str()), one);
  const std::string pieces = R"("type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, ".": 2})";
  EXPECT_THAT(entities(pieces.c_str()), two) << "## by default";
  EXPECT_THAT(entities((pieces + R"(, "continuing_subword_prefix": "")").c_str()), one);
}

TEST(Entities, SpansCountBytes) {
  EXPECT_THAT(found_entities("\u00e9 a", {0, 1}, Aggregation::simple),
              ElementsAre(entity("PER", 3, 4)));
}

TEST(ClassScores, SoftmaxSigmoidAndNothing) {
  const std::vector<float> logits = {1.0F, -2.0F, 0.0F};
  EXPECT_THAT(class_scores(logits, Activation::softmax),
              ElementsAre(FloatNear(0.705385F, 1e-6F), FloatNear(0.035119F, 1e-6F),
                          FloatNear(0.259496F, 1e-6F)));
  EXPECT_THAT(class_scores(logits, Activation::sigmoid),
              ElementsAre(FloatNear(0.731059F, 1e-6F), FloatNear(0.119203F, 1e-6F), 0.5F));
  EXPECT_THAT(class_scores(logits, Activation::none), ElementsAre(1.0F, -2.0F, 0.0F));
  constexpr float most = std::numeric_limits<float>::max();
  EXPECT_THAT(class_scores(std::vector{most, -most}, Activation::softmax), ElementsAre(1.0F, 0.0F));
}

TEST(ClassScores, NaNIsLast) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<std::size_t> found;
  for (const ClassScore& score : best_classes(std::vector{nan, 1.0F, nan, infinity, 2.0F}, 9))
    found.push_back(score.label);
  EXPECT_THAT(found, ElementsAre(3, 4, 1, 0, 2));
  const auto scores = class_scores(std::vector{nan, 1.0F}, Activation::sigmoid);
  EXPECT_THAT(scores, ElementsAre(IsNan(), FloatNear(0.731059F, 1e-6F)));
}

TEST(ClassScores, TheBestInTheirOrder) {
  const std::vector<float> scores = {0.1F, 0.4F, 0.1F, 0.4F};
  const auto labels_of = [&](std::size_t count) {
    std::vector<std::size_t> found;
    for (const ClassScore& score : best_classes(scores, count)) found.push_back(score.label);
    return found;
  };
  EXPECT_THAT(labels_of(1), ElementsAre(1));
  EXPECT_THAT(labels_of(3), ElementsAre(1, 3, 0));
  EXPECT_THAT(labels_of(9), ElementsAre(1, 3, 0, 2));
}

}  // namespace
}  // namespace bertcl::tasks
