// SPDX-License-Identifier: Apache-2.0
// Vocabularies of other tokenizers, by the files beside them. Classes: AutoTokenizer of
// transformers 5.23.0 and 4.57.6 in folders with these files.
#include "text/tokenizer_files.hpp"

#include <string>

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::text {
namespace {

class TokenizerFiles : public testing::Test {
 protected:
  Tokenizer load() const { return Tokenizer::from_file(folder_ / vocabulary_); }

  void write(const std::string& name, const std::string& content) {
    vocabulary_ = name;
    folder_.write(name, content);
  }
  void write_word_pieces() { write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n"); }
  void write_merges() {
    folder_.write("merges.txt", "t h\nth e\nĠ the\n");
    write("vocab.json", R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "t": 5,
                            "h": 6, "e": 7, "Ġ": 8, "th": 9, "the": 10, "Ġthe": 11})");
  }
  void write_sentence_piece() {
    std::string model;
    for (const std::string token : {"<unk>", "<s>", "</s>", "▁the"}) {
      const std::string text = "\n" + std::string(1, static_cast<char>(token.size())) + token;
      const std::string score{'\x15', '\0', '\0', '\0', '\0'};
      model += "\n" + std::string(1, static_cast<char>(text.size() + score.size())) + text + score;
    }
    write("sentencepiece.bpe.model", model);
  }

  void config(const std::string& content) { folder_.write("config.json", content); }
  void tokenizer_config(const std::string& content) {
    folder_.write("tokenizer_config.json", content);
  }
  void expect_refused(const std::string& family) {
    EXPECT_ERROR(AllOf(HasSubstr(vocabulary_), HasSubstr("of " + family),
                       HasSubstr("tokenizer.json by transformers")),
                 load());
  }

  tests::ScratchFolder folder_;
  std::string vocabulary_;
};

TEST_F(TokenizerFiles, ConfigJsonNamesTheClassWhereTheTokenizersFileIsSilent) {
  write_word_pieces();
  tokenizer_config(R"({"do_lower_case": false})");
  config(R"({"model_type": "bert", "tokenizer_class": "BertJapaneseTokenizer"})");
  expect_refused("BertJapaneseTokenizer");
  config(R"({"model_type": "bert", "tokenizer_class": null})");
  EXPECT_THAT(load().encode("the"), ElementsAre(4));
  config(R"({"tokenizer_class": "BertJapaneseTokenizer"})");
  tokenizer_config(R"({"tokenizer_class": "BertTokenizerFast"})");
  EXPECT_THAT(load().encode("the"), ElementsAre(4));
}

TEST_F(TokenizerFiles, WordPiecesOfAnotherClassThanBertsAreRefused) {
  write_word_pieces();
  for (const char* known : {"null", R"("BertTokenizer")", R"("DistilBertTokenizerFast")",
                            R"("PreTrainedTokenizerFast")", R"("TokenizersBackend")"}) {
    tokenizer_config(R"({"tokenizer_class": )" + std::string(known) + "}");
    EXPECT_THAT(load().encode("the"), ElementsAre(4)) << known;
  }
  for (const char* other : {"MPNetTokenizer", "BertJapaneseTokenizer", "RoFormerTokenizerFast"}) {
    tokenizer_config(R"({"tokenizer_class": ")" + std::string(other) + "\"}");
    expect_refused(other);
  }
  tokenizer_config("{}");
  config(R"({"model_type": "roformer"})");
  expect_refused("roformer");
}

TEST_F(TokenizerFiles, MergesOfAnotherClassThanRobertasAreRefused) {
  write_merges();
  for (const char* known : {"{}", R"({"tokenizer_class": "RobertaTokenizerFast"})",
                            R"({"tokenizer_class": "BartTokenizer"})",
                            R"({"tokenizer_class": "PreTrainedTokenizerFast"})"}) {
    tokenizer_config(known);
    EXPECT_THAT(load().encode("the the"), ElementsAre(10, 11)) << known;
  }
  tokenizer_config("{}");
  config(R"({"model_type": "bert", "tokenizer_class": "HerbertTokenizerFast"})");
  expect_refused("HerbertTokenizerFast");
}

TEST_F(TokenizerFiles, RobertasTextsBeginWithASpaceWhereTheConfigurationSaysSo) {
  write_merges();
  EXPECT_THAT(load().encode("the the"), ElementsAre(10, 11));
  tokenizer_config(R"({"add_prefix_space": true})");
  const Encoding read = load().encode_with_spans("the the");
  EXPECT_THAT(read.ids, ElementsAre(11, 11));
  EXPECT_EQ(read.spans[0].begin, 0U);
  EXPECT_EQ(read.spans[1].begin, 4U) << "without its space";
  folder_.write("copy.json", Tokenizer::json_of(folder_ / vocabulary_));
  EXPECT_THAT(Tokenizer::from_file(folder_ / "copy.json").encode("the the"), ElementsAre(11, 11));
  tokenizer_config(R"({"add_prefix_space": "yes"})");
  EXPECT_ERROR(HasSubstr("tokenizer_config.json: add_prefix_space is of type string"), load());
}

TEST_F(TokenizerFiles, PiecesThatAreNumberedInAnotherWayThanXlmRobertasAreRefused) {
  write_sentence_piece();
  for (const char* known :
       {"{}", R"({"model_type": "xlm-roberta"})",
        R"({"model_type": "bert", "tokenizer_class": "XLMRobertaTokenizer"})"}) {
    config(known);
    EXPECT_THAT(load().encode("the"), ElementsAre(4)) << known;
  }
  config(R"({"model_type": "camembert"})");
  expect_refused("camembert");
  config(R"({"model_type": "bert", "tokenizer_class": "CamembertTokenizer"})");
  expect_refused("CamembertTokenizer");
  tokenizer_config(R"({"tokenizer_class": "XLMRobertaTokenizerFast"})");
  EXPECT_THAT(load().encode("the"), ElementsAre(4));
}

}  // namespace
}  // namespace bertcl::text
