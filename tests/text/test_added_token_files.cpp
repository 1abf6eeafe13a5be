// SPDX-License-Identifier: Apache-2.0
// Tokens that files beside a vocabulary add. Ids and flags: AutoTokenizer of transformers 5.23.0
// and 4.57.6, tokenizers 0.23.3, in folders with these files.
#include "text/added_token_files.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/tokenizer.hpp"

namespace bertcl::text {
namespace {

using Ids = std::vector<std::int32_t>;

class AddedTokenFiles : public testing::Test {
 protected:
  AddedTokenFiles() {
    folder_.write("vocab.txt",
                  "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nada\n<\n>\ne1\ne\n##1\nwas\nent\n[\n]\n"
                  "b\n##s\na\n");
  }

  void list(const std::string& added) { folder_.write("added_tokens.json", added); }
  void configure(const std::string& config) { folder_.write("tokenizer_config.json", config); }

  /// The same by both readers, which Python has one of.
  std::vector<Ids> ids() const {
    const Tokenizer read = Tokenizer::from_file(folder_ / "vocab.txt");
    folder_.write("copy.json", Tokenizer::json_of(folder_ / "vocab.txt"));
    const Tokenizer copy = Tokenizer::from_file(folder_ / "copy.json");
    std::vector<Ids> all;
    for (const char* text : {"the <e1> Ada<E1> was", "the<ENT>  the", "the <ent>s [B] [b]",
                             " [MASK] the", "<e1><e1>"}) {
      all.push_back(read.encode(text));
      EXPECT_EQ(copy.encode(text), all.back()) << text;
    }
    EXPECT_TRUE(read.has_spans() && read.is_bert());
    return all;
  }

  tests::ScratchFolder folder_;
};

const Ids kMaskThe = {4, 5};

TEST_F(AddedTokenFiles, AddedTokensJsonIsFoundInTheNormalizedText) {
  list(R"({"<ent>": 20, "<e1>": 19})");
  EXPECT_THAT(ids(), ElementsAre(Ids{5, 19, 6, 19, 12}, Ids{5, 20, 5},
                                 Ids{5, 20, 1, 14, 16, 15, 14, 16, 15}, kMaskThe, Ids{19, 19}));
}

TEST_F(AddedTokenFiles, SpecialOnesAreFoundInTheTextAsItIs) {
  list(R"({"<e1>": 19, "<ent>": 20})");
  const std::vector<Ids> expected = {
      {5, 19, 6, 7, 9, 8, 12}, {5, 20, 5}, {5, 20, 1, 14, 16, 15, 14, 16, 15}, kMaskThe, {19, 19}};
  configure(R"({"additional_special_tokens": ["<e1>"]})");
  EXPECT_EQ(ids(), expected);
  configure(R"({"extra_special_tokens": {"entity": {"content": "<e1>", "normalized": false}}})");
  EXPECT_EQ(ids(), expected);
  configure("{}");
  folder_.write("special_tokens_map.json", R"({"additional_special_tokens": ["<e1>"]})");
  EXPECT_EQ(ids(), expected);
  EXPECT_THAT(Tokenizer::from_file(folder_ / "vocab.txt").marked_special(),
              ElementsAre(0, 1, 2, 3, 4, 19));
}

TEST_F(AddedTokenFiles, TheDecoderGivesFlagsAndHidesTheOtherFiles) {
  list(R"({"[B]": 21})");
  folder_.write("special_tokens_map.json", R"({"additional_special_tokens": ["[B]"]})");
  configure(R"({"added_tokens_decoder": {
      "20": {"content": "<ent>", "lstrip": false, "rstrip": true, "single_word": true,
             "normalized": true, "special": false},
      "19": {"content": "<e1>", "lstrip": true, "rstrip": false, "single_word": false,
             "normalized": false, "special": true},
      "4": {"content": "[MASK]", "lstrip": true, "rstrip": false, "single_word": false,
            "normalized": false, "special": true}}})");
  EXPECT_THAT(ids(),
              ElementsAre(Ids{5, 19, 6, 7, 9, 8, 12}, Ids{5, 7, 13, 8, 5},
                          Ids{5, 7, 13, 8, 1, 14, 16, 15, 14, 16, 15}, kMaskThe, Ids{19, 19}));
  const Tokenizer read = Tokenizer::from_file(folder_ / "vocab.txt");
  EXPECT_EQ(read.encode_with_spans(" [MASK]").spans, std::vector{(Span{0, 7})}) << "lstrip";
  EXPECT_EQ(read.encode_with_spans("<ent>  a").spans[0], (Span{0, 7})) << "rstrip";
  EXPECT_EQ(read.model_vocabulary_size(), 19u);
  EXPECT_EQ(read.vocabulary_size(), 21u);
}

TEST_F(AddedTokenFiles, NamedTokensAreAddedToo) {
  folder_.write("special_tokens_map.json", R"({"additional_special_tokens": ["<ent>", "[B]"],
      "mask_token": {"content": "[MASK]", "lstrip": true, "normalized": false}})");
  EXPECT_THAT(ids(), ElementsAre(Ids{5, 7, 9, 8, 6, 7, 9, 8, 12}, Ids{5, 7, 13, 8, 5},
                                 Ids{5, 19, 1, 20, 14, 16, 15}, kMaskThe, Ids{7, 9, 8, 7, 9, 8}));
  configure(R"({"mask_token": "[GONE]", "extra_special_tokens": ["ada", "<ent>"]})");
  folder_.write("special_tokens_map.json", "{}");
  EXPECT_EQ(ids()[2], (Ids{5, 20, 1, 14, 16, 15, 14, 16, 15})) << "[GONE] is 19";
  EXPECT_EQ(Tokenizer::from_file(folder_ / "vocab.txt").find_id("[GONE]"), std::nullopt);
}

TEST_F(AddedTokenFiles, WithoutAdditionsAVocabTxtIsReadAsBefore) {
  const auto has_spans = [&] { return Tokenizer::from_file(folder_ / "vocab.txt").has_spans(); };
  EXPECT_FALSE(has_spans());
  configure(R"({"cls_token": "[CLS]", "mask_token": "[MASK]", "added_tokens_decoder": {
      "0": {"content": "[PAD]", "normalized": false, "special": true}}})");
  list(R"({"<e1>": 19})");
  EXPECT_FALSE(has_spans());
}

TEST_F(AddedTokenFiles, IdsThatTransformersDoesNotGiveAreRefused) {
  const auto read = [&] { Tokenizer::from_file(folder_ / "vocab.txt"); };
  list(R"({"<e1>": 7})");
  EXPECT_ERROR(HasSubstr("added_tokens.json: <e1> is token 7, but \"<e1>\" is token 19"), read());
  EXPECT_ERROR(HasSubstr("save_pretrained"), read());
  list(R"({"<e1>": 19, "<ent>": 21})");
  EXPECT_ERROR(HasSubstr("<ent> is token 21, but \"<ent>\" is token 20"), read());
  list(R"({"ada": 19})");
  EXPECT_ERROR(HasSubstr("\"ada\" is token 6"), read());
  list(R"({"<e1>": "x"})");
  EXPECT_ERROR(HasSubstr("added_tokens.json: <e1>"), read());
  list("{");
  EXPECT_ERROR(HasSubstr("added_tokens.json"), read());
  configure(R"({"added_tokens_decoder": {"x": {"content": "<e1>"}}})");
  EXPECT_ERROR(HasSubstr("tokenizer_config.json: added_tokens_decoder.x"), read());
  configure(R"({"added_tokens_decoder": {"19": {"content": "<e1>"}, "019": {"content": "<e2>"}}})");
  EXPECT_ERROR(HasSubstr("is token 19, but \"<e"), read());
  configure(R"({"added_tokens_decoder": {"19": {"id": 19}}})");
  EXPECT_ERROR(HasSubstr("content is missing"), read());
}

TEST_F(AddedTokenFiles, IdsCountTheTokensOfAVocabulary) {
  // Two lines are one token, so the next id is that of the last line.
  folder_.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\nthe\nada\n");
  list(R"({"<e1>": 7})");
  EXPECT_EQ(Tokenizer::from_file(folder_ / "vocab.txt").encode("<e1>"), Ids{7});
  list(R"({"<e1>": 8})");
  EXPECT_ERROR(HasSubstr("\"<e1>\" is token 7"), Tokenizer::from_file(folder_ / "vocab.txt"));
}

TEST_F(AddedTokenFiles, NamesOfWrongTypesAreRefusedWithTheirFile) {
  const auto read = [&] { Tokenizer::from_file(folder_ / "vocab.txt"); };
  configure(R"({"mask_token": 7})");
  EXPECT_ERROR(HasSubstr("tokenizer_config.json: mask_token is of type number"), read());
  configure(R"({"extra_special_tokens": [7], "mask_token": null})");
  EXPECT_ERROR(HasSubstr("tokenizer_config.json: extra_special_tokens[0]"), read());
  configure("{}");
  folder_.write("special_tokens_map.json", R"({"additional_special_tokens": "x"})");
  EXPECT_ERROR(HasSubstr("special_tokens_map.json: additional_special_tokens"), read());
}

TEST_F(AddedTokenFiles, ExtraSpecialTokensHideAdditionalOnes) {
  configure(R"({"extra_special_tokens": ["<e1>"], "additional_special_tokens": ["<ent>"]})");
  EXPECT_EQ(ids()[2], (Ids{5, 7, 13, 8, 1, 14, 16, 15, 14, 16, 15}));
  configure(R"({"extra_special_tokens": [], "additional_special_tokens": ["<ent>"]})");
  EXPECT_EQ(ids()[2], (Ids{5, 19, 1, 14, 16, 15, 14, 16, 15}));
}

TEST_F(AddedTokenFiles, TheyAddToMergesAsWell) {
  folder_.write("vocab.json",
                R"({"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": 4, "t": 5, "h": 6,
                    "e": 7, "Ġ": 8, "c": 9, "a": 10, "th": 11, "the": 12, "Ġthe": 13, "ca": 14,
                    "cat": 15, "Ġcat": 16, "<": 17, ">": 18, "n": 19, "w": 20})");
  folder_.write("merges.txt", "#version: 0.2\nt h\nth e\nĠ the\nc a\nca t\nĠ cat\n");
  list(R"({"<new>": 21})");
  const Tokenizer read = Tokenizer::from_file(folder_ / "vocab.json");
  EXPECT_EQ(read.encode("the <new> cat"), (Ids{12, 8, 21, 16}));
  folder_.write("copy.json", Tokenizer::json_of(folder_ / "vocab.json"));
  EXPECT_EQ(Tokenizer::from_file(folder_ / "copy.json").encode("cat<new>the"), (Ids{15, 21, 12}));
}

}  // namespace
}  // namespace bertcl::text
