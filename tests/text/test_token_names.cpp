// SPDX-License-Identifier: Apache-2.0
// Which of the files beside a vocabulary names its mask token.
#include "text/token_names.hpp"

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "text/model_tokenizer.hpp"

namespace bertcl::text {
namespace {

TEST(MaskToken, IsThatOfTheFirstFileWhoseTokenIsKnown) {
  const tests::ScratchFolder folder;
  folder.write("tokenizer.json", R"({"model": {"type": "BPE", "merges": [], "vocab":
      {"<mask>": 0, "a": 1}}, "added_tokens": [{"id": 2, "content": "<|mask|>", "special": true},
      {"id": 3, "content": "<|hidden|>", "special": true}, {"id": 4, "content": "[BLANK]"}]})");
  const auto id = [&] { return load_with_config(folder / "tokenizer.json").mask_id(); };
  EXPECT_EQ(id(), 0);
  folder.write("config.json", R"({"mask_token": "<|mask|>"})");
  EXPECT_EQ(id(), 2);
  folder.write("special_tokens_map.json", R"({"mask_token": {"content": "<|hidden|>"}})");
  EXPECT_EQ(id(), 3);
  folder.write("tokenizer_config.json", R"({"mask_token": "[BLANK]"})");
  EXPECT_EQ(id(), 4);
  for (const char* none : {R"("[GONE]")", "null", "7", R"({"lstrip": true})"}) {
    folder.write("tokenizer_config.json", std::string(R"({"mask_token": )") + none + "}");
    EXPECT_EQ(id(), 3) << none;
  }
  folder.write("special_tokens_map.json", "{");
  EXPECT_ERROR(HasSubstr("special_tokens_map.json"), id());
}

TEST(MaskToken, OfAVocabularyIsKeptWithSpans) {
  const tests::ScratchFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n[BLANK]\n");
  folder.write("tokenizer_config.json", R"({"mask_token": "[BLANK]"})");
  EXPECT_EQ(load_with_config(folder / "vocab.txt").as_tokenizer_json().mask_id(), 5);
}

TEST(MaskToken, AllNamesThatWereLookedForAreSaid) {
  const tests::ScratchFolder folder;
  folder.write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n");
  folder.write("tokenizer_config.json", R"({"mask_token": "[GONE]"})");
  folder.write("special_tokens_map.json", R"({"mask_token": "[GONE]"})");
  folder.write("config.json", R"({"mask_token": "[MASK]"})");
  const Tokenizer tokenizer = load_with_config(folder / "vocab.txt");
  const auto expected = HasSubstr(
      "the tokenizer has no mask token: none of \"[GONE]\", \"[MASK]\", \"<mask>\" is in its "
      "vocabulary; name it as mask_token in tokenizer_config.json, special_tokens_map.json or "
      "config.json");
  EXPECT_ERROR(expected, tokenizer.mask_id());
  EXPECT_ERROR(expected, tokenizer.as_tokenizer_json().mask_id());
}

}  // namespace
}  // namespace bertcl::text
