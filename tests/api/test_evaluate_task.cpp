// SPDX-License-Identifier: Apache-2.0
// Tasks other than SQuAD through the public interface: scores are those of the session's outputs.
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "bertcl/bertcl.hpp"
#include "tests/api/model.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/scratch_folder.hpp"
#include "tests/tools/tasks_model.hpp"

namespace bertcl {
namespace {

const std::vector<std::string> kTexts = {"A fine film.", "Dull!", "It is what it is, and no more.",
                                         "Oslo", "Who made the engine?"};

class EvaluateTask : public testing::Test {
 protected:
  EvaluateTask() : session_(Session::load(write("m.onnx", tests::model_of_tasks()))) {}

  std::filesystem::path write(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  /// [rows][classes] of an output of two dimensions.
  std::vector<std::vector<float>> rows(const Sequences& sequences, const std::string& name) const {
    const Tensor output = session_.run(sequences).at(name);
    const auto values = output.values<float>();
    const auto classes = static_cast<std::size_t>(output.shape().back());
    std::vector<std::vector<float>> rows;
    for (std::size_t i = 0; i < values.size(); i += classes)
      rows.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(i),
                        values.begin() + static_cast<std::ptrdiff_t>(i + classes));
    return rows;
  }

  tests::ScratchFolder folder_;
  Tokenizer tokenizer_ = Tokenizer::load(tests::folder / "vocab.txt");
  Session session_;
};

double metric(const TaskScores& scores, const std::string& name) {
  for (const auto& [own, value] : scores.metrics)
    if (own == name) return value;
  ADD_FAILURE() << "no metric " << name;
  return NAN;
}

TEST_F(EvaluateTask, ClassesAreThoseOfTheLargestLogits) {
  std::string lines;
  for (const std::string& text : kTexts) lines += text + "\tB\n";
  const std::filesystem::path data = write("t.tsv", lines);
  TaskOptions options{.labels = {"A", "B"}};
  std::size_t seen = 0;
  const TaskScores scores =
      evaluate_task(session_, tokenizer_, "classify", data, options,
                    [&](std::size_t done, std::size_t all) { return seen = done, done <= all; });
  const auto logits = rows(tokenizer_.encode_texts(kTexts), "classes");
  double right = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const bool second = logits[i][1] > logits[i][0];
    EXPECT_EQ(scores.predictions.at(std::to_string(i)), second ? "\"B\"" : "\"A\"");
    right += second ? 1 : 0;
  }
  EXPECT_EQ(scores.metrics.front().first, "accuracy");
  EXPECT_NEAR(metric(scores, "accuracy"), 100 * right / 5, 1e-9);
  EXPECT_EQ(scores.items, 5u);
  EXPECT_EQ(seen, 5u);
  EXPECT_EQ(scores.truncated, 0u);
  options.limit = 2;
  EXPECT_EQ(evaluate_task(session_, tokenizer_, "classify", data, options).items, 2u);
  options.max_length = 4;
  EXPECT_EQ(evaluate_task(session_, tokenizer_, "classify", data, options).truncated, 1u);
}

TEST_F(EvaluateTask, LabelsAndWhetherThereAreSeveralStandBesideTheModel) {
  const std::filesystem::path data = write("t.tsv", "Oslo\tjoy,love\nDull!\tlove\n");
  write("config.json", R"({"id2label": {"0": "joy", "1": "love"},
                           "problem_type": "multi_label_classification"})");
  const TaskScores scores = evaluate_task(session_, tokenizer_, "classify", data);
  EXPECT_EQ(scores.metrics.front().first, "micro_f1");
  const auto logits = rows(tokenizer_.encode_texts({"Oslo", "Dull!"}), "classes");
  for (std::size_t i = 0; i < 2; ++i) {
    nlohmann::json expected = nlohmann::json::array();
    if (logits[i][0] > 0) expected.push_back("joy");
    if (logits[i][1] > 0) expected.push_back("love");
    EXPECT_EQ(nlohmann::json::parse(scores.predictions.at(std::to_string(i))), expected);
  }
  EXPECT_ERROR(HasSubstr("the data contain joy,love"),
               evaluate_task(session_, tokenizer_, "classify", data, {.multi_label = false}));
}

TEST_F(EvaluateTask, TagsAreReadAtTheWordsOfSequencesOfDifferentLengths) {
  const std::filesystem::path data =
      write("t.conll", "Oslo\tB-x\nis\tO\n\nWho\tO\n\nthe\tO\nengine\tB-x\nmade\tO\nit\tO\n");
  TaskOptions options{.labels = {"O", "B-x"}};
  const TaskScores scores = evaluate_task(session_, tokenizer_, "tag", data, options);
  const std::vector<std::string> sentences = {"Oslo is", "Who", "the engine made it"};
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    // One word piece each.
    const auto logits = rows(tokenizer_.encode_texts({sentences[i]}), "/qa_outputs/Add_output_0");
    nlohmann::json expected = nlohmann::json::array();
    for (std::size_t token = 1; token + 1 < logits.size(); ++token)
      expected.push_back(options.labels[logits[token][1] > logits[token][0] ? 1 : 0]);
    EXPECT_EQ(nlohmann::json::parse(scores.predictions.at(std::to_string(i))), expected);
  }
  EXPECT_EQ(scores.metrics.front().first, "f1");
}

TEST_F(EvaluateTask, ClassesOfAModelInMemoryAreThoseOfItsMetadata) {
  const std::filesystem::path data = write("t.tsv", "Oslo\tA\nDull!\tB\n");
  const auto evaluated = [&](const std::string& classes) {
    onnx::ModelProto model;
    model.ParseFromString(tests::model_of_tasks());
    auto* entry = model.add_metadata_props();
    entry->set_key("bertcl.classes"), entry->set_value(classes);
    const std::string bytes = model.SerializeAsString();
    const Session session = Session::load(ModelBytes{std::as_bytes(std::span(bytes)), {}, {}});
    return evaluate_task(session, tokenizer_, "classify", data);
  };
  const TaskScores expected =
      evaluate_task(session_, tokenizer_, "classify", data, {.labels = {"A", "B"}});
  EXPECT_EQ(evaluated(R"(["A", "B"])").predictions, expected.predictions);
  EXPECT_ERROR(HasSubstr("model in memory: bertcl.classes in the metadata"), evaluated("A, B"));
}

TEST_F(EvaluateTask, SimilarityIsTheScoreOfThePair) {
  const std::filesystem::path data = write("t.csv", "Oslo,Dull!,1\nWho?,It is.,4\nOslo,Oslo,5\n");
  const TaskScores scores = evaluate_task(session_, tokenizer_, "similarity", data);
  const auto logits = rows(
      tokenizer_.encode_pairs({{"Oslo", "Dull!"}, {"Who?", "It is."}, {"Oslo", "Oslo"}}), "score");
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_NEAR(std::stod(scores.predictions.at(std::to_string(i))), logits[i][0], 1e-5);
  EXPECT_GE(metric(scores, "pearson"), -1.0);
  EXPECT_LE(metric(scores, "pearson"), 1.0);
}

TEST_F(EvaluateTask, WhatDoesNotFitIsAnError) {
  const std::filesystem::path data = write("t.tsv", "Oslo\tA\n");
  const auto error = [&](std::string_view task, const TaskOptions& options = {}) {
    return error_of([&] { evaluate_task(session_, tokenizer_, task, data, options); });
  };
  EXPECT_THAT(error("summarize"), AllOf(HasSubstr("'summarize'"), HasSubstr("fill-mask")));
  EXPECT_THAT(error("classify"), HasSubstr("cannot map A to the model's classes"));
  EXPECT_THAT(error("fill-mask"), HasSubstr("[batch, seq, 30522 or more]"));
  TaskOptions options{.labels = {"A", "B", "C"}};
  EXPECT_THAT(error("classify", options),
              AllOf(HasSubstr("[batch, 3]"), HasSubstr("classes f32[")));
  options.labels = {"A", "B"};
  options.max_length = -1;
  EXPECT_THAT(error("classify", options), HasSubstr("'max_length' is -1, must not be negative"));
  options.max_length = 0;
  options.batch_tokens = -1;
  EXPECT_THAT(error("classify", options), HasSubstr("'batch_tokens' is -1, must not be negative"));
  options.batch_tokens = 0;
  const auto run = [&](const TaskProgress& progress) {
    evaluate_task(session_, tokenizer_, "classify", data, options, progress);
  };
  const auto failing = [](auto, auto) -> bool { throw std::runtime_error("no time"); };
  EXPECT_ERROR_CODE(ErrorCode::cancelled, run([](auto, auto) { return false; }));
  EXPECT_ERROR_CODE(ErrorCode::cancelled, run(failing));
  EXPECT_ERROR(HasSubstr("no time"), run(failing));
  const auto foreign = [](auto, auto) -> bool { throw 42; };
  EXPECT_ERROR_CODE(ErrorCode::cancelled, run(foreign));
  EXPECT_ERROR(HasSubstr("the callback failed"), run(foreign));
  const auto own = [](auto, auto) -> bool { throw Error("no place", ErrorCode::io); };
  EXPECT_ERROR_CODE(ErrorCode::cancelled, run(own));
  EXPECT_ERROR("the callback failed: no place", run(own));
}

TEST_F(EvaluateTask, QuestionsFindTheirParagraphsByVectors) {
  const std::filesystem::path data = write("d.json", R"({"version": "1.1", "data": [{"title": "t",
      "paragraphs": [{"context": "Oslo lies in Norway.", "qas": [{"id": "x", "question": "Where?",
          "answers": [{"text": "Norway", "answer_start": 13}]}]},
        {"context": "A cat sleeps.", "qas": [{"id": "y", "question": "Who sleeps here at night?",
          "answers": [{"text": "A cat", "answer_start": 0}]}]}]}]})");
  const Session session =
      Session::load(folder_ / "m.onnx", {.pooling = Pooling{"mean", false, false, 0}});
  const auto vectors = [&](const std::vector<std::string>& texts) {
    const Tensor all = embed(session, tokenizer_, texts);
    return std::vector<float>(all.values<float>().begin(), all.values<float>().end());
  };
  const std::vector<float> texts =
      vectors({"Where?", "Who sleeps here at night?", "Oslo lies in Norway.", "A cat sleeps."});
  const auto cosine = [&](std::size_t a, std::size_t b) {
    return (texts[2 * a] * texts[2 * b] + texts[2 * a + 1] * texts[2 * b + 1]) /
           std::hypot(texts[2 * a], texts[2 * a + 1]) / std::hypot(texts[2 * b], texts[2 * b + 1]);
  };
  const double expected =
      100.0 *
      ((cosine(0, 2) > cosine(0, 3) ? 1.0 : 0.5) + (cosine(1, 3) > cosine(1, 2) ? 1.0 : 0.5)) / 2;
  const TaskScores scores = evaluate_task(session, tokenizer_, "retrieval", data);
  EXPECT_EQ(scores.metrics.front().first, "ndcg_at_10");
  EXPECT_NEAR(metric(scores, "mrr_at_10"), expected, 1e-9);
  EXPECT_EQ(scores.items, 2u);
  EXPECT_EQ(scores.sequences, 4u);
  EXPECT_ERROR(HasSubstr("SessionOptions::pooling"),
               evaluate_task(session_, tokenizer_, "retrieval", data));
  EXPECT_EQ(evaluate_task(session_, tokenizer_, "reranking", data).sequences, 4u);
  // Similarity by the same vectors.
  const std::filesystem::path pairs =
      write("p.csv", "Where?,A cat sleeps.,1\nWhere?,Oslo lies in Norway.,2\n");
  EXPECT_NEAR(
      std::stod(evaluate_task(session, tokenizer_, "similarity", pairs).predictions.at("0")),
      cosine(0, 3), 1e-5);
  // Prompts are those of retrieval alone, and so is their refusal.
  std::filesystem::create_directory(folder_ / "1_Pooling");
  write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true, "include_prompt": false})");
  write("modules.json",
        R"([{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"},
      {"idx": 1, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  write("config_sentence_transformers.json", R"({"prompts": {"query": "q: "}})");
  EXPECT_EQ(evaluate_task(session, tokenizer_, "similarity", pairs).items, 2u);
  EXPECT_ERROR(HasSubstr("include_prompt"), evaluate_task(session, tokenizer_, "retrieval", data));
}

}  // namespace
}  // namespace bertcl
