// SPDX-License-Identifier: Apache-2.0
// Windows over documents of letters, where every number can be checked by eye.
#include "squad/features.hpp"

#include <random>

#include "tests/squad/support.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::squad {
namespace {

std::vector<std::string> words_of(const Document& document) {
  std::vector<std::string> words;
  for (const auto& [begin, end] : document.words) {
    words.emplace_back(document.context.substr(begin, end - begin));
  }
  return words;
}

std::vector<std::string> tokens_of(const Feature& feature) {
  std::vector<std::string> tokens;
  for (const std::int32_t id : feature.input_ids) tokens.push_back(letter_tokenizer().token(id));
  return tokens;
}

TEST(Document, SplitsAtTheFiveSeparatorsOnly) {
  const std::string context = " a b\t\tc\r\nd\u202Fe\u00A0f\u2009g ";
  const Document document = make_document(context, letter_tokenizer());
  EXPECT_THAT(words_of(document), ElementsAre("a", "b", "c", "d", "e\u00A0f\u2009g"));
  EXPECT_THAT(document.piece_to_word, ElementsAre(0, 1, 2, 3, 4, 4, 4));
}

TEST(Document, AWordMayHaveNoPieces) {
  const std::string context = "a \u200B b";
  const Document document = make_document(context, letter_tokenizer());
  EXPECT_EQ(document.words.size(), 3u);
  EXPECT_THAT(document.piece_to_word, ElementsAre(0, 2));
}

TEST(Features, LayOutQuestionAndDocument) {
  const Document document = make_document("the cat sat. ab", letter_tokenizer());
  const std::vector<Feature> features =
      make_features(document, "Who sat?", letter_tokenizer(), {}, 7);
  ASSERT_EQ(features.size(), 1u);
  EXPECT_EQ(features[0].example_index, 7u);
  EXPECT_THAT(tokens_of(features[0]), ElementsAre("[CLS]", "who", "sat", "?", "[SEP]", "the", "cat",
                                                  "sat", ".", "a", "##b", "[SEP]"));
  EXPECT_EQ(features[0].doc_begin, 5u);
  EXPECT_THAT(features[0].token_to_orig, ElementsAre(0, 1, 2, 2, 3, 3));
  EXPECT_THAT(features[0].is_max_context, ElementsAre(true, true, true, true, true, true));
  EXPECT_FALSE(features[0].in_document(4));
  EXPECT_TRUE(features[0].in_document(5));
  EXPECT_TRUE(features[0].in_document(10));
  EXPECT_FALSE(features[0].in_document(11)) << "the last [SEP]";
}

TEST(Features, StrideIsAStepAndMaxContextIsShared) {
  // 10 pieces, room 10 - 1 - 3 = 6, step 2: windows [0,6) [2,8) [4,10)
  const Document document = make_document("a b c d e f g h i j", letter_tokenizer());
  const std::vector<Feature> features =
      make_features(document, "who", letter_tokenizer(),
                    {.max_seq_length = 10, .doc_stride = 2, .max_query_length = 64});
  ASSERT_EQ(features.size(), 3u);
  EXPECT_THAT(features[0].token_to_orig, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(features[1].token_to_orig, ElementsAre(2, 3, 4, 5, 6, 7));
  EXPECT_THAT(features[2].token_to_orig, ElementsAre(4, 5, 6, 7, 8, 9));
  // c: 2 left in the first, 0 in the second. e: (1) in the first, 2 in the second. On equal
  // scores the first window wins: d has 2 in the first (2 right of it) and 1 in the second.
  EXPECT_THAT(features[0].is_max_context, ElementsAre(true, true, true, true, false, false));
  EXPECT_THAT(features[1].is_max_context, ElementsAre(false, false, true, true, false, false));
  EXPECT_THAT(features[2].is_max_context, ElementsAre(false, false, true, true, true, true));
}

TEST(Features, TheLastWindowIsShorterWhereTheStepReachesBeyond) {
  // 7 pieces, room 4, step 4: [0,4) [4,7)
  const Document document = make_document("a b c d e f g", letter_tokenizer());
  const auto features =
      make_features(document, "who", letter_tokenizer(),
                    {.max_seq_length = 8, .doc_stride = 9, .max_query_length = 1});
  ASSERT_EQ(features.size(), 2u) << "a step longer than the window counts as the window";
  EXPECT_EQ(features[0].length(), 8u);
  EXPECT_EQ(features[1].length(), 7u);
  EXPECT_THAT(features[1].token_to_orig, ElementsAre(4, 5, 6));
}

TEST(Features, EachPieceHasMaxContextInExactlyOneWindow) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::size_t pieces = 1 + random() % 120;
    std::string context;
    for (std::size_t i = 0; i < pieces; ++i) context += i == 0 ? "a" : " b";
    const Document document = make_document(context, letter_tokenizer());
    const FeatureOptions options{.max_seq_length = 5 + static_cast<int>(random() % 60),
                                 .doc_stride = 1 + static_cast<int>(random() % 40),
                                 .max_query_length = 1};
    std::vector<int> seen(pieces, 0);
    std::vector<int> best(pieces, 0);
    for (const Feature& feature : make_features(document, "who", letter_tokenizer(), options)) {
      EXPECT_LE(feature.length(), static_cast<std::size_t>(options.max_seq_length));
      EXPECT_EQ(feature.length(), feature.doc_begin + feature.doc_length() + 1);
      for (std::size_t i = 0; i < feature.doc_length(); ++i) {
        const auto piece = static_cast<std::size_t>(feature.token_to_orig[i]);
        ++seen[piece];
        best[piece] += feature.is_max_context[i] ? 1 : 0;
      }
    }
    for (std::size_t i = 0; i < pieces; ++i) {
      ASSERT_GE(seen[i], 1) << "piece " << i << " of " << pieces;
      ASSERT_EQ(best[i], 1) << "piece " << i << " of " << pieces;
    }
  }
}

TEST(Features, LongQuestionsAreCut) {
  const Document document = make_document("a b", letter_tokenizer());
  const auto features =
      make_features(document, "the cat sat on the mat", letter_tokenizer(),
                    {.max_seq_length = 20, .doc_stride = 4, .max_query_length = 2});
  ASSERT_EQ(features.size(), 1u);
  EXPECT_THAT(tokens_of(features[0]),
              ElementsAre("[CLS]", "the", "cat", "[SEP]", "a", "b", "[SEP]"));
}

TEST(Features, ADocumentWithoutPiecesHasNoWindow) {
  for (const char* context : {"", "  \n ", "\u200B"}) {
    const Document document = make_document(context, letter_tokenizer());
    EXPECT_TRUE(make_features(document, "who", letter_tokenizer(), {}).empty());
  }
}

TEST(Features, WindowsMayBeBounded) {
  const Document document = make_document("a b c d e f g h i j", letter_tokenizer());
  FeatureOptions options{.max_seq_length = 10, .doc_stride = 2, .max_query_length = 64};
  options.max_windows = 3;
  EXPECT_EQ(make_features(document, "who", letter_tokenizer(), options).size(), 3u);
  options.max_windows = 2;
  EXPECT_ERROR(HasSubstr("the context makes 3 windows, the limit is 2; shorten it or let "
                         "windows overlap less (doc_stride)"),
               make_features(document, "who", letter_tokenizer(), options));
}

TEST(Features, EachTokenHasItsMostContextInOneOfManyWindows) {
  std::string context;
  for (int i = 0; i < 100'000; ++i) context += "a ";
  const Document document = make_document(context, letter_tokenizer());
  const auto features =
      make_features(document, "a", letter_tokenizer(), {.max_seq_length = 8, .doc_stride = 1});
  EXPECT_EQ(features.size(), 99'997u);
  std::vector<int> windows(100'000);
  for (const auto& feature : features)
    for (std::size_t k = 0; k < feature.is_max_context.size(); ++k)
      windows[static_cast<std::size_t>(feature.token_to_orig[k])] += feature.is_max_context[k];
  EXPECT_THAT(windows, testing::Each(1));
}

TEST(Features, ImpossibleOptionsAreRefused) {
  const Document document = make_document("a b", letter_tokenizer());
  const auto error_with = [&](FeatureOptions options) {
    return error_of([&] { make_features(document, "the cat", letter_tokenizer(), options); });
  };
  EXPECT_THAT(error_with({.max_seq_length = 5, .doc_stride = 1, .max_query_length = 64}),
              HasSubstr("'max_seq_length' 5 leaves no room"));
  EXPECT_THAT(error_with({.max_seq_length = -1, .doc_stride = 1, .max_query_length = 64}),
              HasSubstr("leaves no room"));
  EXPECT_THAT(error_with({.max_seq_length = 64, .doc_stride = 0, .max_query_length = 64}),
              HasSubstr("'doc_stride' 0"));
  EXPECT_THAT(error_with({.max_seq_length = 64, .doc_stride = 1, .max_query_length = -1}),
              HasSubstr("'max_query_length' -1"));
  EXPECT_EQ(make_features(document, "the cat", letter_tokenizer(),
                          {.max_seq_length = 6, .doc_stride = 1, .max_query_length = 64})
                .size(),
            2u)
      << "room for one document token";
}

}  // namespace
}  // namespace bertcl::squad
