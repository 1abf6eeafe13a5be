// SPDX-License-Identifier: Apache-2.0
// bertcl eval on searches, and bertcl quantize on any texts. Scores are compared with NumPy's in
// tests/python/test_retrieval.py.
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program_runner.hpp"
#include "tasks_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tools {
namespace {

using tests::expect_refused, tests::joined, tests::refusal, tests::run_bertcl;

using SearchTest = tests::FolderTest;

TEST_F(SearchTest, SearchesAreScoredAndVectorsCompared) {
  write_pooling(R"({"pooling_mode": "mean"})");
  const std::string model = write("m.onnx", tests::model_of_tasks()),
                    data = write("d.json", tests::kTwoContexts);
  const auto eval = [&](const std::string& task, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"eval", model, "--task", task, "--data", data, "--vocab",
                               tests::kVocabulary, "--force"});
    return run_bertcl(more);
  };
  const auto found = succeeded(eval("retrieval", {"--compare", model, "--json", path("r.json")}));
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

  const auto ranked = succeeded(eval("reranking", {"--predictions", path("p.json")}));
  EXPECT_THAT(ranked.out, AllOf(HasSubstr("MRR@10"), HasSubstr("MRR@10 of BM25"),
                                HasSubstr("recall@20 of BM25")));
  EXPECT_EQ(read_json(path("p.json")).size(), 3u);
  expect_refused({"eval", tests::kModel, "--task", "retrieval", "--data", data},
                 {"no output is a vector [batch, hidden]"});
  expect_refused({"eval", tests::kModel, "--task", "reranking", "--data", data}, {"[batch, 1]"});
  expect_refused(
      {"eval", tests::kModel, "--task", "similarity", "--data",
       write("pairs.csv", "one,two,3\nthree,four,1\n")},
      {"[batch, 1], with 1 score; to compare text vectors, set up pooling (modules.json"});
  const std::string none = write("none.json", R"({"version": "v2.0", "data": []})");
  EXPECT_THAT(
      refusal(run_bertcl(
          {"eval", model, "--task", "retrieval", "--data", none, "--vocab", tests::kVocabulary})),
      AllOf(HasSubstr("none.json"), AnyOf(HasSubstr("no question"), HasSubstr("no questions"))));
  expect_refused({"quantize", model, "-o", path("q.onnx"), "--task", "retrieval", "--data", data},
                 {"unknown value 'retrieval'"});
}

TEST_F(SearchTest, AnyTextsCalibrate) {
  const std::string model = write("tiny.onnx", tests::model_of_tasks());
  const auto quantize = [&](const std::string& texts, std::vector<std::string> more = {}) {
    more.insert(more.begin(),
                {"quantize", model, "-o", path("q.onnx"), "--force", "--vocab", tests::kVocabulary,
                 "--task", "text", "--calibration", texts, "--preset", "fast", "--model-only"});
    return run_bertcl(more);
  };
  const auto lines = succeeded(quantize(write("t.txt", "one two three\n\n  \nfour five six\n")));
  EXPECT_THAT(lines.out, HasSubstr("on 2 texts (10 tokens)"));
  const auto pairs =
      succeeded(quantize(write("t.jsonl", R"({"text": "one two", "text_pair": "three"})"
                                          "\n"
                                          R"({"text": "four"})"
                                          "\n")));
  EXPECT_THAT(pairs.out, HasSubstr("on 2 texts (9 tokens)"));
  const auto contexts = succeeded(quantize(write("d.json", tests::kTwoContexts)));
  EXPECT_THAT(contexts.out, HasSubstr("on 2 texts ("));
  for (const char* empty : {"", "\n \n", "{\"text\": \" \"}\n"})
    expect_refused(quantize(write("e.txt", empty)), {"e.txt: contains no text"});
  expect_refused(quantize(write("e.txt", "{\"words\": \" \"}\n")),
                 {"e.txt:1: text is missing", "text_pair"});
  expect_refused(quantize(path("t.txt"), {"--max-drop", "1"}), {"--max-error"});
  expect_refused({"eval", tests::kModel, "--task", "text", "--data", path("t.txt")},
                 {"unknown value 'text'"});
}

}  // namespace
}  // namespace bertcl::tools
