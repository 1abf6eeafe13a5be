// SPDX-License-Identifier: Apache-2.0
// Vectors of texts by the public interface: means of the hidden states that a session gives.
#include "bertcl/embed.hpp"

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "bertcl/bertcl.h"
#include "tests/api/model.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/tools/tasks_model.hpp"

namespace bertcl {
namespace {

const std::vector<std::string> kEmbedded = {"Who maintains OpenCL?", "",
                                            "one two three four five six", "short"};
const std::string kHidden = "/qa_outputs/Add_output_0";  // [batch, seq, 2]

class ApiEmbed : public testing::Test {
 protected:
  Session load(const SessionOptions& options = {}) const { return load(model_, options); }
  static Session load(const std::string& model, const SessionOptions& options = {}) {
    return Session::load(ModelBytes{std::as_bytes(std::span(model)), {}, {}}, options);
  }
  void expect_vectors_of(const Session& expected, const Session& found, int max_length = 0) const {
    const auto vectors = [&](const Session& session) {
      const Tensor all = embed(session, tokenizer_, kEmbedded, {.max_length = max_length});
      EXPECT_THAT(all.shape(), ElementsAre(4, 2));
      return std::vector<float>(all.values<float>().begin(), all.values<float>().end());
    };
    EXPECT_THAT(vectors(found), Pointwise(FloatNear(1e-5f), vectors(expected)));
  }
  const std::string model_ = tests::model_of_tasks();
  const Tokenizer tokenizer_ = Tokenizer::load(tests::folder / "vocab.txt");
};

TEST_F(ApiEmbed, AVectorIsTheMeanOfItsTokens) {
  const Session session = load({.pooling = Pooling{"mean", false, true, 0}});
  const Tensor vectors = embed(session, tokenizer_, kEmbedded, {"the ", 16, 8});
  EXPECT_THAT(vectors.shape(), ElementsAre(4, 2));
  std::vector<std::string> prompted;
  for (const std::string& text : kEmbedded) prompted.push_back("the " + text);
  const Sequences sequences = tokenizer_.encode_texts(prompted, 16);
  const Tensor hidden = load().run(sequences).at(kHidden);
  for (std::size_t i = 0; i < kEmbedded.size(); ++i) {
    double sums[2] = {};
    for (std::int64_t t = sequences.offsets[i]; t < sequences.offsets[i + 1]; ++t)
      for (std::size_t c = 0; c < 2; ++c)
        sums[c] += hidden.values<float>()[2 * static_cast<std::size_t>(t) + c];
    const double norm = std::hypot(sums[0], sums[1]);
    for (std::size_t c = 0; c < 2; ++c)
      EXPECT_NEAR(vectors.values<float>()[2 * i + c], sums[c] / norm, 1e-5) << i;
  }
  const Tensor alone = embed(session, tokenizer_, {kEmbedded[2]}, {"the ", 16, 4096});
  EXPECT_EQ(std::memcmp(alone.bytes().data(), vectors.bytes().data() + 16, 8), 0);
  EXPECT_THAT(embed(session, tokenizer_, {}).shape(), ElementsAre(0, 2));
}

TEST_F(ApiEmbed, TextsArePreparedAsSentenceTransformersDo) {
  const Session session = load({.pooling = Pooling{"mean", false, true, 0}});
  const tests::ScratchFile file(R"({"model": {"type": "WordPiece",
      "vocab": {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "\u3000": 4, "É": 5, "é": 6}},
      "added_tokens": [{"content": "[SEP]", "id": 3, "special": true, "normalized": false}],
      "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}})",
                                ".json");
  const Tokenizer cased = Tokenizer::load(file.path());
  const auto vector_of = [&](const std::string& text, bool lower_case = false) {
    const Tensor vector = embed(session, cased, {text}, {.lower_case = lower_case});
    return std::vector<float>(vector.values<float>().begin(), vector.values<float>().end());
  };
  EXPECT_NE(vector_of("É"), vector_of("é"));
  EXPECT_NE(vector_of("É \n"), vector_of("É")) << "white space is the tokenizer's";
  EXPECT_EQ(vector_of("É", true), vector_of("é"));
  EXPECT_EQ(vector_of("[SEP]É", true), vector_of("[SEP]é")) << "special tokens are kept";
}

TEST_F(ApiEmbed, AVectorAsWideAsTheSequencesAreLongIsWhole) {
  SessionOptions options{.pooling = Pooling{"mean", false, false, 0}};
  const std::string model = tests::with_sizes(model_, {{"seq", 2}});
  expect_vectors_of(load(options), load(model, options), 2);
  const Tensors outputs = load(model).run(tests::sequences_of({2, 2, 1}, 1));
  EXPECT_THAT(outputs.at("classes").shape(), ElementsAre(3, 2));
  EXPECT_THAT(outputs.at(kHidden).shape(), ElementsAre(5, 2));
  EXPECT_THAT(outputs.at("start_logits").shape(), ElementsAre(5));
}

TEST_F(ApiEmbed, ModelsOfFixedSizesTakeAnyTexts) {
  SessionOptions options{.pooling = Pooling{"mean", false, false, 0}};
  const Session reference = load(options);
  for (const std::map<std::string, std::int64_t>& sizes :
       {std::map<std::string, std::int64_t>{{"batch", 3}},
        {{"seq", 8}},
        {{"batch", 3}, {"seq", 8}},
        {{"batch", 1}}}) {
    const Session session = load(tests::with_sizes(model_, sizes), options);
    EXPECT_EQ(session.info().max_length, sizes.contains("seq") ? 8 : 0);
    expect_vectors_of(reference, session, sizes.contains("seq") ? 8 : 0);
  }
}

TEST_F(ApiEmbed, AModelWithoutAMaskTakesTextsOfAnyLengths) {
  quant::tests::GraphBuilder g;
  g.graph().add_input()->set_name("input_ids");
  auto* type = g.graph().mutable_input(0)->mutable_type()->mutable_tensor_type();
  type->set_elem_type(onnx::TensorProto::INT64);
  for (const char* symbol : {"batch", "seq"})
    type->mutable_shape()->add_dim()->set_dim_param(symbol);
  std::vector<float> table(2 * 30522);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::sin(static_cast<float>(i));
  g.node("Gather", {g.weight("table", {30522, 2}, table), "input_ids"}, "rows");
  g.node("ReduceMax", {"rows"}, "most");  // padding would count
  g.set("axes", std::vector<std::int64_t>{1});
  g.node("Sub", {"rows", "most"}, "last_hidden_state");
  g.output("last_hidden_state");
  const Session session =
      load(g.model().SerializeAsString(), {.pooling = Pooling{"mean", false, false, 0}});
  ASSERT_FALSE(session.info().takes_packed);
  const Tensor all = embed(session, tokenizer_, kEmbedded);
  for (std::size_t i = 0; i < kEmbedded.size(); ++i) {
    const Tensor one = embed(session, tokenizer_, {kEmbedded[i]});
    EXPECT_EQ(std::memcmp(one.bytes().data(), all.bytes().data() + 8 * i, 8), 0) << i;
  }
}

TEST_F(ApiEmbed, ATextWithoutTokensIsZero) {
  const Session session = load({.pooling = Pooling{"mean", false, true, 0}});
  const tests::ScratchFile file(
      R"({"model": {"type": "WordPiece", "vocab": {"[UNK]": 0, "a": 1, "b": 2}}})", ".json");
  const Tokenizer bare = Tokenizer::load(file.path());
  const Tensor found = embed(session, bare, {"a", "", "b"});
  const auto vectors = found.values<float>();
  EXPECT_THAT(std::vector(vectors.begin() + 2, vectors.begin() + 4), ElementsAre(0, 0));
  const Tensor last = embed(session, bare, {"b"});
  EXPECT_EQ(std::memcmp(vectors.data() + 4, last.bytes().data(), 8), 0);
  const Tensor none = embed(session, bare, {""});
  EXPECT_THAT(std::vector(none.values<float>().begin(), none.values<float>().end()),
              ElementsAre(0, 0));
}

TEST_F(ApiEmbed, TheCInterfaceGivesTheSameBits) {
  SessionOptions options{.pooling = Pooling{"max", false, false, 1}};
  const Sequences s = tests::sequences_of({3, 7}, 1);
  const Tensor expected = load(options).run(s).at("sentence_embedding");
  EXPECT_THAT(expected.shape(), ElementsAre(2, 1));
  bertcl_session_options given{};
  given.size = sizeof(given);
  given.pooling = "max";
  given.dimensions = 1;
  bertcl_session* session = nullptr;
  ASSERT_EQ(bertcl_session_load_bytes(model_.data(), model_.size(), &given, &session), BERTCL_OK)
      << bertcl_last_error();
  const bertcl_sequences sequences{sizeof(sequences), 2, s.offsets.data(), s.ids.data(),
                                   s.token_type_ids.data()};
  bertcl_results* results = nullptr;
  ASSERT_EQ(bertcl_session_run_sequences(session, &sequences, nullptr, &results), BERTCL_OK)
      << bertcl_last_error();
  bertcl_tensor found{};
  found.size = sizeof(found);
  ASSERT_EQ(bertcl_results_find(results, "sentence_embedding", &found), BERTCL_OK);
  ASSERT_EQ(found.bytes, expected.bytes().size());
  EXPECT_EQ(std::memcmp(found.data, expected.bytes().data(), found.bytes), 0);
  bertcl_results_free(results);
  bertcl_session_free(session);
}

TEST_F(ApiEmbed, WhatDoesNotPoolIsRefused) {
  EXPECT_ERROR(HasSubstr("SessionOptions::pooling"), embed(load(), tokenizer_, kEmbedded));
  SessionOptions options{.pooling = Pooling{}};
  EXPECT_ERROR(HasSubstr("no output is a vector [batch, hidden]"), load(options));
  options.pooling = Pooling{"middle"};
  EXPECT_ERROR(HasSubstr("unknown pooling 'middle'"), load(options));
}

TEST_F(ApiEmbed, NegativeOptionsAreRefused) {
  const Session session = load({.pooling = Pooling{"mean", false, false, 0}});
  EXPECT_ERROR(HasSubstr("'max_length' is -1, must not be negative (0: what the model takes)"),
               embed(session, tokenizer_, kEmbedded, {.max_length = -1}));
  EXPECT_ERROR(HasSubstr("must be at least 1"),
               embed(session, tokenizer_, kEmbedded, {.batch_tokens = -1}));
}

TEST_F(ApiEmbed, NothingIsSaidWhereThereAreNoFiles) {
  const EmbeddingSettings settings = read_embedding_settings(tests::model);
  EXPECT_EQ(settings.pooling.kind, "");
  EXPECT_FALSE(settings.pooling.normalize);
  EXPECT_EQ(settings.max_length, 0);
  EXPECT_EQ(read_embedding_settings("").pooling.kind, "");
  EXPECT_ERROR(HasSubstr("/nowhere/model.onnx: there is no such model"),
               read_embedding_settings("/nowhere/model.onnx"));
  EXPECT_ERROR(StartsWith("the path of the model has 100000 bytes"),
               read_embedding_settings(std::string(100'000, 'a')));
  EXPECT_ERROR(std::string(300, 'a') + ": File name too long",
               read_embedding_settings(std::string(300, 'a')));
}

TEST_F(ApiEmbed, TheFilesOfAFolderAreThoseOfTheModelInIt) {
  const tests::ScratchFolder folder;
  for (const char* name : {"hub", "hub/onnx", "hub/1_Pooling"})
    std::filesystem::create_directory(folder / name);
  std::ofstream(folder / "hub/onnx/model.onnx") << "a model";
  std::ofstream(folder / "hub/modules.json")
      << R"([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])";
  std::ofstream(folder / "hub/1_Pooling/config.json") << R"({"pooling_mode_max_tokens": true})";
  EXPECT_EQ(read_embedding_settings(folder / "hub").pooling.kind, "max");
  EXPECT_EQ(read_embedding_settings(folder / "hub/onnx").pooling.kind, "max");
  std::ofstream(folder / "hub/config_sentence_transformers.json")
      << R"({"prompts": {"query": "find: ", "document": ""}, "default_prompt_name": "query"})";
  const EmbeddingSettings settings = read_embedding_settings(folder / "hub");
  EXPECT_EQ(settings.default_prompt_name, "query");
  EXPECT_EQ(settings.default_prompt, "find: ");
  EXPECT_EQ(settings.prompts.at("document"), "");
  EXPECT_FALSE(settings.scores_pairs);
  std::ofstream(folder / "hub/config_sentence_transformers.json")
      << R"({"model_type": "CrossEncoder"})";
  EXPECT_TRUE(read_embedding_settings(folder / "hub").scores_pairs);
  EXPECT_EQ(read_embedding_settings(folder / "hub").default_prompt_name, "");
  std::filesystem::remove(folder / "hub/onnx/model.onnx");
  EXPECT_ERROR(HasSubstr("neither model.onnx nor onnx/model.onnx"),
               read_embedding_settings(folder / "hub"));
}

}  // namespace
}  // namespace bertcl
