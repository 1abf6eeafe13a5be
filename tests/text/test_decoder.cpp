// SPDX-License-Identifier: Apache-2.0
// From tokens back to a text, by the kind of the model, whatever special tokens it has.
#include "text/decoder.hpp"

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

}  // namespace
}  // namespace bertcl::text
