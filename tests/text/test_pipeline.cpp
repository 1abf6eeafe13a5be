// SPDX-License-Identifier: Apache-2.0
// Stages and models of tokenizers, each on a few texts whose tokens can be told by hand.
// tests/python/test_tokenizers.py compares whole tokenizers with Hugging Face's.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/json_node.hpp"
#include "text/pipeline/byte_level.hpp"
#include "text/pipeline/graphemes.hpp"
#include "text/pipeline/pipeline.hpp"
#include "text/tokenizer_json.hpp"

namespace bertcl::text {
namespace {

using nlohmann::json;

using Words = std::vector<std::string>;

/// Parts of a text after stages, and what each stands for in the text.
struct Result {
  Words words, originals;
};

Result run(std::string_view text, const Stages& stages) {
  Parts parts(text);
  for (const auto& stage : stages) stage->apply(parts);
  Result result;
  for (const Part& part : parts.parts) {
    result.words.emplace_back(parts.text_of(part));
    if (part.begin == part.end) continue;
    const Span span = parts.original(part.begin, part.end);
    result.originals.emplace_back(text.substr(span.begin, span.end - span.begin));
  }
  return result;
}

Result normalized(std::string_view text, const char* normalizer) {
  const json document = json::parse(normalizer);
  Stages stages;
  add_normalizers(JsonNode(document), stages);
  return run(text, stages);
}

Result split(std::string_view text, const char* pre_tokenizer) {
  const json document = json::parse(pre_tokenizer);
  Stages stages;
  add_pre_tokenizers(JsonNode(document), stages);
  return run(text, stages);
}

Words gpt2(std::string_view text) {
  std::vector<Match> matches;
  find_gpt2(text, matches);
  Words words;
  for (const auto& [begin, end, found] : matches)
    words.emplace_back(text.substr(begin, end - begin));
  return words;
}

TEST(Gpt2Pattern, SplitsByCategories) {
  EXPECT_THAT(gpt2("I'm in Köln, 12½ km"),
              ElementsAre("I", "'m", " in", " Köln", ",", " 12½", " km"));
  EXPECT_THAT(gpt2("a  b \n c"), ElementsAre("a", " ", " b", " \n", " c"));
  EXPECT_THAT(gpt2("x \n"), ElementsAre("x", " \n"));
  EXPECT_THAT(gpt2("x\ny"), ElementsAre("x", "\n", "y"));
  EXPECT_THAT(gpt2("'S !'s"), ElementsAre("'", "S", " !'", "s"));
  EXPECT_THAT(gpt2("日本語１２"), ElementsAre("日本語", "１２"));
  EXPECT_THAT(gpt2("e\u0301"), ElementsAre("e", "\u0301")) << "a mark is not a letter";
}

TEST(ByteLevel, WritesBytesAsCharacters) {
  const Result result = split("né o", R"({"type": "ByteLevel", "add_prefix_space": true})");
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

TEST(Split, ObeysItsBehavior) {
  const auto words = [](const char* behavior) {
    return split("the-final--countdown", (R"({"type": "Split", "pattern": {"String": "-"},
      "invert": false, "behavior": ")" + std::string(behavior) +
                                          "\"}")
                                             .c_str())
        .words;
  };
  EXPECT_THAT(words("Removed"), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(words("Isolated"), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(words("MergedWithPrevious"), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(words("MergedWithNext"), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(words("Contiguous"), ElementsAre("the", "-", "final", "--", "countdown"));
}

TEST(Split, RegularExpressionsMayLookAhead) {
  EXPECT_THAT(split("Ab1Cd", R"j({"type": "Split", "pattern": {"Regex": "\\p{Lu}(?=\\p{Ll})"},
                                  "behavior": "MergedWithNext"})j")
                  .words,
              ElementsAre("Ab1", "Cd"));
}

// By tokenizers 0.23.3, whose Oniguruma finds no empty match directly after a match.
TEST(Split, EmptyMatchesDoNotFollowAMatch) {
  const auto words = [](const char* behavior, bool inverted = false) {
    const json stage = {{"type", "Split"},
                        {"pattern", {{"Regex", "x*"}}},
                        {"behavior", behavior},
                        {"invert", inverted}};
    return split("xxab", stage.dump().c_str()).words;
  };
  EXPECT_THAT(words("MergedWithNext"), ElementsAre("xxa", "b"));
  EXPECT_THAT(words("MergedWithPrevious", true), ElementsAre("xxa", "b"));
  EXPECT_THAT(words("Isolated"), ElementsAre("xx", "a", "b"));
  const auto dashed = [](const char* text, const char* pattern) {
    const json stage = {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", "-"}};
    return normalized(text, stage.dump().c_str()).words;
  };
  EXPECT_THAT(dashed("xab", "x*"), ElementsAre("-a-b-"));
  EXPECT_THAT(dashed("axxb", "x*"), ElementsAre("-a-b-"));
  EXPECT_THAT(dashed("xab", "x*?"), ElementsAre("-x-a-b-"));
  EXPECT_THAT(dashed("axxb", "^|x"), ElementsAre("-a--b"));
  EXPECT_THAT(dashed("axxb", "b*"), ElementsAre("-a-x-x-"));
}

/// A pre-tokenizer of a regular expression, after another if it is given.
std::string regex_split(const std::string& regex, const json& before = nullptr) {
  json stages = {{{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}}};
  if (!before.is_null()) stages.insert(stages.begin(), before);
  return json{{"type", "Sequence"}, {"pretokenizers", stages}}.dump();
}

TEST(Split, ARegularExpressionThatBacktracksIsGivenUp) {
  std::string words;
  for (int i = 0; i < 20; ++i) words += "w ";
  EXPECT_THAT([&] { split(words, regex_split("(?:[^b]+)+c").c_str()); },
              ThrowsMessage<SearchError>(AllOf(
                  HasSubstr("the tokenizer's regular expression backtracks too long for the text "
                            "'w w w"),
                  HasSubstr("(40 bytes)"))));
  EXPECT_THAT(
      [&] {
        normalized(words, R"j({"type": "Replace", "pattern": {"Regex": "(?:[^b]+)+c"},
                               "content": ""})j");
      },
      ThrowsMessage<SearchError>(HasSubstr("backtracks too long")));
}

TEST(Split, TimeIsBoundedForATextNotForEachOfItsParts) {
  // Each part takes about a third of the time of a text.
  const std::string part = std::string(22, 'a') + "b";
  const std::string pattern = regex_split("(a+)+$", {{"type", "WhitespaceSplit"}});
  EXPECT_THAT(split(part, pattern.c_str()).words, ElementsAre(part));
  std::string text;
  for (int i = 0; i < 8; ++i) text += part + " ";
  EXPECT_THAT([&] { split(text, pattern.c_str()); },
              ThrowsMessage<SearchError>(HasSubstr("backtracks too long")));
}

TEST(Split, LongRunsOfSpacesFitInMemory) {
  // Of Qwen2, and of GPT-4o, as their tokenizer.json have them.
  const std::string qwen2 =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
      R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
  const std::string gpt4o =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|)"
      R"(\s+(?!\S)|\s+)";
  const std::string spaces(1'900'000, ' ');
  for (const std::string& pattern : {qwen2, gpt4o}) {
    const Words words = split("w1" + spaces + " w2", regex_split(pattern).c_str()).words;
    EXPECT_EQ(words, (Words{"w", "1", spaces, " w", "2"})) << pattern;
    const std::string too_long(6'000'000, ' ');
    EXPECT_THAT([&] { split(too_long, regex_split(pattern).c_str()); },
                ThrowsMessage<SearchError>(HasSubstr("needs too much memory")));
  }
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
  unicode_normalizer(Normalization::nfkd)->apply(parts);
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
  const Result replaced = normalized("a  b", R"({"type": "Replace", "pattern": {"Regex": " {2,}"},
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
  EXPECT_THAT(spans(pieces, " "), ElementsAre(Span{0, 1})) << "[UNK] is no space";
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
