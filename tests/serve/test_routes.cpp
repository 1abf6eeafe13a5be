// SPDX-License-Identifier: Apache-2.0
// The routes of OpenAI and text-embeddings-inference, and /answer: results, limits and refusals.
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "serve/json_text.hpp"
#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"
#include "text/base/base64.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;
using Vectors = std::vector<std::vector<float>>;

const json kTexts = {"Who maintains OpenCL?", "The Khronos Group does.", "short", " "};

/// One service for the tests that do not change it.
TestService& shared() {
  static TestService service({.models = {"vectors", "classes", "score", "qa"}});
  return service;
}

/// With their special tokens.
std::size_t tokens_of(const json& texts) {
  std::size_t count = 0;
  for (const json& tokens : shared().post("/tokenize", {{"inputs", texts}})) count += tokens.size();
  return count;
}

std::vector<float> of_base64(const std::string& text) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  for (std::size_t i = 0; i + 3 < text.size(); i += 4) {
    std::uint32_t bits = 0;
    std::size_t padding = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      const std::size_t at = alphabet.find(text[i + k]);
      padding += text[i + k] == '=' ? 1 : 0;
      bits = bits << 6 | (at == std::string::npos ? 0 : static_cast<std::uint32_t>(at));
    }
    for (std::size_t k = 0; k + padding < 3; ++k) bytes += static_cast<char>(bits >> (16 - 8 * k));
  }
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

TEST(JsonText, FloatsKeepTheirBits) {
  const std::vector<float> values = {0.1f, -1e-30f, 3.4e38f, 1.0f, 0.0f, -2.5f, 1e-45f};
  std::string text;
  append_floats(text, values);
  EXPECT_EQ(json::parse(text).get<std::vector<float>>(), values);
  for (std::size_t count = 0; count <= values.size(); ++count) {
    const std::vector<float> some(values.begin(), values.begin() + static_cast<long>(count));
    EXPECT_EQ(of_base64(text::base64(std::as_bytes(std::span(some)))), some);
  }
}

TEST(Routes, EmbedGivesUnitVectors) {
  const auto vectors = shared().post("/embed", {{"inputs", kTexts}}).get<Vectors>();
  ASSERT_EQ(vectors.size(), 4u);
  for (const auto& vector : vectors) {
    ASSERT_EQ(vector.size(), 16u);
    double sum = 0;
    for (const float x : vector) sum += x * x;
    EXPECT_NEAR(sum, 1.0, 1e-5);
  }
  EXPECT_EQ(shared().record.texts, 4u);
  EXPECT_EQ(shared().record.model, "vectors");
  const std::size_t tokens = shared().record.tokens;
  EXPECT_EQ(tokens, tokens_of(kTexts));
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_EQ(shared().post("/embed", {{"inputs", kTexts[i]}}).get<Vectors>(), Vectors{vectors[i]})
        << "alone: " << kTexts[i];
  EXPECT_EQ(shared().post("/", {{"inputs", kTexts}}).get<Vectors>(), vectors);
}

TEST(Routes, OpenAiGivesTheSameVectors) {
  const auto expected = shared().post("/embed", {{"inputs", kTexts}}).get<Vectors>();
  const json reply = shared().post("/v1/embeddings", {{"input", kTexts}, {"model", "vectors"}});
  EXPECT_EQ(reply["object"], "list");
  EXPECT_EQ(reply["model"], "vectors");
  EXPECT_EQ(reply["usage"],
            (json{{"prompt_tokens", tokens_of(kTexts)}, {"total_tokens", tokens_of(kTexts)}}));
  const json packed =
      shared().post("/v1/embeddings", {{"input", kTexts}, {"encoding_format", "base64"}});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(reply["data"][i]["index"], i);
    EXPECT_EQ(reply["data"][i]["object"], "embedding");
    EXPECT_EQ(reply["data"][i]["embedding"].get<std::vector<float>>(), expected[i]);
    EXPECT_EQ(of_base64(packed["data"][i]["embedding"]), expected[i]);
  }
  const json ids = {101, 2460, 102};  // [CLS] short [SEP]
  for (const json& input : {ids, json{ids}})
    EXPECT_EQ(shared()
                  .post("/v1/embeddings", {{"input", input}})["data"][0]["embedding"]
                  .get<std::vector<float>>(),
              expected[2]);
}

TEST(Routes, TextsAreLowerCasedWhereTheFilesOfTheModelSaySo) {
  TestService both({.models = {"cased", "lowered"}});
  const auto vector = [&](const char* model, const char* text) {
    return both.post("/v1/embeddings", {{"model", model}, {"input", text}})["data"][0]["embedding"];
  };
  EXPECT_NE(vector("cased", "Short"), vector("cased", "short"));
  EXPECT_EQ(vector("lowered", "Short"), vector("cased", "short"));
}

TEST(Routes, DimensionsAreCutAndThenNormalized) {
  const auto whole = shared().post("/embed", {{"inputs", "short"}}).get<Vectors>()[0];
  const auto cut =
      shared().post("/embed", {{"inputs", "short"}, {"dimensions", 2}}).get<Vectors>()[0];
  ASSERT_EQ(cut.size(), 2u);
  const float norm = std::hypot(whole[0], whole[1]);
  EXPECT_NEAR(cut[0], whole[0] / norm, 1e-6);
  EXPECT_NEAR(cut[1], whole[1] / norm, 1e-6);
  EXPECT_EQ(shared().status("/embed", {{"inputs", "short"}, {"dimensions", 17}}), 422);
  EXPECT_EQ(shared().status("/embed", {{"inputs", "short"}, {"dimensions", 0}}), 422);
}

TEST(Routes, NormalizationFollowsTheRequestWhereTheModelDoesNone) {
  TestService plain({.models = {"vectors"}, .normalize = false});
  const auto raw = plain.post("/embed", {{"inputs", kTexts}, {"normalize", false}}).get<Vectors>();
  const auto unit = plain.post("/embed", {{"inputs", kTexts}}).get<Vectors>();
  const auto expected = shared().post("/embed", {{"inputs", kTexts}}).get<Vectors>();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    EXPECT_NE(raw[i], unit[i]);
    for (std::size_t k = 0; k < raw[i].size(); ++k) EXPECT_NEAR(unit[i][k], expected[i][k], 1e-6);
  }
  EXPECT_EQ(shared().status("/embed", {{"inputs", "short"}, {"normalize", false}}), 422)
      << "vectors that are normalized on the device";
}

TEST(Routes, EmbedAllGivesTheHiddenStates) {
  const json tokens = shared().post("/embed_all", {{"inputs", {"short", kTexts[0]}}});
  ASSERT_EQ(tokens.size(), 2u);
  ASSERT_EQ(tokens[0].size(), 3u);
  ASSERT_EQ(tokens[1].size(), 7u);
  const auto expected = shared().post("/embed", {{"inputs", "short"}}).get<Vectors>()[0];
  std::vector<double> mean(16);
  for (const auto& token : tokens[0].get<Vectors>())
    for (std::size_t k = 0; k < 16; ++k) mean[k] += token.at(k) / 3;
  double sum = 0;
  for (const double x : mean) sum += x * x;
  for (std::size_t k = 0; k < 16; ++k) EXPECT_NEAR(mean[k] / std::sqrt(sum), expected[k], 1e-5);
}

TEST(Routes, SimilaritiesAreCosines) {
  const auto vectors = shared().post("/embed", {{"inputs", kTexts}}).get<Vectors>();
  const json request = {
      {"inputs",
       {{"source_sentence", kTexts[0]}, {"sentences", {kTexts[1], kTexts[0], kTexts[3]}}}}};
  const auto found = shared().post("/similarity", request).get<std::vector<float>>();
  EXPECT_EQ(shared().post("/", request).get<std::vector<float>>(), found);
  ASSERT_EQ(found.size(), 3u);
  const auto dot = [&](std::size_t i, std::size_t k) {
    double sum = 0;
    for (std::size_t x = 0; x < 16; ++x) sum += vectors[i][x] * vectors[k][x];
    return sum;
  };
  EXPECT_NEAR(found[0], dot(0, 1), 1e-5);
  EXPECT_NEAR(found[1], 1.0, 1e-6);
  EXPECT_NEAR(found[2], dot(0, 3), 1e-5);
}

TEST(Routes, PredictionsAreSortedAndSumToOne) {
  const json one = shared().post("/predict", {{"inputs", "short"}});
  ASSERT_EQ(one.size(), 2u);
  EXPECT_NEAR(one[0]["score"].get<double>() + one[1]["score"].get<double>(), 1.0, 1e-6);
  EXPECT_GE(one[0]["score"], one[1]["score"]);
  EXPECT_THAT((std::vector<std::string>{one[0]["label"], one[1]["label"]}),
              UnorderedElementsAre("bad", "good"));
  const json raw = shared().post("/predict", {{"inputs", "short"}, {"raw_scores", true}});
  const double difference = raw[0]["score"].get<double>() - raw[1]["score"].get<double>();
  EXPECT_NEAR(one[0]["score"].get<double>(), 1 / (1 + std::exp(-difference)), 1e-6);
  const json batch = shared().post(
      "/predict", {{"inputs", json::array({json{"short"}, json{"a text", "another"}})}});
  ASSERT_EQ(batch.size(), 2u);
  EXPECT_EQ(batch[0], one);
  EXPECT_EQ(shared().post("/predict", {{"inputs", {"a text", "another"}}}), batch[1])
      << "two texts are a pair";
  const auto three = json{"a", "b", "c"};
  EXPECT_EQ(shared().status("/predict", {{"inputs", json::array({three})}}), 422);
}

TEST(Routes, RanksAreSortedScoresOfPairs) {
  const json request = {{"query", "Who?"},
                        {"texts", {"me", "the Khronos Group", "you and me"}},
                        {"return_text", true}};
  const json ranks = shared().post("/rerank", request);
  ASSERT_EQ(ranks.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(ranks[i]["text"], request["texts"][ranks[i]["index"].get<std::size_t>()]);
    if (i > 0) {
      EXPECT_GE(ranks[i - 1]["score"], ranks[i]["score"]);
    }
  }
  json raw_request = request;
  raw_request["raw_scores"] = true;
  raw_request["return_text"] = false;
  const json raw = shared().post("/rerank", raw_request);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(raw[i]["index"], ranks[i]["index"]);
    EXPECT_FALSE(raw[i].contains("text"));
    EXPECT_NEAR(ranks[i]["score"].get<double>(), 1 / (1 + std::exp(-raw[i]["score"].get<double>())),
                1e-6);
  }
  EXPECT_EQ(shared().status("/rerank", {{"query", "Who?"}, {"texts", json::array()}}), 400);
}

TEST(Routes, ScoresAreLogitsWhereTheFilesOfARerankerSaySo) {
  TestService raw({.models = {"raw"}});
  const json pair = json::array({json::array({"Who?", "the Khronos Group"})});
  const json expected =
      shared().post("/predict", {{"inputs", pair}, {"model", "score"}, {"raw_scores", true}});
  EXPECT_EQ(raw.post("/predict", {{"inputs", pair}}), expected);
  EXPECT_NE(shared().post("/predict", {{"inputs", pair}, {"model", "score"}}), expected);
  EXPECT_EQ(raw.post("/rerank", {{"query", "Who?"}, {"texts", {"the Khronos Group"}}})[0]["score"],
            expected[0][0]["score"]);
}

TEST(Routes, TokensAndBack) {
  const json tokens = shared().post("/tokenize", {{"inputs", "Embeddings, don't!"}});
  ASSERT_EQ(tokens.size(), 1u);
  EXPECT_EQ(tokens[0][0], (json{{"id", 101},
                                {"text", "[CLS]"},
                                {"special", true},
                                {"start", nullptr},
                                {"stop", nullptr}}));
  json ids = json::array();
  for (const json& token : tokens[0]) ids.push_back(token["id"]);
  EXPECT_EQ(shared().post("/decode", {{"ids", ids}}), json{"embeddings, don ' t!"});
  EXPECT_EQ(shared().post("/decode", {{"ids", json{ids}}, {"skip_special_tokens", false}}),
            json{"[CLS] embeddings, don ' t! [SEP]"});
  const json bare =
      shared().post("/tokenize", {{"inputs", {"short"}}, {"add_special_tokens", false}});
  EXPECT_EQ(bare[0].size(), 1u);
  EXPECT_EQ(shared().status("/decode", {{"ids", {30522}}}), 422);
  EXPECT_EQ(shared().status("/decode", {{"ids", "short"}}), 422);
}

TEST(Routes, AnswersAreThoseOfTheText) {
  const std::string context = "Élan: OpenCL is maintained by the Khronos Group since 2008.";
  const json request = {{"question", "Who maintains OpenCL?"}, {"context", context}};
  const json answer = shared().post("/answer", request);
  EXPECT_EQ(answer["answer"], "Khronos Group");
  EXPECT_EQ(answer["start"], 34) << "in characters, not bytes";
  EXPECT_EQ(answer["end"], 47);
  EXPECT_GT(answer["score"], 0.3);
  const json inputs = {{"inputs", request}, {"parameters", {{"top_k", 3}}}};
  const json best = shared().post("/", inputs);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0]["answer"], "Khronos Group");
  EXPECT_GE(best[0]["score"], best[1]["score"]);
  EXPECT_EQ(shared().status("/answer", {{"question", " "}, {"context", context}}), 422);
  EXPECT_EQ(shared().status("/answer", {{"question", "Who?"}, {"context", ""}}), 422);
  EXPECT_EQ(shared().status("/answer", {{"question", "Who?"}}), 422);
}

TEST(Routes, TextsThatAreTooLongAreRefusedOrCut) {
  std::string text, start;
  for (int i = 0; i < 700; ++i) {
    text += i < 600 ? "one " : "two ";
    if (i < 510) start += "one ";
  }
  EXPECT_EQ(shared().status("/embed", {{"inputs", text}}), 413);
  const auto cut = shared().post("/embed", {{"inputs", text}, {"truncate", true}});
  EXPECT_EQ(cut, shared().post("/embed", {{"inputs", start}}));
  EXPECT_NE(
      cut, shared().post("/embed",
                         {{"inputs", text}, {"truncate", true}, {"truncation_direction", "Left"}}));
  EXPECT_EQ(shared().status("/embed",
                            {{"inputs", text}, {"truncate", true}, {"truncation_direction", "Up"}}),
            422);
  EXPECT_EQ(shared().status("/rerank", {{"query", "Who?"}, {"texts", {text}}}), 413);
  EXPECT_EQ(shared().status("/v1/embeddings", {{"input", json(std::vector<int>(513, 7))}}), 413);
  TestService cuts({.models = {"vectors"}, .service = {.auto_truncate = true}});
  EXPECT_EQ(cuts.post("/embed", {{"inputs", text}}), cut);
}

TEST(Routes, RequestsAreRefusedWithTheReason) {
  const auto error = [](const std::string& path, const std::string& body) {
    const HttpResponse reply = shared().call("POST", path, body);
    return std::to_string(reply.status) + ' ' + reply.body;
  };
  EXPECT_THAT(error("/embed", "{"), HasSubstr("422 {\"error\":"));
  EXPECT_THAT(error("/embed", "{}"), HasSubstr("inputs"));
  EXPECT_THAT(error("/embed", R"({"inputs": 3})"), HasSubstr("422"));
  EXPECT_THAT(error("/embed", R"({"inputs": ["a", null]})"), HasSubstr("inputs[1]"));
  EXPECT_THAT(error("/embed", "{\"inputs\": \"\xff\"}"), HasSubstr("422"));
  EXPECT_THAT(error("/embed", R"({"inputs": []})"), HasSubstr(R"("error_type":"Empty")"));
  EXPECT_THAT(error("/embed", R"({"inputs": [[]]})"), HasSubstr(R"("error_type":"Empty")"));
  for (const char* id : {"99999", "4294967397"})  // the second is 101 in 32 bits
    EXPECT_THAT(error("/embed", fmt::format(R"({{"inputs": [101, {}]}})", id)),
                HasSubstr("outside the vocabulary"));
  EXPECT_THAT(error("/embed", R"({"inputs": "a", "prompt_name": "query"})"),
              HasSubstr("no prompts"));
  EXPECT_THAT(error("/v1/embeddings", R"({"input": "a", "model": "gpt"})"),
              AllOf(HasSubstr("404"), HasSubstr("unknown model 'gpt'"),
                    HasSubstr(R"("type":"invalid_request_error","param":null,"code":null)")));
  EXPECT_THAT(error("/v1/embeddings", R"({"input": "a", "model": "qa"})"),
              AllOf(HasSubstr("400"), HasSubstr("has kind question-answering")));
  EXPECT_THAT(error("/v1/embeddings", R"({"input": "a", "encoding_format": "hex"})"),
              HasSubstr("422"));
  EXPECT_THAT(error("/nothing", "{}"), HasSubstr("404"));
  const HttpResponse get = shared().call("GET", "/embed");
  EXPECT_EQ(get.status, 405);
  EXPECT_THAT(get.body, HasSubstr("GET is not allowed for /embed (allowed: POST)"));
  EXPECT_THAT(get.headers, Contains(Pair("Allow", "POST")));
  const json many = {{"inputs", std::vector<std::string>(33, "a")}};
  EXPECT_EQ(shared().status("/embed", many), 413);
  TestService qa_first({.models = {"qa", "vectors"}});
  EXPECT_EQ(qa_first.status("/", {{"inputs", "a"}}), 200);
  TestService vectors_only;
  EXPECT_EQ(vectors_only.status("/predict", {{"inputs", "a"}}), 424);
  EXPECT_EQ(vectors_only.status("/rerank", {{"query", "a"}, {"texts", {"b"}}}), 424);
  EXPECT_EQ(vectors_only.status("/answer", {{"question", "a"}, {"context", "b"}}), 424);
}

TEST(Routes, ErrorsOfAnswersNameTheOptionsOfTheRequest) {
  const HttpResponse reply = shared().call(
      "POST", "/answer", R"({"question": "a b c d e", "context": "f", "max_seq_len": 6})");
  EXPECT_EQ(reply.status, 422);
  EXPECT_THAT(reply.body, AllOf(HasSubstr("max_seq_len 6 leaves no room"),
                                HasSubstr("max_question_len"), Not(HasSubstr("length"))));
}

TEST(Routes, WhatIsServedIsTold) {
  const json info = json::parse(shared().call("GET", "/info").body);
  EXPECT_EQ(info["served_model_name"], "vectors");
  EXPECT_EQ(info["model_dtype"], "float32");
  EXPECT_EQ(info["model_type"], (json{{"embedding", {{"pooling", "mean"}}}}));
  EXPECT_EQ(info["max_client_batch_size"], 32);
  EXPECT_EQ(info["models"][1]["model_type"]["classifier"]["id2label"]["1"], "good");
  EXPECT_EQ(info["models"][2]["model_type"]["reranker"]["label2id"], (json{{"LABEL_0", 0}}));
  const json models = json::parse(shared().call("GET", "/v1/models").body);
  EXPECT_EQ(models["data"].size(), 4u);
  EXPECT_EQ(models["data"][3]["id"], "qa");
  EXPECT_EQ(shared().call("GET", "/v1/models/qa").status, 200);
  EXPECT_EQ(shared().call("GET", "/v1/models/other").status, 404);
  EXPECT_EQ(shared().call("GET", "/health").status, 200);
  EXPECT_EQ(shared().record.route, "/health");
}

TEST(Routes, EmptyTextsAreRefused) {
  const auto pairs = [](const json& pair) { return json{{"inputs", json::array({pair})}}; };
  for (const auto& [path, body] :
       {std::pair{"/embed", json{{"inputs", ""}}}, std::pair{"/embed", json{{"inputs", {"a", ""}}}},
        std::pair{"/embed_all", json{{"inputs", ""}}}, std::pair{"/predict", json{{"inputs", ""}}},
        std::pair{"/predict", pairs({"", ""})},
        std::pair{"/rerank", json{{"query", ""}, {"texts", {"a", ""}}}},
        std::pair{"/v1/embeddings", json{{"input", ""}}}}) {
    const HttpResponse reply = shared().call("POST", path, body.dump());
    EXPECT_EQ(reply.status, 400) << path << body;
    EXPECT_THAT(reply.body, HasSubstr("a text is empty"));
  }
  EXPECT_EQ(shared().status("/predict", pairs({"a", ""})), 200) << "one text of a pair may be";
  EXPECT_EQ(shared().status("/rerank", {{"query", "a"}, {"texts", {"b", ""}}}), 200);
  EXPECT_EQ(shared().status("/rerank", {{"query", ""}, {"texts", {"b"}}}), 200);
  EXPECT_EQ(shared().status("/tokenize", {{"inputs", ""}}), 200);
}

TEST(Routes, AKeyIsAskedFor) {
  TestService locked({.models = {"vectors"}, .service = {.api_key = "secret"}});
  const std::string body = R"({"inputs": "a"})";
  const HttpResponse refused = locked.call("POST", "/embed", body);
  EXPECT_EQ(refused.status, 401);
  EXPECT_THAT(refused.headers, Contains(Pair("WWW-Authenticate", "Bearer")));
  EXPECT_EQ(locked.call("POST", "/embed", body, {{"Authorization", "Bearer secre"}}).status, 401);
  EXPECT_EQ(locked.call("POST", "/embed", body, {{"Authorization", "secret"}}).status, 401);
  EXPECT_EQ(locked.call("GET", "/nothing").status, 401) << "no word of what is there";
  EXPECT_THAT(locked.call("GET", "/v1/models").body, HasSubstr(R"("code":"invalid_api_key")"));
  EXPECT_EQ(locked.call("POST", "/embed", body, {{"Authorization", "bearer Secret"}}).status, 401);
  for (const char* scheme : {"Bearer", "bearer", "BEARER"})
    EXPECT_EQ(
        locked.call("POST", "/embed", body, {{"Authorization", scheme + std::string(" secret")}})
            .status,
        200)
        << scheme;
  EXPECT_EQ(locked.call("GET", "/health").status, 200);
}

}  // namespace
}  // namespace bertcl::serve::tests
