// SPDX-License-Identifier: Apache-2.0
// The longest text that the files beside a model declare.
#include "tasks/model_files/model_config.hpp"

#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"

namespace bertcl::tasks {
namespace {

TEST(DeclaredLength, IsTheLessOfTokenizerAndPositions) {
  const tests::ScratchFolder folder;
  const auto length = [&](const std::string& tokenizer, const std::string& config) {
    folder.write("tokenizer_config.json", tokenizer);
    folder.write("config.json", config);
    return declared_length(folder / "model.onnx");
  };
  EXPECT_EQ(declared_length(folder / "model.onnx"), std::nullopt);
  EXPECT_EQ(length("{}", "{}"), std::nullopt);
  EXPECT_EQ(length(R"({"model_max_length": 128})", "{}"), 128);
  EXPECT_EQ(length(R"({"model_max_length": 1000000000000000019884624838656})", "{}"), std::nullopt);
  EXPECT_EQ(length("{}", R"({"max_position_embeddings": 8192})"), 8192);
  EXPECT_EQ(length(R"({"model_max_length": 256})", R"({"max_position_embeddings": 512})"), 256);
  EXPECT_EQ(length(R"({"model_max_length": 4096})", R"({"max_position_embeddings": 512})"), 512);
  EXPECT_EQ(length(R"({"max_len": 128})", R"({"max_position_embeddings": 512})"), 128);
  EXPECT_EQ(length(R"({"max_len": 128, "model_max_length": 256})", "{}"), 256);
  EXPECT_EQ(length(R"({"max_len": 128, "model_max_length": null})", "{}"), std::nullopt);
  EXPECT_EQ(length("{}", R"({"max_position_embeddings": -1})"), std::nullopt);
  for (const char* wrong : {"0", "-5", "0.5"})
    EXPECT_ERROR(HasSubstr("tokenizer_config.json: model_max_length is "),
                 length(std::string(R"({"model_max_length": )") + wrong + "}", "{}"))
        << wrong;
}

TEST(DeclaredLength, PositionsOfPaddingAreNone) {
  const tests::ScratchFolder folder;
  const auto length = [&](const std::string& config) {
    folder.write("config.json", config);
    return declared_length(folder / "model.onnx");
  };
  EXPECT_EQ(length(R"({"model_type": "roberta", "max_position_embeddings": 514})"), 512);
  EXPECT_EQ(length(R"({"model_type": "roberta", "max_position_embeddings": 514,
                       "pad_token_id": null})"),
            512);
  EXPECT_EQ(length(R"({"model_type": "xlm-roberta", "max_position_embeddings": 8194,
                       "pad_token_id": 1})"),
            8192);
  EXPECT_EQ(length(R"({"model_type": "mpnet", "max_position_embeddings": 514,
                       "pad_token_id": 0})"),
            513);
  EXPECT_EQ(length(R"({"model_type": "bert", "max_position_embeddings": 514})"), 514);
}

TEST(Labels, MayBeNumbers) {
  const tests::ScratchFolder folder;
  const auto labels = [&](const std::string& config) {
    folder.write("config.json", config);
    return read_labels(folder / "config.json");
  };
  EXPECT_THAT(read_labels(folder / "config.json"), IsEmpty());
  EXPECT_THAT(labels(R"({"id2label": {"0": 0, "1": -1, "2": "two", "3": 3.5}})"),
              ElementsAre("0", "-1", "two", "3.5"));
  EXPECT_THAT(labels(R"({"id2label": null})"), IsEmpty());
  EXPECT_THAT(labels(R"({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}})"), IsEmpty()) << "made up";
  EXPECT_THAT(labels(R"({"id2label": {"0": "LABEL_1", "1": "LABEL_0"}})"),
              ElementsAre("LABEL_1", "LABEL_0"));
  EXPECT_ERROR(HasSubstr("config.json: id2label must be"), labels(R"({"id2label": {"0": true}})"));
}

TEST(DeclaredLength, DoesNotReadLabels) {
  const tests::ScratchFolder folder;
  folder.write("config.json", R"({"max_position_embeddings": 66, "id2label": ["wrong"]})");
  EXPECT_EQ(declared_length(folder / "model.onnx"), 66);
}

}  // namespace
}  // namespace bertcl::tasks
