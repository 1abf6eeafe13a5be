// SPDX-License-Identifier: Apache-2.0
// Which of the files beside a model says what pads its rows.
#include "text/pad_token_id.hpp"

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::text {
namespace {

TEST(PadTokenId, IsThatOfTheFirstFileThatHasOne) {
  const tests::ScratchFolder folder;
  const auto id = [&] { return read_pad_token_id(folder / "model.onnx"); };
  EXPECT_EQ(id(), std::nullopt);
  folder.write("tokenizer_config.json", R"({"pad_token": "[PAD]"})");
  EXPECT_EQ(id(), std::nullopt) << "the vocabulary is elsewhere";
  folder.write("vocab.txt", "[UNK]\n[CLS]\n[SEP]\n[PAD]\n");
  EXPECT_EQ(id(), 3);
  folder.write("tokenizer_config.json", R"({"pad_token": {"content": "[SEP]", "lstrip": false}})");
  EXPECT_EQ(id(), 2);
  folder.write("tokenizer_config.json", R"({"pad_token": "[GONE]"})");
  EXPECT_EQ(id(), std::nullopt);
  folder.write("tokenizer.json", R"({"padding": {"pad_id": 7, "pad_token": "<pad>"}})");
  EXPECT_EQ(id(), 7);
  folder.write("config.json", R"({"pad_token_id": null})");
  EXPECT_EQ(id(), 7);
  folder.write("config.json", R"({"pad_token_id": -1})");
  EXPECT_EQ(id(), 7);
  folder.write("config.json", R"({"pad_token_id": 151643})");
  EXPECT_EQ(id(), 151643);
  folder.write("config.json", "{");
  EXPECT_ERROR(HasSubstr("config.json"), id());
}

TEST(PadTokenId, OfATokenizerIsThatOfItsOwnFilesBeforeThatOfTheModel) {
  const tests::ScratchFolder folder;
  const Tokenizer tokenizer = Tokenizer::from_tokens(
      {"[UNK]", "[CLS]", "[SEP]", "<pad>", "[PAD]", "<|pad|>", "<|end|>", "<|hidden|>"});
  const auto id = [&] { return pad_id_of(tokenizer, folder / "model.onnx"); };
  EXPECT_EQ(id(), 4);
  folder.write("config.json", R"({"pad_token_id": 3})");
  EXPECT_EQ(id(), 3);
  folder.write("tokenizer.json", R"({"padding": {"pad_id": 7}})");
  EXPECT_EQ(id(), 7);
  folder.write("config.json", R"({"pad_token_id": 3, "pad_token": "[SEP]"})");
  EXPECT_EQ(id(), 2);
  folder.write("special_tokens_map.json", R"({"pad_token": {"content": "<|pad|>"}})");
  EXPECT_EQ(id(), 5);
  folder.write("tokenizer_config.json", R"({"pad_token": "<|end|>"})");
  EXPECT_EQ(id(), 6);
  folder.write("tokenizer_config.json", R"({"pad_token": "[GONE]"})");
  EXPECT_EQ(id(), 5);
  folder.write("special_tokens_map.json", "{");
  EXPECT_ERROR(HasSubstr("special_tokens_map.json"), id());
  EXPECT_EQ(
      pad_id_of(Tokenizer::from_tokens({"[PAD]", "[UNK]", "[CLS]", "[SEP]"}), "/nowhere.onnx"), 0);
}

}  // namespace
}  // namespace bertcl::text
