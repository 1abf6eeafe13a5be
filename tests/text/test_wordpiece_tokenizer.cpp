// SPDX-License-Identifier: Apache-2.0
// Word pieces on a small vocabulary, and bad vocabularies.
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/tokens_of.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::text {
namespace {

using tests::ScratchFile;

const std::vector<std::string> tokens = {
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "un",  "##aff", "##able", "##a",  "##ff",  "want", "##want",
    "##ed",  "[",     "]",     "cl",    "##s", "é",     "ru",     "##nn", "##ing", "東"};

Tokenizer small(TokenizerOptions options = {}) { return Tokenizer::from_tokens(tokens, options); }

TEST(Tokenizer, TakesTheLongestMatch) {
  EXPECT_THAT(tokens_of(small(), "unaffable"), ElementsAre("un", "##aff", "##able"));
  EXPECT_THAT(tokens_of(small(), "UNwanted running"),
              ElementsAre("un", "##want", "##ed", "ru", "##nn", "##ing"));
  EXPECT_THAT(tokens_of(small(), "東京"), ElementsAre("東", "[UNK]"));
  EXPECT_THAT(tokens_of(small(), ""), IsEmpty());
}

TEST(Tokenizer, AnyFailureMakesTheWholeWordUnknown) {
  EXPECT_THAT(tokens_of(small(), "unaffx want"), ElementsAre("[UNK]", "want"));
  EXPECT_THAT(tokens_of(small(), "able"), ElementsAre("[UNK]")) << "only a continuation";
}

TEST(Tokenizer, SpecialTokensInTheTextAreNotProtected) {
  EXPECT_THAT(tokens_of(small(), "[CLS]"), ElementsAre("[", "cl", "##s", "]"));
}

TEST(Tokenizer, LongWordsAreUnknownCountedInCharacters) {
  const Tokenizer limited = small({.lower_case = false, .max_word_chars = 2});
  EXPECT_THAT(tokens_of(limited, "un"), ElementsAre("un"));
  EXPECT_THAT(tokens_of(limited, "want"), ElementsAre("[UNK]"));
  const auto accents = Tokenizer::from_tokens({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "é", "##é"},
                                              {.lower_case = false, .max_word_chars = 3});
  EXPECT_THAT(tokens_of(accents, "ééé"), ElementsAre("é", "##é", "##é")) << "6 bytes, 3 characters";
  EXPECT_THAT(tokens_of(accents, "éééé"), ElementsAre("[UNK]"));
  std::string word = "a";
  while (word.size() < 100) word += "a";
  const auto letters = Tokenizer::from_tokens({"[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "##a"});
  EXPECT_EQ(tokens_of(letters, word).size(), 100u);
  EXPECT_THAT(tokens_of(letters, word + "a"), ElementsAre("[UNK]"));
}

TEST(Tokenizer, IdsAndTokensAreInverse) {
  const Tokenizer tokenizer = small();
  EXPECT_EQ(tokenizer.vocabulary_size(), tokens.size());
  EXPECT_EQ(tokenizer.token_id("[SEP]"), 3);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(tokenizer.token_id(tokens[i]), static_cast<int>(i));
    EXPECT_EQ(tokenizer.token(static_cast<int>(i)), tokens[i]);
  }
  EXPECT_ERROR(HasSubstr("tokenizer.json"), tokenizer.encode_with_spans("x"));
  EXPECT_ERROR(HasSubstr("\"zebra\""), tokenizer.token_id("zebra"));
  EXPECT_ERROR(HasSubstr("-1"), tokenizer.token(-1));
  EXPECT_ERROR(HasSubstr("21"), tokenizer.token(21));
}

TEST(Tokenizer, WithSpansItMakesTheSameTokensAndTellsWhereTheyAre) {
  const std::string text = "UNwanted  é unaffx, want 東京";
  for (const TokenizerOptions& options :
       {TokenizerOptions{}, {.lower_case = false}, {.lower_case = true, .strip_accents = false}}) {
    const Tokenizer plain = small(options), spans = plain.as_tokenizer_json();
    EXPECT_EQ(tokens_of(spans, text), tokens_of(plain, text));
    EXPECT_EQ(spans.vocabulary_size(), plain.vocabulary_size());
    EXPECT_EQ(spans.special().before, plain.special().before);
    EXPECT_EQ(spans.special().pair_between, plain.special().pair_between);
    EXPECT_EQ(spans.special().pair_after, plain.special().pair_after);
  }
  const Encoding encoding = small().as_tokenizer_json().encode_with_spans(text);
  ASSERT_EQ(encoding.spans.size(), 9u);
  EXPECT_EQ(encoding.spans[1], (Span{2, 6})) << "##want";
  EXPECT_EQ(encoding.spans[4], (Span{13, 19})) << "unaffx, unknown, after two bytes of é";
  EXPECT_THAT(tokens_of(small().as_tokenizer_json(), "un[SEP]"), ElementsAre("un", "[SEP]"));
}

TEST(Vocabulary, TheLastNewlineMayBeMissing) {
  const ScratchFile with("[PAD]\n[UNK]\n[CLS]\n[SEP]\nword\n");
  EXPECT_EQ(Tokenizer::from_file(with.path()).vocabulary_size(), 5u);
  const ScratchFile without("[PAD]\n[UNK]\n[CLS]\n[SEP]\nword");
  const auto tokenizer = Tokenizer::from_file(without.path());
  EXPECT_EQ(tokenizer.vocabulary_size(), 5u);
  EXPECT_EQ(tokenizer.token_id("word"), 4);
}

TEST(Vocabulary, LinesAreStripped) {
  const ScratchFile file("[PAD]\r\n[UNK]\r\n [CLS] \r\n[SEP]\r\n\r\nword\r\n");
  const auto tokenizer = Tokenizer::from_file(file.path());
  EXPECT_EQ(tokenizer.token_id("[CLS]"), 2);
  EXPECT_EQ(tokenizer.token_id("word"), 5) << "an empty line keeps its number";
}

TEST(Vocabulary, BadFilesAreNamed) {
  EXPECT_ERROR(AllOf(HasSubstr("/nowhere/vocab.txt"), HasSubstr("No such file")),
               Tokenizer::from_file("/nowhere/vocab.txt"));
  EXPECT_ERROR(HasSubstr("directory"), Tokenizer::from_file("/tmp"));
  const ScratchFile file("[PAD]\n[UNK]\nword\n");
  EXPECT_ERROR(AllOf(HasSubstr(file.path().string()), HasSubstr("lacks [CLS], [SEP]")),
               Tokenizer::from_file(file.path()));
  const ScratchFile empty("");
  EXPECT_ERROR(HasSubstr("[PAD], [UNK], [CLS], [SEP]"), Tokenizer::from_file(empty.path()));
}

TEST(Vocabulary, WhatIsNotATokenizerIsNamed) {
  const auto refusal = [](const std::string& content) {
    const ScratchFile file(content);
    return error_of([&] { Tokenizer::from_file(file.path()); });
  };
  // The first piece of a model: field 1 of 14 bytes, with the text "<unk>", score 0 and type 2.
  const std::string piece("\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02", 16);
  EXPECT_THAT(refusal(piece), AllOf(HasSubstr("file.txt: a SentencePiece model whose ids"),
                                    HasSubstr("save_pretrained")));
  EXPECT_THAT(refusal(piece + "\n\xff"), HasSubstr("damaged SentencePiece model"));
  EXPECT_THAT(refusal(R"({"model": {"type": "WordLevel", "vocab": {}}})"),
              AllOf(HasSubstr("/file.txt: "), HasSubstr("unsupported type 'WordLevel'"),
                    HasSubstr("Unigram"), HasSubstr("bertcl run")));
  EXPECT_THAT(refusal(R"( {"<s>": 0, "Unigrams": 1})"), HasSubstr("is JSON"));
}

}  // namespace
}  // namespace bertcl::text
