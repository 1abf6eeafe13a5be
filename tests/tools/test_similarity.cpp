// SPDX-License-Identifier: Apache-2.0
// bertcl similarity: the order of texts and of pairs by the vectors of `bertcl embed`, files and
// options. The similarities of sentence-transformers: tests/python/test_sentence_transformer.py.
#include <algorithm>
#include <cmath>

#include "npz/npy.hpp"
#include "npz/npz.hpp"
#include "program_runner.hpp"
#include "tasks_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

using Vector = std::vector<float>;

const std::vector<std::string> kTexts = {
    "The Khronos Group maintains OpenCL.",        "Oslo.", "",
    "BERT reads a text from both sides at once.", "Oslo.", "Who?"};
const std::string kQuery = "Who maintains OpenCL?";

std::string as_lines(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + "\n";
  return all;
}

double dot(const Vector& a, const Vector& b) {
  return static_cast<double>(a[0]) * b[0] + static_cast<double>(a[1]) * b[1];
}

/// By its formula, of vectors of two dimensions.
double similarity(const std::string& function, const Vector& a, const Vector& b) {
  const double x = static_cast<double>(a[0]) - b[0], y = static_cast<double>(a[1]) - b[1];
  if (function == "dot") return dot(a, b);
  if (function == "euclidean") return -std::hypot(x, y);
  if (function == "manhattan") return -std::abs(x) - std::abs(y);
  return dot(a, b) / std::sqrt(dot(a, a)) / std::sqrt(dot(b, b));
}

class SimilarityTest : public FolderTest {
 protected:
  SimilarityTest() : model_(write("m.onnx", model_of_tasks())) {}

  ProgramResult run(const std::string& command, std::vector<std::string> more,
                    const std::vector<std::string>& texts = kTexts) const {
    more.insert(more.begin(), {command, model_, "--vocab", kVocabulary, "--pooling", "mean"});
    return run_bertcl(more, {}, as_lines(texts));
  }
  ProgramResult similarity_of(const std::vector<std::string>& more,
                              const std::vector<std::string>& texts = kTexts) const {
    return run("similarity", more, texts);
  }
  nlohmann::json report(const std::vector<std::string>& more,
                        const std::vector<std::string>& texts = kTexts) const {
    return json_of(similarity_of(joined(more, {"--json", "-"}), texts));
  }
  /// Of `bertcl embed`.
  std::vector<Vector> vectors(const std::vector<std::string>& texts,
                              const std::vector<std::string>& more = {}) const {
    std::vector<Vector> all;
    for (const nlohmann::json& line : json_lines(run("embed", more, texts)))
      all.push_back(line.at("embedding").get<Vector>());
    return all;
  }
  void files_say(const std::string& config) const {
    write("modules.json", R"([{"type": "sentence_transformers.models.Transformer", "path": ""}])");
    write("config_sentence_transformers.json", config);
  }
  ir::Tensor npy(const std::string& name) const {
    const std::string content = read(path(name));
    const auto* bytes = reinterpret_cast<const std::byte*>(content.data());
    return npz::parse_npy({bytes, bytes + content.size()}, name);
  }

  const std::string model_;
};

const std::vector<std::string> kFunctions = {"cosine", "dot", "euclidean", "manhattan"};

TEST_F(SimilarityTest, TextsAreOrderedByTheirSimilarityToTheQuery) {
  const std::vector<Vector> all = vectors(kTexts);
  const Vector query = vectors({kQuery})[0];
  for (const std::string& function : kFunctions) {
    const nlohmann::json json = report({"-q", kQuery, "--similarity", function});
    EXPECT_EQ(json.at("similarity"), function);
    EXPECT_EQ(json.at("query"), kQuery);
    EXPECT_EQ(json.at("texts"), 6);
    EXPECT_FALSE(json.contains("pairs"));
    const nlohmann::json& results = json.at("results");
    ASSERT_EQ(results.size(), 6u) << "an empty line is a text, too";
    double last = INFINITY;
    for (const nlohmann::json& result : results) {
      const std::size_t index = result.at("index");
      const double score = result.at("score");
      EXPECT_EQ(result.at("text"), kTexts[index]);
      EXPECT_NEAR(score, similarity(function, query, all[index]), 1e-5) << function;
      EXPECT_LE(score, last) << function;
      last = score;
    }
    EXPECT_LT(last, results[0].at("score").get<double>()) << "the model tells nothing apart";
    const auto place = [&](int index) {
      return std::ranges::find_if(results, [&](const auto& r) { return r["index"] == index; }) -
             results.begin();
    };
    EXPECT_EQ(place(4), place(1) + 1) << "equal ones in their order";
  }
}

TEST_F(SimilarityTest, PairsComeBestFirst) {
  const std::vector<Vector> all = vectors(kTexts);
  for (const std::string& function : kFunctions) {
    const nlohmann::json json = report({"--similarity", function});
    EXPECT_FALSE(json.contains("query"));
    EXPECT_FALSE(json.contains("results"));
    const nlohmann::json& pairs = json.at("pairs");
    ASSERT_EQ(pairs.size(), 15u);
    double last = INFINITY;
    for (const nlohmann::json& each : pairs) {
      const nlohmann::json& pair = each.at("pair");
      const std::size_t i = pair.at(0).at("index"), k = pair.at(1).at("index");
      EXPECT_LT(i, k);
      EXPECT_EQ(pair.at(0).at("text"), kTexts[i]);
      EXPECT_EQ(pair.at(1).at("text"), kTexts[k]);
      const double score = each.at("score");
      EXPECT_NEAR(score, similarity(function, all[i], all[k]), 1e-5) << function;
      EXPECT_LE(score, last);
      last = score;
    }
    if (function == "dot") continue;
    EXPECT_EQ(pairs[0].at("pair")[0].at("index"), 1) << "both are Oslo";
    EXPECT_EQ(pairs[0].at("pair")[1].at("index"), 4);
    EXPECT_EQ(report({"--similarity", function, "--top-k", "3"}).at("pairs"),
              nlohmann::json(pairs.begin(), pairs.begin() + 3));
  }
}

TEST_F(SimilarityTest, TwentyPairsAreTheDefault) {
  EXPECT_EQ(report({}, std::vector<std::string>(9, "same")).at("pairs").size(), 20u);
  const auto all = report({"--top-k", "100"}, std::vector<std::string>(9, "same")).at("pairs");
  ASSERT_EQ(all.size(), 36u);
  for (std::size_t n = 0, i = 0; i < 9; ++i)
    for (std::size_t k = i + 1; k < 9; ++k, ++n) {
      EXPECT_EQ(all[n]["pair"][0]["index"], i) << "equal ones in their order";
      EXPECT_EQ(all[n]["pair"][1]["index"], k);
    }
}

TEST_F(SimilarityTest, TextIsATableWithTheBestFirst) {
  const ProgramResult all = succeeded(similarity_of({"-q", kQuery}));
  EXPECT_THAT(all.out, HasSubstr("score  index  text\n"));
  for (const std::string& text : kTexts) EXPECT_THAT(all.out, HasSubstr(text));
  EXPECT_EQ(std::count(all.out.begin(), all.out.end(), '\n'), 7) << all.out;
  const ProgramResult best = similarity_of({"-q", kQuery, "--top-k", "2"});
  EXPECT_EQ(std::count(best.out.begin(), best.out.end(), '\n'), 3) << best.out;

  const ProgramResult pairs = similarity_of({"--top-k", "1"});
  EXPECT_THAT(pairs.out, AllOf(HasSubstr(" score  index  index  text   text\n"),
                               HasSubstr("1.0000      1      4  Oslo.  Oslo.\n")));
  const std::string text(200, 'x');
  EXPECT_THAT(similarity_of({}, {text, "a"}).out, Not(HasSubstr(std::string(61, 'x'))));
}

TEST_F(SimilarityTest, IdsNameTheTexts) {
  const std::vector<std::string> lines = {R"({"text": "Oslo.", "id": 7})", R"({"text": "Who?"})",
                                          R"({"text": "Oslo.", "id": "x"})"};
  EXPECT_THAT(similarity_of({"-q", "Oslo."}, lines).out, HasSubstr("score  id  text\n"));
  EXPECT_THAT(similarity_of({"--top-k", "1"}, lines).out,
              HasSubstr("1.0000  7   x   Oslo.  Oslo.\n"));
  const nlohmann::json results = report({"-q", "Oslo."}, lines).at("results");
  EXPECT_EQ(results[0].at("id"), "7");
  EXPECT_EQ(results[1].at("id"), "x");
  EXPECT_FALSE(results[2].contains("id"));
  const nlohmann::json pair = report({}, lines).at("pairs")[0].at("pair");
  EXPECT_EQ(pair, nlohmann::json::parse(R"([{"index": 0, "id": "7", "text": "Oslo."},
                                            {"index": 2, "id": "x", "text": "Oslo."}])"));
}

TEST_F(SimilarityTest, FilesHoldAllSimilarities) {
  const std::vector<Vector> all = vectors(kTexts);
  const ProgramResult result =
      succeeded(similarity_of({"--similarity", "euclidean", "--top-k", "1", "-o", path("s.npy")}));
  EXPECT_THAT(result.out, HasSubstr("s.npy: euclidean similarities [6, 6]\n"));
  const ir::Tensor matrix = npy("s.npy");
  ASSERT_EQ(matrix.shape(), (ir::Sizes{6, 6}));
  for (std::size_t i = 0; i < 6; ++i)
    for (std::size_t k = 0; k < 6; ++k)
      EXPECT_NEAR(matrix.as<float>()[i * 6 + k], similarity("euclidean", all[i], all[k]), 1e-5);

  const Vector query = vectors({kQuery})[0];
  for (const char* name : {"q.npy", "q.npz", "q.safetensors"})
    ASSERT_EQ(similarity_of({"-q", kQuery, "--top-k", "1", "-o", path(name)}).code, 0);
  const ir::Tensor row = npy("q.npy");
  ASSERT_EQ(row.shape(), (ir::Sizes{1, 6}));
  for (std::size_t k = 0; k < 6; ++k)
    EXPECT_NEAR(row.as<float>()[k], similarity("cosine", query, all[k]), 1e-5);
  EXPECT_TRUE(
      std::ranges::equal(npz::load(path("q.npz")).at("similarities").as<float>(), row.as<float>()));
  EXPECT_THAT(read(path("q.safetensors")),
              HasSubstr(R"({"similarities":{"dtype":"F32","shape":[1,6])"));
  const nlohmann::json both = report({"-q", kQuery, "-o", path("r.npy")});
  for (const nlohmann::json& each : both.at("results"))
    EXPECT_EQ(each.at("score"), row.as<float>()[each.at("index").get<std::size_t>()]);
  expect_refused(similarity_of({"-o", path("s.npy")}), {"--force"});
  expect_refused(similarity_of({"-o", path("s.json")}),
                 {"expected a name that ends in .npy, .npz or .safetensors"});
}

TEST_F(SimilarityTest, TheModelsFilesNameTheFunction) {
  EXPECT_EQ(report({"-q", kQuery}).at("similarity"), "cosine");
  files_say(R"({"similarity_fn_name": "manhattan"})");
  const nlohmann::json told = report({"-q", kQuery});
  EXPECT_EQ(told.at("similarity"), "manhattan");
  EXPECT_EQ(told.at("results"), report({"-q", kQuery, "--similarity", "manhattan"}).at("results"));
  EXPECT_EQ(report({"--similarity", "dot"}).at("similarity"), "dot");
  files_say(R"({"similarity_fn_name": "maxsim"})");
  expect_refused(
      similarity_of({"-q", kQuery}),
      {"config_sentence_transformers.json: similarity_fn_name 'maxsim'", "--similarity"});
  EXPECT_EQ(report({"--similarity", "dot"}).at("similarity"), "dot");
}

TEST_F(SimilarityTest, QueryAndTextsHaveTheirPrompts) {
  const std::vector<std::string> texts = {"Oslo.", "Who?"};
  const auto scores = [&](const std::vector<std::string>& more) {
    std::vector<double> found(2);
    const nlohmann::json json = report(more, texts);
    for (const nlohmann::json& each : json.at("results"))
      found[each.at("index").get<std::size_t>()] = each.at("score");
    return found;
  };
  const auto plain = scores({"-q", kQuery});
  const auto both = scores({"-q", kQuery, "--query-prompt", "query: ", "--prompt", "passage: "});
  EXPECT_NE(both, plain);
  EXPECT_EQ(both[1], scores({"-q", "query: " + kQuery, "--prompt", "passage: "})[1])
      << "before the query";
  files_say(R"({"prompts": {"query": "query: ", "passage": "passage: ", "other": "other: "},
                "default_prompt_name": "other"})");
  const nlohmann::json told = report({"-q", kQuery}, texts);
  EXPECT_EQ(told.at("query_prompt"), "query: ");
  EXPECT_EQ(told.at("prompt"), "passage: ");
  EXPECT_EQ(scores({"-q", kQuery}), both);
  EXPECT_EQ(scores({"-q", kQuery, "--query-prompt", "", "--prompt", ""}), plain);
  const nlohmann::json pairs = report({}, texts);
  EXPECT_EQ(pairs.at("prompt"), "other: ") << "neither is a query";
  EXPECT_FALSE(pairs.contains("query_prompt"));
  EXPECT_EQ(pairs.at("pairs"), report({"--prompt", "other: "}, texts).at("pairs"));

  write_pooling(R"({"pooling_mode": "mean", "include_prompt": false})");
  expect_refused(similarity_of({"-q", kQuery}), {"include_prompt", "--query-prompt \"\""});
  expect_refused(similarity_of({"-q", kQuery, "--query-prompt", ""}), {"; --prompt \"\""});
  EXPECT_EQ(scores({"-q", kQuery, "--query-prompt", "", "--prompt", ""}), plain);
}

TEST_F(SimilarityTest, LongTextsAreTruncatedWithAWarning) {
  const ProgramResult texts = succeeded(similarity_of({"-q", "Who?", "--max-seq-length", "6"}));
  EXPECT_THAT(texts.err,
              AllOf(HasSubstr("truncated 2 of 6 texts to 6 tokens"), Not(HasSubstr("the query"))));
  const ProgramResult query = similarity_of({"-q", kQuery, "--max-seq-length", "6"}, {"a", "b"});
  EXPECT_THAT(query.err,
              AllOf(HasSubstr("truncated the query to 6 tokens"), Not(HasSubstr("texts"))));
  EXPECT_EQ(report({"-q", kQuery, "--max-seq-length", "6"}).at("truncated"), 3);
}

TEST_F(SimilarityTest, WhatDoesNotFitIsRefused) {
  expect_refused(similarity_of({}, {"alone"}), {"one text has no pair", "--query"});
  EXPECT_EQ(report({"-q", "Who?"}, {"alone"}).at("results").size(), 1u);
  expect_refused(similarity_of({"-q", "Who?"}, {}), {"contains no text"});
  expect_refused(similarity_of({"-q", " "}), {"the query is empty"});
  for (const char* option : {"--query", "--prompt", "--query-prompt"})
    expect_refused(similarity_of({"-q", "a", option, "a\xff"}),
                   {std::string(option) + ": invalid UTF-8 at byte 1 of 2"});
  expect_refused(similarity_of({"--similarity", "euclid"}),
                 {"unknown value 'euclid' (choose from cosine, dot, euclidean, manhattan)"});
  expect_refused(similarity_of({"--top-k", "0"}), {"--top-k"});
  expect_refused(similarity_of({"--query-prompt", "a"}), {"--query"});
  expect_refused(similarity_of({"-q", "Who?"}, {R"({"text": "a"})", R"({"passage": "b"})"}),
                 {"standard input:2: "});
  expect_refused(similarity_of({"-q", "Who?"}, {"a", "caf\xe9"}),
                 {"standard input:2: invalid UTF-8"});
  expect_refused({"similarity", model_, "--vocab", kVocabulary},
                 {"no output is a vector", "--pooling mean"}, {}, "a\nb\n");
}

}  // namespace
}  // namespace bertcl::tests
