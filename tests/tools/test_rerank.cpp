// SPDX-License-Identifier: Apache-2.0
// bertcl rerank: what it prints, its order, its scores, and what it refuses. Scores of a model are
// compared with those of sentence-transformers in tests/python/test_cross_encoder.py.
#include <algorithm>
#include <cmath>

#include "tasks_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

class RerankTest : public TasksModelTest {};

const std::vector<std::string> kPassages = {
    "The Khronos Group maintains OpenCL.", "Oslo.",
    "BERT reads a text from both sides at once, and that is most of what there is to say of it.",
    "Oslo.", "Who?"};

std::string lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

TEST_F(RerankTest, LogitsAreThoseOfTheModelForEachPair) {
  const nlohmann::json report =
      json("rerank", lines(kPassages), {"-q", "Who maintains OpenCL?", "--logits"});
  EXPECT_EQ(report.at("activation"), "none");
  EXPECT_EQ(report.at("passages"), 5);
  const nlohmann::json& query = report.at("queries").at(0);
  EXPECT_EQ(query.at("query"), "Who maintains OpenCL?");
  const nlohmann::json& results = query.at("results");
  ASSERT_EQ(results.size(), 5u);
  std::string pairs;
  for (const std::string& text : kPassages)
    pairs += nlohmann::json({{"text", "Who maintains OpenCL?"}, {"text_pair", text}}).dump() + "\n";
  std::vector<double> expected;
  for (const nlohmann::json& line : json_lines(run("run", pairs)))
    expected.push_back(line.at("outputs").at("score").at(0));
  double last = INFINITY;
  for (const nlohmann::json& result : results) {
    const std::size_t index = result.at("index");
    EXPECT_EQ(result.at("text"), kPassages[index]);
    EXPECT_NEAR(result.at("score").get<double>(), expected[index], 1e-5);
    EXPECT_LE(result.at("score").get<double>(), last);
    last = result.at("score");
  }
  EXPECT_LT(last, results[0].at("score").get<double>()) << "the model tells nothing apart";
}

TEST_F(RerankTest, SigmoidsAreTheDefaultUnlessTheModelsFilesSayOtherwise) {
  const auto best = [&](const std::vector<std::string>& more) {
    return json("rerank", lines(kPassages), joined({"-q", "Who?"}, more))
        .at("queries")[0]["results"][0]["score"]
        .get<double>();
  };
  const double logit = best({"--logits"}), sigmoid = 1 / (1 + std::exp(-logit));
  EXPECT_NEAR(best({}), sigmoid, 1e-6);
  const std::string identity = R"("torch.nn.modules.linear.Identity")";
  const std::string configs[] = {
      R"({"sentence_transformers": {"activation_fn": )" + identity + "}}",
      R"({"sbert_ce_default_activation_function": )" + identity + "}"};
  for (const std::string& config : configs) {
    write("config.json", config);
    EXPECT_NEAR(best({}), logit, 1e-6);
    EXPECT_NEAR(best({"--sigmoid"}), sigmoid, 1e-6);
  }
  write("config_sentence_transformers.json",
        R"({"activation_fn": "torch.nn.modules.activation.Sigmoid"})");
  EXPECT_NEAR(best({}), sigmoid, 1e-6) << "it comes before config.json";
  write("config_sentence_transformers.json", R"({"activation_fn": "mine.Softplus"})");
  expect_refused(run("rerank", "a\n", {"-q", "Who?"}), {"mine.Softplus", "--logits"});
}

TEST_F(RerankTest, TextIsATableWithTheBestFirst) {
  const std::string file = write("p.txt", lines(kPassages));
  const ProgramResult all = succeeded(run("rerank", "", {file, "-q", "Who?"}));
  EXPECT_THAT(all.out, AllOf(HasSubstr("score  index  passage\n"), Not(HasSubstr("? Who?"))));
  for (const std::string& passage : kPassages) EXPECT_THAT(all.out, HasSubstr("  " + passage));
  const std::size_t first = all.out.find("Oslo.");
  EXPECT_LT(all.out.rfind("  1  ", first), all.out.rfind("  3  ", all.out.rfind("Oslo.")))
      << "equal ones in their order: " << all.out;
  const ProgramResult best = run("rerank", "", {"-q", "Who?", "--passages", file, "--top-k", "2"});
  EXPECT_EQ(std::count(best.out.begin(), best.out.end(), '\n'), 3) << best.out;
  EXPECT_THAT(all.out, StartsWith(best.out.substr(0, best.out.find('\n'))));
}

TEST_F(RerankTest, PassagesGoToTheModelAsTheyAre) {
  const nlohmann::json results =
      json("rerank", "  Ada. \nOslo.\r\n", {"-q", "Who?"}).at("queries")[0].at("results");
  ASSERT_EQ(results.size(), 2u);
  for (const nlohmann::json& result : results)
    EXPECT_EQ(result.at("text"), result.at("index") == 0 ? "  Ada. " : "Oslo.");
}

TEST_F(RerankTest, PairsAreOrderedByTheirQueries) {
  const std::string pairs = R"({"query": "Who?", "passage": "Ada.", "id": "a"}
{"query": "Where?", "passage": "Oslo."}
{"query": "Who?", "passage": "The Khronos Group.", "id": "k"}
)";
  const nlohmann::json queries = json("rerank", pairs).at("queries");
  ASSERT_EQ(queries.size(), 2u);
  EXPECT_EQ(queries[0].at("query"), "Who?");
  EXPECT_EQ(queries[0].at("results").size(), 2u);
  EXPECT_FALSE(queries[1].at("results")[0].contains("id"));
  EXPECT_EQ(queries[1].at("results")[0].at("index"), 1);
  const ProgramResult text = run("rerank", pairs);
  EXPECT_THAT(text.out, AllOf(StartsWith("? Who?\n"), HasSubstr("\n\n? Where?\n"),
                              HasSubstr("score  id  passage")));
}

TEST_F(RerankTest, LongPassagesAreTruncatedWithAWarning) {
  const ProgramResult result =
      succeeded(run("rerank", lines(kPassages), {"-q", "Who?", "--max-seq-length", "8"}));
  EXPECT_THAT(result.err, HasSubstr("truncated 2 of 5 pairs to 8 tokens"));
  write("tokenizer_config.json", R"({"model_max_length": 8})");
  EXPECT_EQ(run("rerank", lines(kPassages), {"-q", "Who?"}).err, result.err);
}

TEST_F(RerankTest, TheQueryHasThePromptOfTheModel) {
  const auto scores = [&](const std::string& query) {
    const nlohmann::json report = json("rerank", lines(kPassages), {"-q", query});
    std::vector<double> all;
    for (const auto& result : report.at("queries").at(0).at("results"))
      all.push_back(result.at("score"));
    EXPECT_EQ(all.size(), kPassages.size());
    return all;
  };
  const std::vector<double> expected = scores("Find: who?");
  write("modules.json", R"([{"type": "models.Transformer", "path": ""}])");
  const auto configure = [&](const std::string& type) {
    write("config_sentence_transformers.json",
          R"({"prompts": {"find": "Find: "}, "default_prompt_name": "find", "model_type": ")" +
              type + "\"}");
  };
  configure("CrossEncoder");
  EXPECT_EQ(scores("who?"), expected);
  configure("SentenceTransformer");
  EXPECT_NE(scores("who?"), expected) << "a prompt of vectors";
}

TEST_F(RerankTest, WhatDoesNotFitIsRefused) {
  expect_refused({"rerank", kModel, "-q", "Who?"}, {kModel, "[batch, 1]", "start_logits"}, {},
                 "a\n");
  expect_refused(run("rerank", "a\n"), {"standard input:1: the passage has no query"});
  expect_refused(run("rerank", "a\n", {"-q", " "}), {"the query is empty"});
  expect_refused(run("rerank", "a\n", {"-q", "a\xff"}), {"--query: invalid UTF-8 at byte 1 of 2"});
  expect_refused(run("rerank", "a\ncaf\xe9\n", {"-q", "Who?"}),
                 {"standard input:2: invalid UTF-8"});
  expect_refused(run("rerank", "a\n", {"-q", "Who?", "--top-k", "0"}), {"--top-k"});
}

}  // namespace
}  // namespace bertcl::tests
