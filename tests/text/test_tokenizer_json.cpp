// SPDX-License-Identifier: Apache-2.0
// tokenizer.json: the form that transformers 5.23.0 saves, what is taken from it, what is refused.
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/files.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/support/tokenizer_json.hpp"
#include "tests/support/tokens_of.hpp"
#include "text/base/json_file.hpp"
#include "text/tokenizer_json.hpp"

namespace bertcl::text {
namespace {

using nlohmann::json;

const json saved = [] {
  json file = tests::bert_tokenizer_json(
      {{"Café", 4}, {"café", 5}, {"cafe", 6}, {"東", 7}, {"##京", 8}, {"京", 9}});
  file["added_tokens"].push_back({{"id", 10}, {"content", "[MASK]"}, {"special", true}});
  return file;
}();

Tokenizer tokenizer(const json& file, const TokenizerOptions& options = {}) {
  const tests::ScratchFolder folder;
  std::ofstream(folder / "tokenizer.json") << file;
  return Tokenizer::from_file(folder / "tokenizer.json", options);
}

/// What is saved with another value at a place: "/model/type".
json with(const char* place, const json& value) {
  json file = saved;
  file[json::json_pointer(place)] = value;
  return file;
}

TEST(TokenizerJson, GivesVocabularyAndSettings) {
  const Tokenizer found = tokenizer(saved);
  EXPECT_EQ(found.vocabulary_size(), 11u);
  EXPECT_EQ(found.token_id("東"), 7);
  EXPECT_EQ(found.token_id("[MASK]"), 10) << "added";
  EXPECT_THAT(tokens_of(found, "Café 東京"), ElementsAre("cafe", "東", "京"));
  const json cased = with("/normalizer/lowercase", false);
  EXPECT_THAT(tokens_of(tokenizer(cased), "Café"), ElementsAre("Café"));
  EXPECT_THAT(tokens_of(tokenizer(with("/normalizer/strip_accents", false)), "Café"),
              ElementsAre("café"));
  EXPECT_THAT(tokens_of(tokenizer(with("/normalizer/handle_chinese_chars", false)), "東京"),
              ElementsAre("東", "##京"));
  EXPECT_THAT(tokens_of(tokenizer(with("/model/max_input_chars_per_word", 3)), "cafe"),
              ElementsAre("[UNK]"));
  EXPECT_THAT(tokens_of(tokenizer(saved, {.lower_case = false}), "Café"), ElementsAre("Café"))
      << "options come first";
}

TEST(TokenizerJson, LowerCasesTextsButForTokensThatAreNotNormalized) {
  json file = with("/normalizer/lowercase", false);
  file["added_tokens"].push_back({{"id", 11}, {"content", "NEW"}, {"normalized", true}});
  file["added_tokens"].push_back({{"id", 12}, {"content", "[KEPT]"}, {"normalized", false}});
  EXPECT_EQ(tokenizer(file).lower_cased("Ab [KEPT]C ΣΑΣ NEW İ [kept]"),
            "ab [KEPT]c σασ new i̇ [kept]");
  EXPECT_EQ(tokenizer(file).lower_cased(""), "");
}

TEST(TokenizerJson, IdsMayHaveGaps) {  // of a vocab.txt with a line twice
  const Tokenizer found = tokenizer(with("/model/vocab/word", 20));
  EXPECT_EQ(found.vocabulary_size(), 21u);
  EXPECT_EQ(found.token_id("word"), 20);
  EXPECT_EQ(found.token(15), "");
  EXPECT_THAT(found.encode("word"), ElementsAre(20));
}

TEST(TokenizerJson, WhatIsNotSupportedIsRefusedByName) {
  const auto refusal = [](const char* place, const json& value) {
    return error_of([&] { tokenizer(with(place, value)); });
  };
  EXPECT_THAT(
      refusal("/model/type", "WordLevel"),
      AllOf(HasSubstr("tokenizer.json: model has unsupported type 'WordLevel' (supported: BPE"),
            HasSubstr("bertcl run")));
  EXPECT_THAT(refusal("/model/unk_token", "<unk>"),
              HasSubstr("model has the unk_token \"<unk>\", which its vocabulary lacks"));
  EXPECT_THAT(refusal("/normalizer/type", "Uppercase"),
              HasSubstr("normalizer has unsupported type 'Uppercase' (supported: BertNormalizer"));
  EXPECT_THAT(refusal("/pre_tokenizer/type", "UnicodeScripts"),
              HasSubstr("pre_tokenizer has unsupported type 'UnicodeScripts' (supported: Bert"));
  EXPECT_THAT(
      refusal("/pre_tokenizer",
              json::parse(R"({"type": "Sequence", "pretokenizers": [{"type": "Whitespace"},
                        {"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"}]})")),
      HasSubstr(
          "pre_tokenizer.pretokenizers[1].pattern.Regex is not a valid ICU regular expression"));
  EXPECT_THAT(
      refusal("/pre_tokenizer", json::parse(R"({"type": "Punctuation", "behavior": "Kept"})")),
      HasSubstr("pre_tokenizer.behavior is \"Kept\" (choose from Removed, Isolated"));
  EXPECT_THAT(refusal("/post_processor/type", "Other"),
              HasSubstr("post_processor has unsupported type 'Other' (supported: BertProcessing"));
  EXPECT_THAT(
      refusal("/post_processor/sep", json::array({"[SEP]", 99})),
      HasSubstr("post_processor adds token id 99, which is not in the vocabulary of 11 tokens"));
  EXPECT_THAT(refusal("/truncation", {{"max_length", 8}, {"direction", "Up"}}),
              HasSubstr("truncation.direction is \"Up\" (choose from Right, Left)"));
}

// As transformers writes it for Llama and Gemma, with a token before each text.
TEST(TokenizerJson, TypeOneMayBeginBetweenTheTexts) {
  json file = saved;
  file["post_processor"] = json::parse(R"({"type": "TemplateProcessing", "special_tokens":
    {"B": {"id": "B", "ids": [2], "tokens": ["[CLS]"]}, "E": {"id": "E", "ids": [3], "tokens": ["[SEP]"]}},
    "single": [{"SpecialToken": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"SpecialToken": {"id": "B", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
             {"SpecialToken": {"id": "E", "type_id": 0}}, {"SpecialToken": {"id": "B", "type_id": 1}},
             {"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "E", "type_id": 1}}]})");
  const Tokenizer made = tokenizer(file);
  const SpecialTokens& special = made.special();
  EXPECT_THAT(special.pair_between, ElementsAre(3, 2));
  EXPECT_EQ(special.second_begin(5, 9), 4u);
  std::swap(file["post_processor"]["pair"][2], file["post_processor"]["pair"][3]);
  EXPECT_ERROR(HasSubstr("unsupported token types"), tokenizer(file));
}

TEST(TokenizerJson, TemplatesOfOtherFormsAreRefused) {
  const auto refusal = [](const char* single, const char* pair) {
    json file = saved;
    file["post_processor"] = json::parse(R"({"type": "TemplateProcessing", "special_tokens":
      {"S": {"id": "S", "ids": [2, 3], "tokens": ["[CLS]", "[SEP]"]}}})");
    file["post_processor"]["single"] = json::parse(single);
    file["post_processor"]["pair"] = json::parse(pair);
    return error_of([&] { tokenizer(file); });
  };
  const char* const one = R"([{"Sequence": {"id": "A", "type_id": 0}}])";
  EXPECT_EQ(refusal(one, R"([{"Sequence": {"id": "A", "type_id": 0}},
                             {"Sequence": {"id": "B", "type_id": 1}}])"),
            kNoError);
  EXPECT_THAT(refusal(one, R"([{"Sequence": {"id": "B", "type_id": 0}},
                               {"Sequence": {"id": "A", "type_id": 1}}])"),
              HasSubstr("post_processor.pair must be the first text followed by the second"));
  EXPECT_THAT(refusal(one, R"([{"Sequence": {"id": "A", "type_id": 0}},
                               {"Sequence": {"id": "B", "type_id": 2}}])"),
              HasSubstr("post_processor.pair has unsupported token types (type_id)"));
  EXPECT_THAT(refusal(one, R"([{"SpecialToken": {"id": "S", "type_id": 1}},
                               {"Sequence": {"id": "A", "type_id": 0}},
                               {"Sequence": {"id": "B", "type_id": 1}}])"),
              HasSubstr("token types (type_id)"));
  EXPECT_THAT(refusal(R"([{"Sequence": {"id": "A", "type_id": 1}}])", one),
              AnyOf(HasSubstr("single has token types"), HasSubstr("pair must be")));
  EXPECT_THAT(refusal(R"([{"SpecialToken": {"id": "T", "type_id": 0}}])", one),
              HasSubstr("special_tokens.T is missing"));
}

TEST(TokenizerJson, NullMeansTheDefault) {
  const Tokenizer found = tokenizer(with("/model/continuing_subword_prefix", nullptr));
  EXPECT_TRUE(found.is_bert());
  EXPECT_FALSE(tokenizer(with("/model/continuing_subword_prefix", "@@")).is_bert());
}

TEST(TokenizerJson, AddedTokensAreFoundBeforeWords) {
  json file = saved;
  file["added_tokens"].push_back({{"id", 11}, {"content", "<e>"}, {"normalized", false}});
  file["added_tokens"].push_back(
      {{"id", 12}, {"content", "Caffè"}, {"normalized", true}, {"single_word", true}});
  EXPECT_THAT(tokenizer(file).encode("[MASK]cafe<e>CAFFÈ"), ElementsAre(10, 6, 11, 12));
  file["added_tokens"][5]["lstrip"] = true;
  EXPECT_THAT(tokenizer(file).encode("caffe <e>"), ElementsAre(12, 11));
  EXPECT_EQ(tokenizer(file).encode_with_spans("caffe <e>").spans[1], (Span{5, 9}));
}

TEST(TokenizerJson, SaysWhatGoesAroundTexts) {
  const SpecialTokens special = tokenizer(saved).special();
  EXPECT_THAT(special.pair_before, ElementsAre(2));
  EXPECT_THAT(special.pair_between, ElementsAre(3));
  EXPECT_TRUE(special.token_types);
  json file = saved;
  file["post_processor"]["type"] = "RobertaProcessing";
  const SpecialTokens roberta = tokenizer(file).special();
  EXPECT_THAT(roberta.pair_between, ElementsAre(3, 3));
  EXPECT_EQ(roberta.pair_count(), 4u);
  EXPECT_FALSE(roberta.token_types);
  file.erase("post_processor");
  EXPECT_THAT(tokenizer(file).special().pair_between, ElementsAre(3)) << "BERT's by default";
  EXPECT_EQ(tokenizer(saved).longest(), std::nullopt);
  const auto truncated = [&](const char* direction) {
    return tokenizer(with("/truncation", {{"max_length", 8}, {"direction", direction}}));
  };
  EXPECT_EQ(truncated("Right").longest(), 8);
  EXPECT_FALSE(truncated("Right").truncates_left());
  EXPECT_TRUE(truncated("Left").truncates_left());
}

TEST(TokenizerJson, ATypeOfNullIsNone) {
  json absent = with("/model/type", nullptr);
  EXPECT_THAT(tokens_of(tokenizer(absent), "Café 東京"), ElementsAre("cafe", "東", "京"));
  absent["model"].erase("type");
  EXPECT_THAT(tokens_of(tokenizer(absent), "Café 東京"), ElementsAre("cafe", "東", "京"));
  for (const char* part : {"/normalizer/type", "/pre_tokenizer/type", "/post_processor/type"})
    EXPECT_ERROR(AllOf(HasSubstr("type is of type null, expected string")),
                 tokenizer(with(part, nullptr)))
        << part;
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
  json bare = saved;
  bare["post_processor"] = nullptr;
  bare["normalizer"]["lowercase"] = "yes";
  EXPECT_ERROR(HasSubstr("tokenizer.json: normalizer.lowercase is of type string"),
               tokenizer(bare));
  EXPECT_THAT(refusal("/added_tokens", 3), HasSubstr("added_tokens is of type number"));
  json without = saved;
  without["model"].erase("vocab");
  EXPECT_ERROR(HasSubstr("model.vocab is missing"), tokenizer(without));
  EXPECT_ERROR(HasSubstr("is JSON, but not a tokenizer.json"), tokenizer({{"<s>", 0}}));
  const std::string whole = saved.dump();
  for (std::size_t size = 1; size < whole.size(); size += 7)
    EXPECT_ERROR(StartsWith("t.json: invalid JSON: unexpected end"),
                 make_pipeline(parse_json(whole.substr(0, size), "t.json"), "t.json"));
}

TEST(TokenizerJson, GivesTheTokensOfTheVocabularyItWasMadeOf) {
  const auto expected =
      Tokenizer::from_file(tests::source_file("models/minilm-l6-squad/vocab.txt"));
  json file = saved;
  file["added_tokens"] = json::array();
  json& vocabulary = file["model"]["vocab"] = json::object();
  for (std::size_t i = 0; i < expected.vocabulary_size(); ++i)
    vocabulary[expected.token(static_cast<std::int32_t>(i))] = i;
  const Tokenizer found = tokenizer(file);
  EXPECT_EQ(found.vocabulary_size(), expected.vocabulary_size());
  const std::string text = "Khronos' OpenCL™ unaffably runs 日本語 in Zürich, naïvely: 3.14 €";
  EXPECT_EQ(found.encode(text), expected.encode(text));
}

}  // namespace
}  // namespace bertcl::text
