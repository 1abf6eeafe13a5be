// SPDX-License-Identifier: Apache-2.0
// Stages and models of tokenizers, each on a few texts whose tokens can be told by hand.
// tests/python/test_tokenizers.py compares whole tokenizers with Hugging Face's.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/text/stages.hpp"
#include "text/pipeline/graphemes.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/tokenizer_json.hpp"

namespace bertcl::text {
namespace {

using nlohmann::json;

TEST(ByteLevel, WritesBytesAsCharacters) {
  const StageResult result = split("né o", R"({"type": "ByteLevel", "add_prefix_space": true})");
  EXPECT_THAT(result.words, ElementsAre("ĠnÃ©", "Ġo"));
  EXPECT_THAT(result.originals, ElementsAre("né", " o"));
  EXPECT_THAT(split(" a b", R"({"type": "ByteLevel", "use_regex": false})").words,
              ElementsAre("ĠaĠb"));
}

TEST(Metaspace, PutsItsCharacterBeforeWords) {
  const char* const always = R"({"type": "Metaspace", "replacement": "▁"})";
  EXPECT_THAT(split("a bc", always).words, ElementsAre("▁a", "▁bc"));
  EXPECT_THAT(split("a bc", always).originals, ElementsAre("a", " bc"));
  EXPECT_THAT(split(" a  b", always).words, ElementsAre("▁a", "▁", "▁b"));
  EXPECT_THAT(split("a b", R"({"type": "Metaspace", "replacement": "▁", "split": false,
                               "prepend_scheme": "never"})")
                  .words,
              ElementsAre("a▁b"));
  EXPECT_THAT(split("a b", R"({"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"},
                {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first"}]})")
                  .words,
              ElementsAre("_a", "b"));
}

TEST(UnicodeNormalizer, KeepsOrigins) {
  EXPECT_THAT(normalized("e\u0301\u0323", R"({"type": "NFC"})").words, ElementsAre("ẹ\u0301"));
  EXPECT_THAT(normalized("각ﬁ", R"({"type": "NFKD"})").words, ElementsAre("\u1100\u1161\u11a8fi"));
  EXPECT_THAT(normalized("\u1100\u1161\u11a8", R"({"type": "NFC"})").words, ElementsAre("각"));
  EXPECT_THAT(normalized("\u0958", R"({"type": "NFC"})").words, ElementsAre("\u0915\u093c"));
  EXPECT_THAT(normalized("\U00011935\U00011930", R"({"type": "NFC"})").words,
              ElementsAre("\U00011935\U00011930"))
      << "composed in Unicode 13 only";
  Parts parts("aﬁé");
  unicode_normalizer(Normalization::nfkd)(parts);
  EXPECT_EQ(parts.text, "afie\u0301");
  EXPECT_EQ(parts.original(1, 3), (Span{1, 4}));
  EXPECT_EQ(parts.original(3, 4), (Span{4, 6}));
}

TEST(Normalizers, DoWhatTheirNamesSay) {
  EXPECT_THAT(normalized("ÀİΣ", R"({"type": "Lowercase"})").words, ElementsAre("ài\u0307σ"));
  EXPECT_THAT(normalized("e\u0301x", R"({"type": "StripAccents"})").words, ElementsAre("ex"));
  EXPECT_THAT(normalized(" \u3000a b\t", R"({"type": "Strip", "strip_left": true,
                                             "strip_right": true})")
                  .words,
              ElementsAre("a b"));
  EXPECT_THAT(normalized("  ", R"({"type": "Strip"})").words, ElementsAre(""));
  const StageResult replaced =
      normalized("a  b", R"({"type": "Replace", "pattern": {"Regex": " {2,}"},
                                                "content": "__"})");
  EXPECT_THAT(replaced.words, ElementsAre("a__b"));
  EXPECT_THAT(normalized("  a\n  b", R"({"type": "Replace", "pattern": {"Regex": "^ +"},
                                          "content": ""})")
                  .words,
              ElementsAre("a\nb"))
      << "the beginning of each line, as in Oniguruma";
  EXPECT_THAT(normalized("a\r\u2028b\n", R"({"type": "Replace", "pattern": {"Regex": "."},
                                               "content": "x"})")
                  .words,
              ElementsAre("xxxx\n"));
  EXPECT_THAT(normalized("a", R"({"type": "Prepend", "prepend": "xy"})").words, ElementsAre("xya"));
  EXPECT_THAT(normalized("", R"({"type": "Prepend", "prepend": "xy"})").words, ElementsAre(""));
  EXPECT_THAT(normalized("\tÉ東\x01", R"({"type": "BertNormalizer"})").words,
              ElementsAre(" e 東 "));
}

TEST(Charsmap, DamageIsRefused) {
  const auto refusal = [](const char* base64) {
    return error_of([&] {
      normalized("a", (R"({"type": "Precompiled", "precompiled_charsmap": ")" +
                       std::string(base64) + "\"}")
                          .c_str());
    });
  };
  EXPECT_THAT(refusal(""), HasSubstr("precompiled_charsmap: damaged"));
  EXPECT_THAT(refusal("CAAAAA=="), HasSubstr("damaged: a charsmap of 4 bytes with a trie of 8"));
  EXPECT_THAT(refusal("BAAAAAAAAAD/"), HasSubstr("invalid UTF-8 at byte 0"));
  EXPECT_THAT(refusal("*"), HasSubstr("is not base64: it has the character '*'"));
  EXPECT_EQ(refusal("BAAAAAAAAAA="), kNoError) << "a trie without rules";
}

TEST(Graphemes, EndWhereAReaderSeesIt) {
  const auto first = [](std::string_view text) { return text.substr(0, grapheme_end(text, 0)); };
  EXPECT_EQ(first("ab"), "a");
  EXPECT_EQ(first("\r\nx"), "\r\n");
  EXPECT_EQ(first("e\u0301\u0308x"), "e\u0301\u0308");
  EXPECT_EQ(first("\n\u0301"), "\n");
  EXPECT_EQ(first("\u1100\u1161\u11a8\u1100"), "\u1100\u1161\u11a8");
  EXPECT_EQ(first("👨\u200d👩\u200d👧x"), "👨\u200d👩\u200d👧");
  EXPECT_EQ(first("a\u200d👩"), "a\u200d") << "joined to a picture only";
  EXPECT_EQ(first("🇩🇪🇫🇷"), "🇩🇪");
}

std::shared_ptr<const Pipeline> pipeline(const json& model) {
  return make_pipeline(json{{"model", model}}, "t.json");
}

TEST(Bpe, MergesByRankAndThenFromTheLeft) {
  json model = {{"type", "BPE"},
                {"vocab", {{"a", 0}, {"b", 1}, {"ab", 2}, {"ba", 3}, {"aba", 4}, {"?", 5}}},
                {"merges", {"b a", "a b", "ab a"}}};
  EXPECT_THAT(pipeline(model)->encode_ids("aba"), ElementsAre(0, 3));
  EXPECT_THAT(pipeline(model)->encode_ids("xab"), ElementsAre(2)) << "no unknown token";
  model["merges"] = json::array({json::array({"a", "b"}), json::array({"ab", "a"})});
  EXPECT_THAT(pipeline(model)->encode_ids("abab"), ElementsAre(2, 2));
  EXPECT_THAT(pipeline(model)->encode_ids("aba"), ElementsAre(4));
  model["unk_token"] = "?";
  EXPECT_THAT(pipeline(model)->encode_ids("axyb"), ElementsAre(0, 5, 5, 1));
  model["fuse_unk"] = true;
  EXPECT_THAT(pipeline(model)->encode_ids("axyb"), ElementsAre(0, 5, 1));
  model["merges"] = {"a c"};
  EXPECT_ERROR(HasSubstr("model.merges[0] merges \"a\" and"), pipeline(model));
  model["merges"] = {"a"};
  EXPECT_ERROR(HasSubstr("expected two tokens"), pipeline(model));
  model["dropout"] = 0.1;
  EXPECT_ERROR(HasSubstr("model.dropout is set"), pipeline(model));
}

TEST(Bpe, BytesOfAffixesStayInTheirWord) {
  json model = json::parse(R"({"type": "BPE", "merges": [], "byte_fallback": true,
    "end_of_word_suffix": "</w>", "vocab": {"a": 0}})");
  for (int byte = 0; byte < 256; ++byte) model["vocab"][fmt::format("<0x{:02X}>", byte)] = byte + 1;
  const Encoding suffix = pipeline(model)->encode("aé");
  EXPECT_THAT(suffix.ids, ElementsAre(0, 0xC4, 0xAA, '<' + 1, '/' + 1, 'w' + 1, '>' + 1));
  EXPECT_THAT(suffix.spans, ElementsAre(Span{0, 1}, Span{1, 3}, Span{1, 3}, Span{1, 3}, Span{1, 3},
                                        Span{1, 3}, Span{1, 3}));
  model.erase("end_of_word_suffix");
  model["continuing_subword_prefix"] = "##";
  const Encoding prefix = pipeline(model)->encode("ab");
  EXPECT_THAT(prefix.ids, ElementsAre(0, '#' + 1, '#' + 1, 'b' + 1));
  EXPECT_THAT(prefix.spans, ElementsAre(Span{0, 1}, Span{1, 2}, Span{1, 2}, Span{1, 2}));
}

TEST(Unigram, TakesTheMostProbableTokens) {
  json model = json::parse(R"({"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1],
    ["b", -1], ["ab", -1.5], ["aba", -2.9], ["<0xC3>", -9], ["<0xA9>", -9]]})");
  EXPECT_THAT(pipeline(model)->encode_ids("abab"), ElementsAre(3, 3));
  EXPECT_THAT(pipeline(model)->encode_ids("aba"), ElementsAre(3, 1)) << "-2.5, not -2.9";
  const Encoding unknown = pipeline(model)->encode("axéb");
  EXPECT_THAT(unknown.ids, ElementsAre(1, 0, 2)) << "neighbours are one token";
  EXPECT_THAT(unknown.spans, ElementsAre(Span{0, 1}, Span{1, 4}, Span{4, 5}));
  model["byte_fallback"] = true;
  EXPECT_THAT(pipeline(model)->encode_ids("aéb"), ElementsAre(1, 5, 6, 2));
  EXPECT_THAT(pipeline(model)->encode_ids("axéb"), ElementsAre(1, 0, 2)) << "no byte of x";
  model.erase("unk_id");
  EXPECT_ERROR(HasSubstr("unk_id"), pipeline(model)->encode_ids("xa"));
  model["unk_id"] = 7;
  EXPECT_ERROR(HasSubstr("model.unk_id is 7"), pipeline(model));
}

TEST(Offsets, AreTrimmedByTheirPostProcessor) {
  const json document = json::parse(R"({
    "model": {"type": "BPE", "merges": [], "vocab": {"a": 0, "Ġ": 1, "<s>": 2, "</s>": 3}},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
    "post_processor": {"type": "RobertaProcessing", "cls": ["<s>", 2], "sep": ["</s>", 3],
                       "trim_offsets": true, "add_prefix_space": false}})");
  const auto tokenizer = make_pipeline(document, "t.json");
  EXPECT_THAT(tokenizer->encode("a a").spans, ElementsAre(Span{0, 1}, Span{2, 2}, Span{2, 3}));
}

// By tokenizers 0.23.3.
TEST(Offsets, AreTrimmedByTheCharactersOfTheToken) {
  const json trims = {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}};
  const auto spans = [&](const json& model, std::string_view text, json post = {}) {
    const json document = {{"model", model}, {"post_processor", post.is_null() ? trims : post}};
    return make_pipeline(document, "t.json")->encode(text).spans;
  };
  const json pieces = json::parse(R"({"type": "WordPiece", "unk_token": "[UNK]",
      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
      "vocab": {"[UNK]": 0, "a": 1}})");
  EXPECT_THAT(spans(pieces, " "), ElementsAre(Span{0, 1})) << "[UNK] is not a space";
  json plain = trims;
  plain["add_prefix_space"] = false;
  EXPECT_THAT(spans(pieces, " ", plain), ElementsAre(Span{0, 1}));
  const json characters =
      json::parse(R"({"type": "BPE", "merges": [], "vocab": {"a": 0, "b": 1}})");
  EXPECT_THAT(spans(characters, "a b"), ElementsAre(Span{0, 1}, Span{1, 2}));
  const json unigram = json::parse(R"({"type": "Unigram", "unk_id": 0,
      "vocab": [["?", 0], ["a", -1], ["b", -1]]})");
  EXPECT_THAT(spans(unigram, "a  b"), ElementsAre(Span{0, 1}, Span{3, 3}, Span{3, 4}))
      << "Unigram's unknown token is the text";
}

TEST(Texts, MayBeIllFormed) {
  const json model =
      json::parse(R"({"type": "Unigram", "unk_id": 0, "vocab": [["?", 0], ["a", -1]]})");
  const Encoding encoding = pipeline(model)->encode(
      "\xFF\xE2\x82"
      "a\xC3");
  EXPECT_THAT(encoding.ids, ElementsAre(0, 1, 0));
  EXPECT_THAT(encoding.spans, ElementsAre(Span{0, 3}, Span{3, 4}, Span{4, 5}));
}

TEST(WordCache, DoesNotMixTokenizers) {
  const json one = json::parse(R"({"type": "Unigram", "vocab": [["a", -1], ["b", -1]]})");
  const json two = json::parse(R"({"type": "Unigram", "vocab": [["b", -1], ["a", -1]]})");
  const auto first = pipeline(one), second = pipeline(two);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(first->encode_ids("a"), ElementsAre(0));
    EXPECT_THAT(second->encode_ids("a"), ElementsAre(1));
  }
}

TEST(Merges, AreReadBesideTheirVocabulary) {
  const tests::ScratchFolder folder;
  json vocab = {{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}, {"a", 4}, {"Ġ", 5}, {"Ġa", 6}};
  const auto read = [&] {
    std::ofstream(folder / "vocab.json") << vocab;
    return Tokenizer::from_file(folder / "vocab.json");
  };
  EXPECT_THAT(error_of(read), HasSubstr("vocab.json: the file is JSON, but not a tokenizer.json"));
  std::ofstream(folder / "merges.txt") << "#version: 0.2\nĠ a\n";
  EXPECT_THAT(error_of(read), HasSubstr("vocab.json: the vocabulary lacks <mask>"));
  vocab["<mask>"] = 7, vocab["model"] = 8;
  const Tokenizer tokenizer = read();
  EXPECT_THAT(tokenizer.encode("a a <mask>"), ElementsAre(4, 6, 7));
  EXPECT_THAT(tokenizer.encode_word("a"), ElementsAre(6)) << "a word of its own";
  EXPECT_EQ(tokenizer.mask_id(), 7);
  EXPECT_THAT(tokenizer.special().pair_between, ElementsAre(2, 2));
  std::ofstream(folder / "merges.txt") << "Ġ a\na b c\n";
  EXPECT_THAT(error_of(read), HasSubstr("merges.txt:2: is \"a b c\"; expected two tokens"));
}

}  // namespace
}  // namespace bertcl::text
