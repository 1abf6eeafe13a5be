// SPDX-License-Identifier: Apache-2.0
// What a model's file and those beside it say by the public interface.
#include "bertcl/model_settings.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "tests/api/model.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/tools/tasks_model.hpp"

namespace bertcl {
namespace {

/// Of two classes, without the other heads of its tests.
onnx::ModelProto classifier() {
  onnx::ModelProto model;
  model.ParseFromString(tests::model_of_tasks());
  const onnx::GraphProto graph = model.graph();
  model.mutable_graph()->clear_output();
  for (const auto& output : graph.output())
    if (output.name() == "classes") *model.mutable_graph()->add_output() = output;
  return model;
}

TEST(ModelSettings, AreThoseOfAllFilesOfTheModel) {
  const tests::ScratchFolder folder;
  std::filesystem::create_directory(folder / "onnx");
  std::filesystem::create_symlink(tests::folder / "model.onnx", folder / "onnx" / "model.onnx");
  const Session session = Session::load(folder / "onnx" / "model.onnx");
  const auto read = [&] { return read_model_settings(session); };
  EXPECT_EQ(read().max_length, session.info().max_length);
  EXPECT_EQ(read().vocabulary, "");
  EXPECT_EQ(read().multi_label, std::nullopt);
  EXPECT_EQ(read().pad_id, std::nullopt);
  EXPECT_TRUE(read().has_token_types);
  EXPECT_FALSE(read().cleans_up);
  folder.write("vocab.txt", "[PAD]");
  folder.write("config.json", R"({"max_position_embeddings": 66, "pad_token_id": 5,
      "problem_type": "multi_label_classification", "id2label": {"0": "no", "1": 7},
      "sentence_transformers": {"activation_fn": "torch.nn.Identity"}, "pad_token": "<pad>"})");
  folder.write("tokenizer_config.json", R"({"truncation_side": "left", "mask_token": "<m>",
      "model_input_names": ["input_ids", "attention_mask"], "clean_up_tokenization_spaces": true,
      "model_max_length": 600, "pad_token": {"content": "[P]"}})");
  const ModelSettings settings = read();
  EXPECT_EQ(settings.vocabulary, folder / "vocab.txt");
  EXPECT_EQ(settings.truncates_left, true);
  EXPECT_FALSE(settings.has_token_types);
  EXPECT_TRUE(settings.cleans_up);
  EXPECT_EQ(settings.max_length, 66);
  EXPECT_THAT(settings.classes, IsEmpty()) << "the model answers questions";
  EXPECT_EQ(settings.multi_label, true);
  EXPECT_EQ(settings.activation, "torch.nn.Identity");
  EXPECT_THAT(settings.mask_names, ElementsAre("<m>"));
  EXPECT_THAT(settings.pad_names, ElementsAre("[P]", "<pad>"));
  EXPECT_EQ(settings.pad_id, 5);
  folder.write("config.json", R"({"problem_type": "regression"})");
  EXPECT_TRUE(read().is_regression);
  EXPECT_EQ(read().max_length, std::min<std::int64_t>(session.info().max_length, 600));
  folder.write("config_sentence_transformers.json", R"({"activation_fn": "torch.nn.Sigmoid"})");
  EXPECT_EQ(read().activation, "torch.nn.Sigmoid");
  folder.write("tokenizer_config.json", R"({"model_input_names": null})");
  EXPECT_TRUE(read().has_token_types);
  folder.write("tokenizer_config.json", R"({"tokenizer_class": "TokenizersBackend"})");
  EXPECT_FALSE(read().has_token_types) << "of transformers 5, which gives such tokenizers none";
  folder.write("tokenizer_config.json", R"({"model_input_names": ["token_type_ids", 7]})");
  EXPECT_ERROR(HasSubstr("tokenizer_config.json: model_input_names[1]"), read());
  folder.write("tokenizer_config.json", R"({"clean_up_tokenization_spaces": "true"})");
  EXPECT_ERROR(HasSubstr("clean_up_tokenization_spaces"), read());
  folder.write("tokenizer_config.json", "{}");
  folder.write("config.json", "{");
  EXPECT_ERROR(HasSubstr("config.json"), read());
}

TEST(ModelSettings, ClassesHaveTheNamesThatConfigGives) {
  const tests::ScratchFolder folder;
  folder.write("model.onnx", classifier().SerializeAsString());
  const Session session = Session::load(folder / "model.onnx");
  EXPECT_THAT(read_model_settings(session).classes, IsEmpty());
  folder.write("config.json", R"({"id2label": {"1": "love", "0": "joy"}})");
  EXPECT_THAT(read_model_settings(session).classes, ElementsAre("joy", "love"));
}

TEST(ModelSettings, OfAModelInMemoryAreItsMetadataAlone) {
  onnx::ModelProto model = classifier();
  auto* entry = model.add_metadata_props();
  entry->set_key("bertcl.classes"), entry->set_value(R"(["A", "B"])");
  const std::string bytes = model.SerializeAsString();
  const Session session = Session::load(ModelBytes{std::as_bytes(std::span(bytes)), {}, {}});
  const ModelSettings settings = read_model_settings(session);
  EXPECT_THAT(settings.classes, ElementsAre("A", "B"));
  EXPECT_EQ(settings.vocabulary, "");
  EXPECT_EQ(settings.multi_label, std::nullopt);
  EXPECT_EQ(settings.max_length, session.info().max_length);
}

}  // namespace
}  // namespace bertcl
