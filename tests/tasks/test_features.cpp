// SPDX-License-Identifier: Apache-2.0
// Texts to token sequences: truncation, windows, words, hidden tokens.
#include "tasks/features.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/support/matchers.hpp"
#include "tests/support/roberta_tokenizer.hpp"
#include "tests/tasks/support.hpp"
#include "text/truncation.hpp"

namespace bertcl::tasks {
namespace {

constexpr std::int32_t kCls = 2, kSep = 3, kMask = 4;

std::int32_t id(const char* token) { return letter_tokenizer().token_id(token); }

TEST(EncodeText, KeepsTheBeginning) {
  const Sequence all = encode_text("ab c", letter_tokenizer(), 5);
  EXPECT_THAT(all.ids, ElementsAre(kCls, id("a"), id("##b"), id("c"), kSep));
  EXPECT_EQ(all.second, 5u);
  EXPECT_EQ(all.cut, 0u);
  const Sequence some = encode_text("ab c", letter_tokenizer(), 4);
  EXPECT_THAT(some.ids, ElementsAre(kCls, id("a"), id("##b"), kSep));
  EXPECT_EQ(some.cut, 1u);
  EXPECT_THAT(encode_text("", letter_tokenizer(), 4).ids, ElementsAre(kCls, kSep));
  EXPECT_ERROR(HasSubstr("sequences of 2 tokens leave no room for a text beside 2 special tokens; "
                         "raise 'max_seq_length', or, if that is the model's limit, export it with "
                         "longer sequences"),
               encode_text("a", letter_tokenizer(), 2));
}

TEST(EncodePieces, GivesWhatEncodeTextGives) {
  const std::vector<std::int32_t> pieces = letter_tokenizer().encode("ab c");
  for (const int length : {3, 4, 5}) {
    const Sequence text = encode_text("ab c", letter_tokenizer(), length);
    const Sequence same = encode_pieces(pieces, letter_tokenizer(), length);
    EXPECT_EQ(same.ids, text.ids);
    EXPECT_EQ(same.cut, text.cut);
  }
  const Sequence end = encode_pieces(pieces, letter_tokenizer(), 4, true);
  EXPECT_THAT(end.ids, ElementsAre(kCls, id("##b"), id("c"), kSep));
}

TEST(EncodeWindows, CoverTheTextInEqualParts) {
  for (const std::size_t letters : {0, 1, 7, 8, 9, 16, 17, 40}) {
    std::string text;
    for (std::size_t i = 0; i < letters; ++i)
      text += std::string(1, static_cast<char>('a' + i % 26)) + " ";
    const auto windows = encode_windows(text, letter_tokenizer(), 10);
    EXPECT_EQ(windows.size(), std::max<std::size_t>(1, (letters + 7) / 8));
    std::vector<std::int32_t> together;
    std::size_t shortest = 99, longest = 0;
    for (const Sequence& window : windows) {
      EXPECT_LE(window.length(), 10u);
      shortest = std::min(shortest, window.length());
      longest = std::max(longest, window.length());
      EXPECT_EQ(window.ids.front(), kCls);
      EXPECT_EQ(window.ids.back(), kSep);
      together.insert(together.end(), window.ids.begin() + 1, window.ids.end() - 1);
    }
    EXPECT_EQ(together, letter_tokenizer().encode(text));
    EXPECT_LE(longest - shortest, 1u);
  }
}

TEST(EncodePair, TheLongerTextIsCut) {
  const Sequence all = encode_pair("ab", "c", letter_tokenizer(), 6);
  EXPECT_THAT(all.ids, ElementsAre(kCls, id("a"), id("##b"), kSep, id("c"), kSep));
  EXPECT_EQ(all.second, 4u);
  EXPECT_EQ(all.cut, 0u);
  const Sequence first = encode_pair("abcd", "e", letter_tokenizer(), 6);
  EXPECT_THAT(first.ids, ElementsAre(kCls, id("a"), id("##b"), kSep, id("e"), kSep));
  const Sequence equal = encode_pair("abc", "def", letter_tokenizer(), 6);
  EXPECT_THAT(equal.ids, ElementsAre(kCls, id("a"), kSep, id("d"), id("##e"), kSep))
      << "of equal ones the first";
  EXPECT_EQ(equal.cut, 3u);
  const Sequence longer = encode_pair("abcd", "efg", letter_tokenizer(), 6);
  EXPECT_THAT(longer.ids, ElementsAre(kCls, id("a"), id("##b"), kSep, id("e"), kSep));
  const Sequence other = encode_pair("abc", "defg", letter_tokenizer(), 6);
  EXPECT_THAT(other.ids, ElementsAre(kCls, id("a"), kSep, id("d"), id("##e"), kSep));
  const auto encode = [](const char* text) { return letter_tokenizer().encode(text); };
  const Sequence ends = encode_pair(encode("abcd"), encode("efg"), letter_tokenizer(), 6, true);
  EXPECT_THAT(ends.ids, ElementsAre(kCls, id("##c"), id("##d"), kSep, id("##g"), kSep));
}

// The numbers are those of enable_truncation(room) of tokenizers 0.23.3.
TEST(EncodePair, KeepsAsManyTokensAsHuggingFace) {
  for (const auto& [first, second, room, kept] : std::vector<
           std::tuple<std::size_t, std::size_t, std::size_t, std::pair<std::size_t, std::size_t>>>{
           {6, 10, 9, {4, 5}},
           {10, 6, 9, {5, 4}},
           {7, 7, 9, {4, 5}},
           {3, 10, 9, {3, 6}},
           {10, 4, 9, {5, 4}},
           {0, 10, 9, {0, 9}},
           {5, 4, 9, {5, 4}},
           {9, 9, 1, {0, 1}},
           {9, 9, 0, {0, 0}}})
    EXPECT_EQ(text::kept_of_pair(first, second, room), kept) << first << ", " << second;
}

TEST(EncodeWords, TheFirstPieceStandsForAWord) {
  const std::vector<std::string> words = {"ab", "\x01", "c", "def"};
  const auto sequences = encode_words(words, letter_tokenizer(), 20);
  ASSERT_EQ(sequences.size(), 1u);
  EXPECT_THAT(sequences[0].ids,
              ElementsAre(kCls, id("a"), id("##b"), id("c"), id("d"), id("##e"), id("##f"), kSep));
  EXPECT_THAT(sequences[0].places, ElementsAre(1, 3, 4));
  EXPECT_THAT(sequences[0].words, ElementsAre(0, 2, 3)) << "a control character has no pieces";
}

TEST(EncodeWords, LongSentencesAreDividedBetweenWords) {
  const std::vector<std::string> words = {"ab", "c", "de", "fghijk", "l"};
  const auto sequences = encode_words(words, letter_tokenizer(), 6);
  ASSERT_EQ(sequences.size(), 4u);
  EXPECT_THAT(sequences[0].words, ElementsAre(0, 1));
  EXPECT_THAT(sequences[1].words, ElementsAre(2));
  EXPECT_THAT(sequences[2].words, ElementsAre(3));
  EXPECT_EQ(sequences[2].length(), 6u);
  EXPECT_EQ(sequences[2].cut, 2u) << "a word that is longer than the sequence";
  EXPECT_THAT(sequences[3].places, ElementsAre(1));
  EXPECT_THAT(encode_words(std::vector<std::string>{"\x01"}, letter_tokenizer(), 6), IsEmpty());
}

std::string many_words(std::size_t count) {
  Numbers numbers(11);
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += std::string(1, static_cast<char>('a' + numbers.next() % 26)) + " ";
  return text;
}

TEST(EncodeMasked, HidesAsBertDoes) {
  const std::string text = many_words(4000);
  const auto sequences = encode_masked(text, letter_tokenizer(), 102, 0);
  ASSERT_EQ(sequences.size(), 40u);
  std::map<std::string, double> status;
  std::vector<std::int32_t> restored;
  std::size_t hidden = 0;
  for (const Sequence& sequence : sequences) {
    ASSERT_EQ(sequence.places.size(), 15u) << "of 102 tokens";
    ASSERT_EQ(sequence.targets.size(), 15u);
    EXPECT_TRUE(std::is_sorted(sequence.places.begin(), sequence.places.end()));
    EXPECT_EQ(std::set(sequence.places.begin(), sequence.places.end()).size(), 15u);
    EXPECT_GE(sequence.places.front(), 1u) << "[CLS] is never hidden";
    EXPECT_LT(sequence.places.back(), sequence.length() - 1) << "[SEP] is never hidden";
    std::vector<std::int32_t> ids = sequence.ids;
    for (std::size_t i = 0; i < 15; ++i) {
      std::int32_t& shown = ids[sequence.places[i]];
      ++status[shown == kMask ? "mask" : shown == sequence.targets[i] ? "same" : "other"];
      shown = sequence.targets[i];
      EXPECT_EQ(sequence.words[i], hidden++);
    }
    restored.insert(restored.end(), ids.begin() + 1, ids.end() - 1);
  }
  EXPECT_EQ(restored, letter_tokenizer().encode(text));
  // 600 tokens: three standard deviations of a binomial distribution.
  EXPECT_NEAR(status["mask"], 480, 30);
  EXPECT_NEAR(status["same"], 60, 22);
  EXPECT_NEAR(status["other"], 60, 22);
}

TEST(EncodeMasked, TheSeedAloneDecides) {
  const auto shown = [](std::uint64_t seed) {
    return encode_masked(many_words(60), letter_tokenizer(), 512, seed)[0].ids;
  };
  EXPECT_EQ(shown(1), shown(1));
  EXPECT_NE(shown(1), shown(2));
  const auto one = encode_masked("a", letter_tokenizer(), 512, 3);
  ASSERT_EQ(one.size(), 1u);
  EXPECT_THAT(one[0].places, ElementsAre(1)) << "at least one";
  EXPECT_THAT(encode_masked(" ", letter_tokenizer(), 512, 3), IsEmpty());
  const auto without = text::Tokenizer::from_tokens({"[PAD]", "[UNK]", "[CLS]", "[SEP]"});
  EXPECT_ERROR(HasSubstr("[MASK]"), encode_masked("a", without, 512, 3));
}

TEST(OtherTokenizers, PutTheirTokensAroundTexts) {
  const text::Tokenizer& tokenizer = tests::roberta_tokenizer();
  const Sequence text = encode_text("the cat", tokenizer, 10);
  EXPECT_THAT(text.ids, ElementsAre(0, 12, 16, 2));
  EXPECT_EQ(text.second, 4u);
  const Sequence pair = encode_pair("the cat", "cat.", tokenizer, 10);
  EXPECT_THAT(pair.ids, ElementsAre(0, 12, 16, 2, 2, 15, 17, 2));
  EXPECT_EQ(pair.second, 8u) << "no second segment";
  const Sequence cut = encode_pair("the cat the", "cat.", tokenizer, 8);
  EXPECT_THAT(cut.ids, ElementsAre(0, 12, 16, 2, 2, 15, 17, 2));
  EXPECT_EQ(cut.cut, 1u);
  EXPECT_ERROR(HasSubstr("beside 4 special tokens"), encode_pair("a", "a", tokenizer, 4));
}

TEST(OtherTokenizers, TakeWordsWithASpaceBeforeThem) {
  const std::vector<std::string> words = {"the", "cat", "tea"};
  const auto sequences = encode_words(words, tests::roberta_tokenizer(), 10);
  ASSERT_EQ(sequences.size(), 1u);
  EXPECT_THAT(sequences[0].ids, ElementsAre(0, 13, 16, 5, 6, 8, 10, 2));
  EXPECT_THAT(sequences[0].places, ElementsAre(1, 2, 3));
}

TEST(OtherTokenizers, HideTokensByTheirMask) {
  const auto sequences =
      encode_masked("the cat the cat the cat", tests::roberta_tokenizer(), 10, 1);
  ASSERT_EQ(sequences.size(), 1u);
  EXPECT_EQ(sequences[0].ids.front(), 0);
  EXPECT_EQ(sequences[0].ids.back(), 2);
  for (const std::size_t place : sequences[0].places) {
    EXPECT_GE(place, 1u);
    EXPECT_LE(place, 6u);
  }
}

}  // namespace
}  // namespace bertcl::tasks
