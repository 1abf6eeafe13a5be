// SPDX-License-Identifier: Apache-2.0
// tokenizer.json: the form that transformers 5.23.0 saves, what is taken from it, what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/error_of.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/tokenizer_json.hpp"

namespace bertcl::text {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using tests::error_of;

/// As BertTokenizer(vocab=..).save_pretrained() writes it, flags of added tokens left out.
const json saved = json::parse(R"({
  "version": "1.0", "truncation": null, "padding": null,
  "added_tokens": [{"id": 0, "content": "[PAD]", "special": true},
                   {"id": 1, "content": "[UNK]", "special": true},
                   {"id": 2, "content": "[CLS]", "special": true},
                   {"id": 3, "content": "[SEP]", "special": true},
                   {"id": 10, "content": "[MASK]", "special": true}],
  "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true,
                 "strip_accents": null, "lowercase": true},
  "pre_tokenizer": {"type": "BertPreTokenizer"},
  "post_processor": {"type": "TemplateProcessing"},
  "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
  "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "Café": 4, "café": 5,
                      "cafe": 6, "東": 7, "##京": 8, "京": 9}}})");

WordPieceTokenizer tokenizer(const json& file, const TokenizerOptions& options = {}) {
  const tests::ScratchFolder folder;
  std::ofstream(folder / "tokenizer.json") << file;
  return WordPieceTokenizer::from_file(folder / "tokenizer.json", options);
}

/// What is saved with another value at a place: "/model/type".
json with(const char* place, const json& value) {
  json file = saved;
  file[json::json_pointer(place)] = value;
  return file;
}

TEST(TokenizerJson, GivesVocabularyAndSettings) {
  const WordPieceTokenizer found = tokenizer(saved);
  EXPECT_EQ(found.vocabulary_size(), 11u);
  EXPECT_EQ(found.token_id("東"), 7);
  EXPECT_EQ(found.token_id("[MASK]"), 10) << "added";
  EXPECT_THAT(found.tokenize("Café 東京"), ElementsAre("cafe", "東", "京"));
  const json cased = with("/normalizer/lowercase", false);
  EXPECT_THAT(tokenizer(cased).tokenize("Café"), ElementsAre("Café"));
  EXPECT_THAT(tokenizer(with("/normalizer/strip_accents", false)).tokenize("Café"),
              ElementsAre("café"));
  EXPECT_THAT(tokenizer(with("/normalizer/handle_chinese_chars", false)).tokenize("東京"),
              ElementsAre("東", "##京"));
  EXPECT_THAT(tokenizer(with("/model/max_input_chars_per_word", 3)).tokenize("cafe"),
              ElementsAre("[UNK]"));
  EXPECT_THAT(tokenizer(saved, {.lower_case = false}).tokenize("Café"), ElementsAre("Café"))
      << "options come first";
}

TEST(TokenizerJson, IdsMayHaveGaps) {  // of a vocab.txt with a line twice
  const WordPieceTokenizer found = tokenizer(with("/model/vocab/word", 20));
  EXPECT_EQ(found.vocabulary_size(), 21u);
  EXPECT_EQ(found.token_id("word"), 20);
  EXPECT_EQ(found.token(15), "");
  EXPECT_THAT(found.encode("word"), ElementsAre(20));
}

TEST(TokenizerJson, WhatIsNotBertsIsRefusedByName) {
  const auto refusal = [](const char* place, const json& value) {
    return error_of([&] { tokenizer(with(place, value)); });
  };
  EXPECT_THAT(refusal("/model/type", "BPE"),
              AllOf(HasSubstr("tokenizer.json: model is of kind BPE; expected WordPiece"),
                    HasSubstr("bertcl run")));
  EXPECT_THAT(refusal("/model/type", "Unigram"), HasSubstr("model is of kind Unigram"));
  EXPECT_THAT(refusal("/model/unk_token", "<unk>"), HasSubstr("model.unk_token is \"<unk>\""));
  EXPECT_THAT(refusal("/model/continuing_subword_prefix", "@@"),
              HasSubstr("model.continuing_subword_prefix is \"@@\""));
  EXPECT_THAT(refusal("/normalizer", {{"type", "Sequence"}, {"normalizers", json::array()}}),
              HasSubstr("normalizer is of kind Sequence; expected BertNormalizer"));
  EXPECT_THAT(refusal("/normalizer", nullptr), HasSubstr("has no normalizer"));
  EXPECT_THAT(refusal("/normalizer/clean_text", false),
              HasSubstr("normalizer.clean_text is false"));
  EXPECT_THAT(refusal("/pre_tokenizer/type", "Whitespace"),
              HasSubstr("pre_tokenizer is of kind Whitespace"));
  EXPECT_THAT(refusal("/added_tokens/4/content", "<ent>"),
              HasSubstr("added_tokens[4] adds the token \"<ent>\""));
  json without = saved;
  without["model"]["vocab"].erase("[CLS]");
  without["added_tokens"].erase(2);
  EXPECT_THAT(error_of([&] { tokenizer(without); }),
              AllOf(HasSubstr("tokenizer.json"), HasSubstr("lacks [CLS]")));
}

TEST(TokenizerJson, DamageIsNamedByItsPlace) {
  const auto refusal = [](const char* place, const json& value) {
    return error_of([&] { tokenizer(with(place, value)); });
  };
  EXPECT_THAT(refusal("/model", nullptr), HasSubstr("has no model"));
  EXPECT_THAT(refusal("/model/type", 3), HasSubstr("model.type is of type number"));
  EXPECT_THAT(refusal("/model/vocab", json::array({"[PAD]"})),
              HasSubstr("model.vocab is of type array, expected object"));
  EXPECT_THAT(refusal("/model/vocab/word", "11"), HasSubstr("model.vocab.word is of type string"));
  EXPECT_THAT(refusal("/model/vocab/word", 1.5), HasSubstr("expected integer"));
  EXPECT_THAT(refusal("/model/vocab/word", -1), HasSubstr("model.vocab.word is the id -1"));
  EXPECT_THAT(refusal("/model/vocab/word", 2000000000), HasSubstr("is the id 2000000000"));
  EXPECT_THAT(refusal("/model/vocab/word", 5),
              HasSubstr("is the id 5, which \"café\" already has"));
  EXPECT_THAT(refusal("/added_tokens/0/id", 20),
              HasSubstr("added_tokens[0].id is the id 20, but \"[PAD]\" already has the id 0"));
  EXPECT_THAT(refusal("/model/max_input_chars_per_word", 0), HasSubstr("is 0; expected"));
  EXPECT_THAT(refusal("/normalizer/lowercase", "yes"),
              HasSubstr("normalizer.lowercase is of type string, expected boolean"));
  EXPECT_THAT(refusal("/added_tokens", 3), HasSubstr("added_tokens is of type number"));
  json without = saved;
  without["model"].erase("vocab");
  EXPECT_THAT(error_of([&] { tokenizer(without); }), HasSubstr("model.vocab is missing"));
  EXPECT_THAT(error_of([] {
                tokenizer({{"<s>", 0}});
              }),
              HasSubstr("is JSON, but not a tokenizer.json"));
  const std::string whole = saved.dump();
  for (std::size_t size = 1; size < whole.size(); size += 7)
    EXPECT_THAT(error_of([&] { parse_tokenizer_json(whole.substr(0, size), "t.json"); }),
                StartsWith("t.json: broken JSON: unexpected end of file"));
}

TEST(TokenizerJson, GivesTheTokensOfTheVocabularyItWasMadeOf) {
  const auto expected =
      WordPieceTokenizer::from_file(BERTCL_SOURCE_DIR "/models/minilm-l6-squad/vocab.txt");
  json file = saved;
  file["added_tokens"] = json::array();
  json& vocabulary = file["model"]["vocab"] = json::object();
  for (std::size_t i = 0; i < expected.vocabulary_size(); ++i)
    vocabulary[expected.token(static_cast<std::int32_t>(i))] = i;
  const WordPieceTokenizer found = tokenizer(file);
  EXPECT_EQ(found.vocabulary_size(), expected.vocabulary_size());
  const std::string text = "Khronos' OpenCL™ unaffably runs 日本語 in Zürich, naïvely: 3.14 €";
  EXPECT_EQ(found.encode(text), expected.encode(text));
}

}  // namespace
}  // namespace bertcl::text
