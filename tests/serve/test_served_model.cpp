// SPDX-License-Identifier: Apache-2.0
// What a model is served as, by its outputs and the files beside it.
#include "tools/models/served_model.hpp"

#include <future>

#include "bertcl/error.hpp"
#include "tests/serve/clients.hpp"
#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;

/// A model of any length in a folder of its own.
class ServedModel : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    folder_.write(name, content);
  }
  ModelSetup load(HeadOf head, const tools::ServedModelOptions& options = {}) const {
    write("model.onnx", tiny_model(head));
    if (!std::filesystem::exists(folder_ / "vocab.txt"))
      std::filesystem::copy_file(kVocabulary, folder_ / "vocab.txt");
    return tools::load_served_model({"tiny", folder_ / "model.onnx"}, options, device());
  }
  /// What a server with the model replies.
  nlohmann::json post(HeadOf head, const std::string& path, const nlohmann::json& body) const {
    Metrics metrics;
    Service service({}, metrics);
    std::vector<std::unique_ptr<Model>> models;
    models.push_back(std::make_unique<Model>(load(head), BatcherOptions{}));
    service.start(std::move(models));
    RequestRecord record;
    const HttpResponse reply = service.handle({"POST", path, body.dump()}, record);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return nlohmann::json::parse(reply.body, nullptr, false);
  }

 private:
  static const opencl::ContextFuture& device() {
    static const opencl::ContextFuture opened = opencl::ContextFuture::open("");
    return opened;
  }
  const bertcl::tests::ScratchFolder folder_;
};

TEST_F(ServedModel, TextsAreAsLongAsTheFilesOfSentenceTransformersSay) {
  tools::ServedModelOptions options;
  options.pooled.pooling = "mean";
  EXPECT_EQ(load(HeadOf::vectors, options).max_length, 512u) << "nothing tells";
  write("tokenizer_config.json", R"({"model_max_length": 2048})");
  EXPECT_EQ(load(HeadOf::vectors, options).max_length, 2048u);
  write("modules.json", R"([{"type": "models.Transformer", "path": ""},
                            {"type": "models.Pooling", "path": "1_Pooling"}])");
  write("1_Pooling/config.json", R"({"pooling_mode": "cls"})");
  write("sentence_bert_config.json", R"({"max_seq_length": 8192})");
  EXPECT_EQ(load(HeadOf::vectors).max_length, 8192u);
  options.max_length = 1000;
  EXPECT_EQ(load(HeadOf::vectors, options).max_length, 1000u);
}

TEST_F(ServedModel, OtherTextsAreAsLongAsTheirFilesSay) {
  for (const HeadOf head : {HeadOf::score, HeadOf::two_classes}) {
    write("config.json", "{}");
    EXPECT_EQ(load(head).max_length, 512u) << "nothing tells";
    write("config.json", R"({"model_type": "xlm-roberta", "max_position_embeddings": 8194})");
    EXPECT_EQ(load(head).max_length, 8192u);
  }
  write("tokenizer_config.json", R"({"model_max_length": 256})");
  const ModelSetup answers = load(HeadOf::nan);
  EXPECT_EQ(answers.max_length, 256u);
  EXPECT_EQ(answers.answer.features.max_seq_length, 256);
}

TEST_F(ServedModel, TextsHaveRoomBesideSpecialTokens) {
  tools::ServedModelOptions options;
  for (const auto& [head, specials] :
       {std::pair{HeadOf::vectors, 2}, {HeadOf::two_classes, 2}, {HeadOf::score, 3}}) {
    options.pooled.pooling = head == HeadOf::vectors ? "mean" : "";
    options.max_length = specials;
    EXPECT_THAT(error_of([&] { load(head, options); }), HasSubstr("leave no room for a text"));
    options.max_length = specials + 1;
    EXPECT_EQ(load(head, options).max_length, static_cast<std::size_t>(specials + 1));
  }
}

TEST_F(ServedModel, TextsAreCutOnTheSideOfTheTokenizer) {
  const auto ranked = [&](const json& more) {
    json body = {{"query", "Who?"}, {"texts", {"one two three four five"}}, {"truncate", true}};
    body.update(more);
    return post(HeadOf::score, "/rerank", body);
  };
  write("tokenizer_config.json", R"({"model_max_length": 7})");
  const json right = ranked(json::object());
  const json left = ranked({{"truncation_direction", "Left"}});
  EXPECT_NE(left, right);
  write("tokenizer_config.json", R"({"model_max_length": 7, "truncation_side": "left"})");
  EXPECT_EQ(ranked(json::object()), left);
  EXPECT_EQ(ranked({{"truncation_direction", "Right"}}), right);
}

TEST_F(ServedModel, ACrossEncoderGivesScoresThoughItHasModules) {
  write("modules.json", R"([{"type": "sentence_transformers.base.modules.transformer.Transformer",
                             "path": ""}])");
  EXPECT_EQ(load(HeadOf::score).kind, Kind::reranker) << "by its head";
  write("modules.json", R"([{"type": "sentence_transformers.base.modules.transformer.Transformer",
                             "path": ""}, {"type": "my.Scores", "path": "1_Scores"}])");
  write("config_sentence_transformers.json",
        R"({"model_type": "CrossEncoder", "activation_fn": "torch.nn.modules.linear.Identity"})");
  write("sentence_bert_config.json", R"({"max_seq_length": 300})");
  const ModelSetup scores = load(HeadOf::score);
  EXPECT_EQ(scores.kind, Kind::reranker);
  EXPECT_FALSE(scores.sigmoid);
  EXPECT_EQ(scores.max_length, 300u);
  EXPECT_EQ(load(HeadOf::two_classes).kind, Kind::classifier);
}

TEST_F(ServedModel, TheFirstTextOfACrossEncoderHasItsPrompt) {
  const json asked = {{"query", "Find: who?"}, {"texts", {"a text"}}},
             query = {{"query", "who?"}, {"texts", {"a text"}}},
             pair = {{"inputs", json::array({json::array({"who?", "a text"})})}};
  const json expected = post(HeadOf::score, "/rerank", asked);
  EXPECT_NE(post(HeadOf::score, "/rerank", query), expected);
  write("modules.json", R"([{"type": "models.Transformer", "path": ""}])");
  write("config_sentence_transformers.json",
        R"({"model_type": "CrossEncoder", "prompts": {"find": "Find: ", "none": ""},
            "default_prompt_name": "find"})");
  EXPECT_EQ(post(HeadOf::score, "/rerank", query), expected);
  EXPECT_EQ(post(HeadOf::score, "/predict", pair)[0][0]["score"], expected[0]["score"]);
  json plain = asked;
  plain["prompt_name"] = "none";
  EXPECT_EQ(post(HeadOf::score, "/rerank", plain), expected);
}

TEST_F(ServedModel, RegressionGivesNumbersAsTheyAre) {
  const json text = {{"inputs", "a text"}}, raw = {{"inputs", "a text"}, {"raw_scores", true}},
             rank = {{"query", "Who?"}, {"texts", {"a text"}}};
  for (const HeadOf head : {HeadOf::score, HeadOf::two_classes}) {
    write("config.json", "{}");
    const json logits = post(head, "/predict", raw);
    EXPECT_NE(post(head, "/predict", text), logits);
    write("config.json", R"({"problem_type": "regression"})");
    EXPECT_EQ(post(head, "/predict", text), logits);
  }
  const json score = post(HeadOf::score, "/rerank", rank);
  write("config.json", "{}");
  EXPECT_EQ(post(HeadOf::score, "/rerank", rank), score) << "as sentence-transformers has it";
}

TEST(DynamicScales, AnAnswerDependsOnItsTextsAlone) {
  TestService test({.models = {"dynamic", "vectors"}});
  Service& service = test.service();
  Batcher& batcher = service.models()[0]->batcher();
  EXPECT_TRUE(batcher.options().one_request);
  EXPECT_FALSE(service.models()[1]->batcher().options().one_request);
  EXPECT_EQ(batcher.options().max_wait.count(), 0) << "nothing can come that runs with it";
  const auto ask = [&](const json& texts) {
    RequestRecord record;
    return service.handle({"POST", "/embed", json{{"inputs", texts}}.dump()}, record).body;
  };
  const std::vector<json> asked = {"short", {"a cat", "OpenCL by Khronos"}, "Who maintains it?"};
  std::vector<std::string> alone;
  for (const json& texts : asked) alone.push_back(ask(texts));
  HeldModel held(batcher);
  std::vector<std::future<std::string>> together;
  for (const json& texts : asked) together.push_back(std::async(std::launch::async, ask, texts));
  EXPECT_TRUE(eventually([&] { return batcher.depth().requests == asked.size(); }));
  held.release();
  for (std::size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(together[i].get(), alone[i]);
}

TEST_F(ServedModel, AsManyBatchesRunAsThereAreExecutors) {
  tools::ServedModelOptions options;
  options.executors = 6;
  const ModelSetup setup = load(HeadOf::two_classes, options);
  const std::vector<std::int64_t> ids = {101, 102}, types = {0, 0}, offsets = {0, 2};
  std::vector<runtime::Session::Run> runs;
  for (int i = 0; i < 6; ++i)
    runs.push_back(setup.session->start(runtime::Sequences{ids, types, offsets}));
  EXPECT_THROW(setup.session->start(runtime::Sequences{ids, types, offsets}), Error);
  for (runtime::Session::Run& run : runs) EXPECT_FALSE(run.finish().empty());
}

}  // namespace
}  // namespace bertcl::serve::tests
