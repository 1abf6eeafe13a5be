// SPDX-License-Identifier: Apache-2.0
// From tokens back to a text: by the decoder of a file and the tokens that it marks as special,
// with the texts of tokenizers 0.23.3; else by the kind of the model, whatever special tokens it
// has.
#include "text/decoder.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::text {
namespace {

std::string decoded(const std::string& tokenizer_json, const std::vector<std::int64_t>& ids,
                    bool skip_special = true) {
  const tests::ScratchFile file(tokenizer_json);
  return Decoder(std::make_shared<const Tokenizer>(Tokenizer::from_file(file.path())))(
      ids, skip_special);
}

TEST(Decoder, WordPiecesWithTheSpecialTokensOfRoberta) {
  const std::string file = R"({"model": {"type": "WordPiece", "unk_token": "<unk>",
      "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab":
      {"<unk>": 0, "<s>": 1, "</s>": 2, "a": 3, "##b": 4, ".": 5, "'": 6, "s": 7}},
      "pre_tokenizer": {"type": "Whitespace"}})";
  EXPECT_EQ(decoded(file, {1, 3, 4, 3, 5, 2}), "ab a.");
  EXPECT_EQ(decoded(file, {3, 6, 7}), "a ' s") << "what spans tokens stays";
  EXPECT_EQ(decoded(file, {1, 3}, false), "<s> a");
}

TEST(Decoder, BytesWithTheSpecialTokensOfBert) {
  const std::string file =
      R"({"model": {"type": "BPE", "vocab": {"[CLS]": 0, "[SEP]": 1, "[MASK]": 2,
      "P": 3, "\u0120": 4, "i": 5, "s": 6, "\u0120i": 7, "\u00c3": 8, "\u00a9": 9},
      "merges": ["\u0120 i"]}, "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
      {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]}})";
  EXPECT_EQ(decoded(file, {0, 3, 7, 6, 1}), "P is");
  EXPECT_EQ(decoded(file, {8, 9}), "\u00e9") << "two bytes";
}

TEST(Decoder, PiecesWithTheSpecialTokensOfBert) {
  const std::string file = R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0.0],
      ["[CLS]", 0.0], ["[SEP]", 0.0], ["\u2581a", -1.0], ["b", -1.0]]}, "pre_tokenizer":
      {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}})";
  EXPECT_EQ(decoded(file, {1, 3, 4, 3, 2}), "ab a");
}

TEST(Decoder, GathersBytesWithoutADecoder) {
  const std::string file = R"({"model": {"type": "BPE", "merges": [], "byte_fallback": true,
      "vocab": {"a": 0, "<0xC3>": 1, "<0xA9>": 2}}})";
  EXPECT_EQ(decoded(file, {0, 1, 2, 0}), "a\u00e9a");
}

/// A tokenizer.json of BPE with a decoder.
std::string file_of(const std::vector<std::string>& tokens, const nlohmann::json& decoder) {
  nlohmann::json vocab = nlohmann::json::object();
  for (std::size_t id = 0; id < tokens.size(); ++id) vocab[tokens[id]] = id;
  const nlohmann::json model = {{"type", "BPE"},
                                {"merges", nlohmann::json::array()},
                                {"byte_fallback", true},
                                {"vocab", vocab}};
  return nlohmann::json{{"model", model}, {"decoder", decoder}}.dump();
}

const std::vector<std::string> kPieces = {"\u2581", "\u2581a", "b",   "<0xEC>",
                                          "<0x97>", "<0xA7>",  "<s>", "<0x6G>"};

TEST(DecoderOfTheFile, GathersBytesAndKeepsTheFirstSpace) {
  nlohmann::json decoder = nlohmann::json::parse(R"({"type": "Sequence", "decoders": [
      {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "},
      {"type": "ByteFallback"}, {"type": "Fuse"}]})");
  const std::string gemma = file_of(kPieces, decoder);
  EXPECT_EQ(decoded(gemma, {0}), " ");
  EXPECT_EQ(decoded(gemma, {1, 2}), " ab");
  EXPECT_EQ(decoded(gemma, {0, 0, 1}), "   a");
  EXPECT_EQ(decoded(gemma, {2, 3, 4, 5, 1}), "b\uc5e7 a");
  EXPECT_EQ(decoded(gemma, {4}), "\ufffd");
  EXPECT_EQ(decoded(gemma, {3, 4, 2}), "\ufffd\ufffdb") << "ill-formed: each byte";
  EXPECT_EQ(decoded(gemma, {7, 2}), "<0x6G>b");
  EXPECT_EQ(decoded(gemma, {}), "");
  decoder["decoders"].push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  const std::string llama = file_of(kPieces, decoder);
  EXPECT_EQ(decoded(llama, {0}), "");
  EXPECT_EQ(decoded(llama, {1, 2}), "ab");
  EXPECT_EQ(decoded(llama, {0, 0, 1}), "  a");
  EXPECT_EQ(decoded(llama, {6, 1}, false), "<s> a");
}

TEST(DecoderOfTheFile, MetaspaceDropsWhatItPrepends) {
  for (const char* scheme : {"always", "first", "never"}) {
    const bool never = scheme == std::string("never");
    const std::string file = file_of(
        kPieces, {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", scheme}});
    EXPECT_EQ(decoded(file, {0, 0, 1}), never ? "   a" : "  a") << scheme;
    EXPECT_EQ(decoded(file, {1, 2, 1}), never ? " ab a" : "ab a") << scheme;
    EXPECT_EQ(decoded(file, {4}), "<0x97>") << "there is no ByteFallback";
  }
}

TEST(DecoderOfTheFile, EachKind) {
  const std::vector<std::string> words = {"a", "@@b", ".", "do not"};
  const nlohmann::json pieces = {{"type", "WordPiece"}, {"prefix", "@@"}, {"cleanup", true}};
  EXPECT_EQ(decoded(file_of(words, pieces), {0, 1, 2, 3}), "ab. don't");
  const nlohmann::json plain = {{"type", "WordPiece"}, {"prefix", "@@"}, {"cleanup", false}};
  EXPECT_EQ(decoded(file_of(words, plain), {0, 1, 2, 3}), "ab . do not");

  const std::string bytes = file_of(
      {"\u0120a", "\u00c3", "\u00a9", "\u0120\u4e2d", "\u00e2", "\u0124"}, {{"type", "ByteLevel"}});
  EXPECT_EQ(decoded(bytes, {0, 1, 2, 3}), " a\u00e9\u0120\u4e2d") << "the last spells no bytes";
  EXPECT_EQ(decoded(bytes, {4, 5, 0}), "\ufffd a") << "a part of a character";
  EXPECT_EQ(decoded(bytes, {2, 2, 0}), "\ufffd\ufffd a");

  const nlohmann::json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 1}};
  EXPECT_EQ(decoded(file_of({"  a  ", " ", "b"}, strip), {0, 2, 0}), " a b a ");
  EXPECT_EQ(
      decoded(file_of({"x</w>", "b"}, {{"type", "BPEDecoder"}, {"suffix", "</w>"}}), {0, 1, 0}),
      "x bx");
  const nlohmann::json replace = {
      {"type", "Replace"}, {"pattern", {{"Regex", "_+"}}}, {"content", "-"}};
  EXPECT_EQ(decoded(file_of({"a__b", "_c"}, replace), {0, 1}), "a-b-c");
}

TEST(DecoderOfTheFile, OneThatIsNotSupportedLeavesTheKindOfTheModel) {
  const nlohmann::json ctc = {{"type", "CTC"}, {"pad_token", "<pad>"}};
  EXPECT_EQ(decoded(file_of(kPieces, ctc), {1, 2, 1}), "ab a");
  EXPECT_EQ(
      decoded(file_of(kPieces, {{"type", "Sequence"}, {"decoders", {{{"type", "Fuse"}}, ctc}}}),
              {1, 2, 1}),
      "ab a");
  EXPECT_ERROR(HasSubstr("decoder.suffix"),
               decoded(file_of(kPieces, {{"type", "BPEDecoder"}}), {}));
}

TEST(DecoderOfTheFile, StripsOneCharacter) {
  for (const char* content : {"", "  "})
    EXPECT_ERROR(HasSubstr("decoder.content is \"" + std::string(content) + "\"; expected one"),
                 decoded(file_of(kPieces, {{"type", "Strip"},
                                           {"content", content},
                                           {"start", 9'000'000'000'000'000'000},
                                           {"stop", 0}}),
                         {1}));
}

TEST(Decoder, SkipsWhatTheFileMarksAsSpecial) {
  nlohmann::json file = nlohmann::json::parse(file_of(
      kPieces, {{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}}));
  file["added_tokens"] = {{{"id", 9}, {"content", "[MASK]"}, {"special", false}},
                          {{"id", 10}, {"content", "<|mask|>"}, {"special", true}}};
  EXPECT_EQ(decoded(file.dump(), {1, 10, 9, 6, 2}), " a[MASK]<s>b") << "whatever their names";
  EXPECT_EQ(decoded(file.dump(), {1, 10, 9, 6, 2}, false), " a<|mask|>[MASK]<s>b");
}

}  // namespace
}  // namespace bertcl::text
