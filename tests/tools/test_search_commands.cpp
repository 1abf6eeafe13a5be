// SPDX-License-Identifier: Apache-2.0
// bertcl eval on searches, and bertcl quantize on any texts. Scores are compared with NumPy's in
// tests/python/test_retrieval.py.
#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "program_runner.hpp"
#include "tasks_model.hpp"

namespace bertcl::tools {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using tests::refusal;
using tests::run_bertcl;

using SearchTest = tests::FolderTest;

const std::string kSquad = R"({"version": "1.1", "data": [{"title": "t", "paragraphs": [
    {"context": "Oslo lies in Norway.", "qas": [
      {"id": "x", "question": "Where is Oslo?", "answers": [{"text": "Norway", "answer_start": 13}]},
      {"id": "y", "question": "What lies in Norway?", "answers": [{"text": "Oslo", "answer_start": 0}]}]},
    {"context": "A cat sleeps on the mat.", "qas": [
      {"id": "z", "question": "Who sleeps?", "answers": [{"text": "A cat", "answer_start": 0}]}]}]}]})";

TEST_F(SearchTest, SearchesAreScoredAndVectorsCompared) {
  std::filesystem::create_directory(path("1_Pooling"));
  write("modules.json",
        R"([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])");
  write("1_Pooling/config.json", R"({"pooling_mode": "mean"})");
  const std::string model = write("m.onnx", tests::model_of_tasks()),
                    data = write("d.json", kSquad);
  const auto eval = [&](const std::string& task, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"eval", model, "--task", task, "--data", data, "--vocab",
                               tests::kVocabulary, "--force"});
    return run_bertcl(more);
  };
  const auto found = eval("retrieval", {"--compare", model, "--json", path("r.json")});
  ASSERT_EQ(found.code, 0) << found.err;
  EXPECT_THAT(found.out,
              AllOf(HasSubstr("3 questions of"), HasSubstr("NDCG@10"), HasSubstr("MRR@10"),
                    HasSubstr("recall@10"),
                    HasSubstr("cosine of their vectors of 5 texts: 1.00000 on average")));
  const nlohmann::json models = read_json(path("r.json")).at("models");
  EXPECT_EQ(models[0].at("recall_at_10"), 100.0) << "of two paragraphs";
  EXPECT_FALSE(models[0].contains("mean_cosine"));
  EXPECT_NEAR(models[1].at("least_cosine").get<double>(), 1.0, 1e-12);
  EXPECT_EQ(models[1].at("features"), 5) << "questions and paragraphs";
  EXPECT_EQ(models[1].value("equal_answers", 0), 3) << "paragraphs are answers, not scores";

  const auto ranked = eval("reranking", {"--predictions", path("p.json")});
  ASSERT_EQ(ranked.code, 0) << ranked.err;
  EXPECT_THAT(ranked.out, AllOf(HasSubstr("MRR@10"), HasSubstr("MRR@10 of BM25"),
                                HasSubstr("recall@20 of BM25")));
  EXPECT_EQ(read_json(path("p.json")).size(), 3u);
  EXPECT_THAT(refusal(run_bertcl({"eval", tests::kModel, "--task", "retrieval", "--data", data})),
              HasSubstr("no output is a vector [batch, hidden]"));
  EXPECT_THAT(refusal(run_bertcl({"eval", tests::kModel, "--task", "reranking", "--data", data})),
              HasSubstr("[batch, 1]"));
  EXPECT_THAT(refusal(run_bertcl({"eval", tests::kModel, "--task", "similarity", "--data",
                                  write("pairs.csv", "one,two,3\nthree,four,1\n")})),
              HasSubstr("[batch, 1], with 1 score; vectors need pooling (modules.json"));
  const std::string none = write("none.json", R"({"version": "v2.0", "data": []})");
  EXPECT_THAT(
      refusal(run_bertcl(
          {"eval", model, "--task", "retrieval", "--data", none, "--vocab", tests::kVocabulary})),
      AllOf(HasSubstr("none.json"), AnyOf(HasSubstr("no question"), HasSubstr("no questions"))));
  EXPECT_THAT(refusal(run_bertcl({"quantize", model, "-o", path("q.onnx"), "--task", "retrieval",
                                  "--data", data})),
              HasSubstr("unknown 'retrieval'"));
}

TEST_F(SearchTest, AnyTextsCalibrate) {
  const auto quantize = [&](const std::string& texts, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"quantize", tests::kModel, "-o", path("q.onnx"), "--force", "--task",
                               "text", "--calibration", texts, "--preset", "fast", "--model-only"});
    return run_bertcl(more);
  };
  const auto lines = quantize(write("t.txt", "one two three\n\n  \nfour five six\n"));
  ASSERT_EQ(lines.code, 0) << lines.err;
  EXPECT_THAT(lines.out, HasSubstr("on 2 texts (10 tokens)"));
  const auto pairs = quantize(write("t.jsonl", R"({"text": "one two", "text_pair": "three"})"
                                               "\n"
                                               R"({"text": "four"})"
                                               "\n"));
  ASSERT_EQ(pairs.code, 0) << pairs.err;
  EXPECT_THAT(pairs.out, HasSubstr("on 2 texts (9 tokens)"));
  const auto contexts = quantize(write("d.json", kSquad));
  ASSERT_EQ(contexts.code, 0) << contexts.err;
  EXPECT_THAT(contexts.out, HasSubstr("on 2 texts ("));
  for (const char* empty : {"", "\n \n", "{\"text\": \" \"}\n"})
    EXPECT_THAT(refusal(quantize(write("e.txt", empty))), HasSubstr("e.txt: contains no text"));
  EXPECT_THAT(refusal(quantize(write("e.txt", "{\"words\": \" \"}\n"))),
              AllOf(HasSubstr("e.txt:1: text is missing"), HasSubstr("text_pair")));
  EXPECT_THAT(refusal(quantize(path("t.txt"), {"--max-drop", "1"})), HasSubstr("--max-error"));
  EXPECT_THAT(
      refusal(run_bertcl({"eval", tests::kModel, "--task", "text", "--data", path("t.txt")})),
      HasSubstr("unknown 'text'"));
}

}  // namespace
}  // namespace bertcl::tools
