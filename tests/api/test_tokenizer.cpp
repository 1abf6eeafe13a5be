// SPDX-License-Identifier: Apache-2.0
// The public tokenizer: special tokens, token types, truncation.
#include <fstream>

#include "bertcl/error.hpp"
#include "bertcl/quantize.hpp"
#include "tests/api/model.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl {
namespace {

class ApiTokenizer : public testing::Test {
 protected:
  std::vector<std::string> tokens(const Sequences& s) const {
    std::vector<std::string> all;
    for (const std::int64_t id : s.ids) all.push_back(tokenizer_.token(id));
    return all;
  }
  Tokenizer tokenizer_ = Tokenizer::load(tests::folder / "vocab.txt");
};

TEST_F(ApiTokenizer, TextsAndPairsAreFramed) {
  const Sequences texts = tokenizer_.encode_texts({"Hello world!", "Who?"});
  EXPECT_THAT(tokens(texts),
              ElementsAre("[CLS]", "hello", "world", "!", "[SEP]", "[CLS]", "who", "?", "[SEP]"));
  EXPECT_THAT(texts.offsets, ElementsAre(0, 5, 9));
  EXPECT_THAT(texts.token_type_ids, Each(0));
  const Sequences pair = tokenizer_.encode_pairs({{"Who?", "Ada did."}});
  EXPECT_THAT(tokens(pair), ElementsAre("[CLS]", "who", "?", "[SEP]", "ada", "did", ".", "[SEP]"));
  EXPECT_THAT(pair.token_type_ids, ElementsAre(0, 0, 0, 0, 1, 1, 1, 1));
  EXPECT_EQ(tokenizer_.size(), 30522);
  EXPECT_EQ(tokenizer_.id("[CLS]"), 101);
}

TEST_F(ApiTokenizer, TheLongerOneIsTruncated) {
  EXPECT_THAT(tokens(tokenizer_.encode_texts({"a b c d e"}, 4)),
              ElementsAre("[CLS]", "a", "b", "[SEP]"));
  EXPECT_THAT(tokens(tokenizer_.encode_pairs({{"a b", "c d e f g h"}}, 8)),
              ElementsAre("[CLS]", "a", "b", "[SEP]", "c", "d", "e", "[SEP]"));
  EXPECT_THAT(tokens(tokenizer_.encode_pairs({{"a b c", "d e f g h"}}, 8)),
              ElementsAre("[CLS]", "a", "b", "[SEP]", "d", "e", "f", "[SEP]"));
  EXPECT_ERROR(HasSubstr("no room"), tokenizer_.encode_texts({"a"}, 1));
}

TEST_F(ApiTokenizer, ATokenizerJsonSaysTheSameAsAVocabulary) {
  const tests::ScratchFolder folder;
  const std::string json = Tokenizer::json_of(tests::folder / "vocab.txt");
  folder.write("tokenizer.json", json);
  const std::string text = "Zürich, [MASK] unaffable \u4eac";
  EXPECT_EQ(Tokenizer::load(folder / "tokenizer.json").encode(text), tokenizer_.encode(text));
  EXPECT_EQ(Tokenizer::json_of(folder / "tokenizer.json"), json);
  EXPECT_ERROR(HasSubstr("vocab.txt"), Tokenizer::json_of(folder / "vocab.txt"));
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n\xe9");
  EXPECT_ERROR(HasSubstr("vocab.txt: a token, or a line of merges.txt, is not UTF-8"),
               Tokenizer::json_of(folder / "vocab.txt"));
  folder.write("vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4})");
  folder.write("merges.txt", "a \xe9\n");
  EXPECT_ERROR(HasSubstr("vocab.json: a token, or a line of merges.txt, is not UTF-8"),
               Tokenizer::json_of(folder / "vocab.json"));
}

TEST_F(ApiTokenizer, IsFoundBesideAModelWithWhatItsConfigSays) {
  const tests::ScratchFolder folder;
  std::ofstream(folder / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\nada\nAda\n";
  EXPECT_THAT(Tokenizer::load_beside(folder / "model.onnx").encode("Ada"), ElementsAre(4));
  std::ofstream(folder / "tokenizer_config.json") << R"({"do_lower_case": false})";
  EXPECT_THAT(Tokenizer::load_beside(folder / "model.onnx").encode("Ada"), ElementsAre(5));
  EXPECT_THAT(Tokenizer::load(folder / "vocab.txt").encode("Ada"), ElementsAre(5));
  std::ofstream(folder / "tokenizer_config.json") << R"({"do_lower_case": 1})";
  EXPECT_ERROR(HasSubstr("tokenizer_config.json: do_lower_case"),
               Tokenizer::load(folder / "vocab.txt"));
  std::filesystem::remove(folder / "vocab.txt");
  EXPECT_ERROR(HasSubstr("no vocabulary at"), Tokenizer::load_beside(folder / "model.onnx"));
}

TEST_F(ApiTokenizer, ATokenizerJsonIsGivenWithWhatTheConfigSays) {
  const tests::ScratchFolder folder;
  folder.write("tokenizer.json", Tokenizer::json_of(tests::folder / "vocab.txt"));
  folder.write("tokenizer_config.json", R"({"do_lower_case": false})");
  const std::string json = Tokenizer::json_of(folder / "tokenizer.json");
  EXPECT_THAT(json, HasSubstr(R"("lowercase":false)"));
  std::filesystem::remove(folder / "tokenizer_config.json");
  EXPECT_THAT(Tokenizer::json_of(folder / "tokenizer.json"), HasSubstr(R"("lowercase":true)"));
}

TEST_F(ApiTokenizer, WithoutAPostProcessorABertHasItsTokensAroundTexts) {
  const tests::ScratchFolder folder;
  const auto file = folder.write("tokenizer.json", R"({"model": {"type": "WordPiece",
      "vocab": {"[UNK]": 0, "[SEP]": 1, "a": 2}}, "added_tokens": [{"id": 3, "content": "[CLS]"}],
      "normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type": "BertPreTokenizer"},
      "post_processor": null})");
  EXPECT_THAT(Tokenizer::load(file).encode("a"), ElementsAre(2));
  EXPECT_THAT(Tokenizer::load(file).encode_pairs({{"a", "a"}}).ids, ElementsAre(3, 2, 1, 2, 1));
  folder.write("copy.json", Tokenizer::json_of(file));
  EXPECT_THAT(Tokenizer::json_of(file), HasSubstr(R"("type":"BertProcessing")"));
  EXPECT_THAT(Tokenizer::load(folder / "copy.json").encode_pairs({{"a", "a"}}).ids,
              ElementsAre(3, 2, 1, 2, 1));
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "PreTrainedTokenizerFast"})");
  EXPECT_THAT(Tokenizer::load(file).encode_pairs({{"a", "a"}}).ids, ElementsAre(2, 2));
  EXPECT_THAT(Tokenizer::json_of(file), Not(HasSubstr("BertProcessing")));
}

TEST_F(ApiTokenizer, PairsHaveTheTokenTypesThatTheConfigNames) {
  const tests::ScratchFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\na\n");
  const auto types = [&](const char* file) {
    return Tokenizer::load(folder / file).encode_pairs({{"a", "a"}}).token_type_ids;
  };
  const std::vector<std::int64_t> segments = {0, 0, 0, 1, 1}, none(5, 0);
  folder.write("tokenizer.json", Tokenizer::json_of(folder / "vocab.txt"));
  for (const char* file : {"vocab.txt", "tokenizer.json"}) {
    folder.write("tokenizer_config.json", "{}");
    EXPECT_EQ(types(file), segments);
    folder.write("tokenizer_config.json", R"({"model_input_names": ["input_ids"]})");
    EXPECT_EQ(types(file), none);
    folder.write("tokenizer_config.json", R"({"model_input_names": ["token_type_ids"]})");
    EXPECT_EQ(types(file), segments);
    folder.write("tokenizer_config.json", R"({"tokenizer_class": "TokenizersBackend"})");
    EXPECT_EQ(types(file), none) << "as of transformers 5";
    folder.write("tokenizer_config.json", R"({"tokenizer_class": "TokenizersBackend",
                                              "model_input_names": ["token_type_ids"]})");
    EXPECT_EQ(types(file), segments);
    folder.write("tokenizer_config.json", R"({"model_input_names": [1]})");
    EXPECT_ERROR(HasSubstr("tokenizer_config.json: model_input_names[0]"), types(file));
  }
}

TEST_F(ApiTokenizer, AFolderStandsForTheModelInIt) {
  const tests::ScratchFolder folder;
  std::filesystem::create_directory(folder / "hub");
  std::filesystem::create_directory(folder / "hub" / "onnx");
  std::ofstream(folder / "hub" / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\nada\n";
  EXPECT_ERROR(HasSubstr("neither model.onnx nor onnx/model.onnx"),
               Tokenizer::load_beside(folder / "hub"));
  std::ofstream(folder / "hub" / "onnx" / "model.onnx") << "a model";
  EXPECT_THAT(Tokenizer::load_beside(folder / "hub").encode("Ada"), ElementsAre(4));
  std::ofstream(folder / "hub" / "model.onnx") << "a model";
  EXPECT_THAT(Tokenizer::load_beside(folder / "hub").encode("Ada"), ElementsAre(4));
}

TEST_F(ApiTokenizer, PathsThatNameNoFileAreRefused) {
  const tests::ScratchFolder folder;
  std::ofstream(folder / "vocab.txt") << "[PAD]\n[UNK]\n[CLS]\n[SEP]\nada\n";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  EXPECT_THAT(Tokenizer::load_beside("model.onnx").encode("ada"), ElementsAre(4));
  EXPECT_ERROR("the path of the model is empty", Tokenizer::load_beside(""));
  EXPECT_ERROR_CODE(ErrorCode::io, Tokenizer::load_beside(""));
  std::filesystem::current_path(before);
  EXPECT_ERROR("the path of the vocabulary is empty", Tokenizer::load(""));
  EXPECT_ERROR_CODE(ErrorCode::io, Tokenizer::load(""));
  const std::string text(100'000, 'a');
  EXPECT_ERROR("the path of the vocabulary has 100000 bytes, expected less than 4096",
               Tokenizer::load(text));
  EXPECT_ERROR(HasSubstr("the path of the model has 100000 bytes"), Tokenizer::load_beside(text));
}

TEST_F(ApiTokenizer, SpecialTokensInATextAreFoundExceptInQuestionsAndContexts) {
  EXPECT_THAT(tokens(tokenizer_.encode_texts({"a [MASK]"})),
              ElementsAre("[CLS]", "a", "[MASK]", "[SEP]"));
  const tests::ScratchFolder folder;
  std::ofstream(folder / "squad.json")
      << R"({"version": "1.1", "data": [{"title": "", "paragraphs": [{"context": "a [MASK]", "qas":
             [{"id": "1", "question": "[SEP]?", "answers": [{"text": "a", "answer_start": 0}]}]}]}]})";
  EXPECT_THAT(tokens(read_squad_samples(folder / "squad.json", tokenizer_, 1, 64)),
              ElementsAre("[CLS]", "[", "sep", "]", "?", "[SEP]", "a", "[", "mask", "]", "[SEP]"));
  std::ofstream(folder / "texts.txt") << "a [MASK]\n";
  SampleOptions options;
  options.task = "text";
  EXPECT_THAT(tokens(read_samples(folder / "texts.txt", tokenizer_, options)),
              ElementsAre("[CLS]", "a", "[MASK]", "[SEP]"));
}

TEST_F(ApiTokenizer, WhatIsNotThereIsAnError) {
  EXPECT_ERROR(HasSubstr("[NONE]"), tokenizer_.id("[NONE]"));
  EXPECT_THROW(tokenizer_.token(30522), Error);
  EXPECT_THROW(tokenizer_.token(-1), Error);
  EXPECT_ERROR(HasSubstr("/nowhere/vocab.txt"), Tokenizer::load("/nowhere/vocab.txt"));
}

}  // namespace
}  // namespace bertcl
