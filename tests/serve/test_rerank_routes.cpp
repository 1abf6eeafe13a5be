// SPDX-License-Identifier: Apache-2.0
// Ranks in the form that clients of Cohere, Jina and vLLM ask for.
#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;

TestService& reranker() {
  static TestService made({.models = {"score"}});
  return made;
}

const json kDocuments = {"me", "the Khronos Group", "you and me"};
const json kRerankBody = {{"model", "score"}, {"query", "Who?"}, {"documents", kDocuments}};

TEST(RerankRoutes, DocumentsAreRankedAsTexts) {
  const json expected = reranker().post("/rerank", {{"query", "Who?"}, {"texts", kDocuments}});
  for (const char* path : {"/v1/rerank", "/v2/rerank", "/rerank"}) {
    const json found = reranker().post(path, kRerankBody);
    EXPECT_EQ(found["model"], "score");
    EXPECT_THAT(found["id"].get<std::string>(), HasSubstr("rerank-"));
    EXPECT_GT(found["usage"]["total_tokens"], 9);
    ASSERT_EQ(found["results"].size(), 3u);
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_EQ(found["results"][i],
                (json{{"index", expected[i]["index"]}, {"relevance_score", expected[i]["score"]}}));
  }
}

TEST(RerankRoutes, TheBestComeWithTheirTexts) {
  json body = kRerankBody;
  body.update({{"top_n", 2}, {"return_documents", true}});
  body["documents"][1] = {{"text", kDocuments[1]}};
  const json found = reranker().post("/v2/rerank", body);
  ASSERT_EQ(found["results"].size(), 2u);
  for (const json& result : found["results"])
    EXPECT_EQ(result["document"]["text"], kDocuments[result["index"].get<std::size_t>()]);
  body["top_n"] = 0;  // vLLM's default: all
  EXPECT_EQ(reranker().post("/v2/rerank", body)["results"].size(), 3u);
  body["top_n"] = 100;
  EXPECT_EQ(reranker().post("/v2/rerank", body)["results"].size(), 3u);
}

TEST(RerankRoutes, LongDocumentsAreCut) {
  std::string text;
  for (int i = 0; i < 700; ++i) text += "word ";
  json body = kRerankBody;
  body["documents"] = {text};
  const auto tokens = [&] {
    return reranker().post("/v2/rerank", body)["usage"]["total_tokens"].get<int>();
  };
  const int whole = tokens();
  body["max_tokens_per_doc"] = 10;
  EXPECT_EQ(tokens(), 2 + 10 + 3) << "those of the query, of the document, and special ones";
  EXPECT_GT(whole, 100);
  EXPECT_EQ(reranker().status("/rerank", {{"query", "Who?"}, {"texts", {text}}}), 413);
  body.erase("max_tokens_per_doc");
  body["truncate"] = false;
  EXPECT_EQ(reranker().status("/v2/rerank", body), 413);
  body["max_tokens_per_doc"] = 0;
  EXPECT_EQ(reranker().status("/v2/rerank", body), 422);
}

TEST(RerankRoutes, ErrorsHaveTheMessageOfCohere) {
  const json error = json::parse(reranker().call("POST", "/v2/rerank", "{").body);
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("not valid JSON"));
  EXPECT_EQ(error["error"], error["message"]);
}

TEST(RerankRoutes, SageMakerAsksAtItsOwnRoute) {
  const json body = {{"query", "Who?"}, {"texts", kDocuments}};
  EXPECT_EQ(reranker().post("/invocations", body), reranker().post("/rerank", body));
  for (const char* path : {"/", "/invocations"})
    EXPECT_EQ(reranker().post(path, kRerankBody)["results"],
              reranker().post("/rerank", kRerankBody)["results"]);
}

TEST(RerankRoutes, WhatCannotBeRankedIsRefused) {
  const auto refusal = [](const json& more) {
    json body = kRerankBody;
    body.update(more);
    const HttpResponse reply = reranker().call("POST", "/v1/rerank", body.dump());
    return std::to_string(reply.status) + ' ' + reply.body;
  };
  EXPECT_THAT(refusal({{"documents", json::array()}}), HasSubstr("400 "));
  EXPECT_THAT(refusal({{"documents", {{{"title", "a"}}}}}), HasSubstr("documents[0].text"));
  EXPECT_THAT(refusal({{"top_n", -1}}), HasSubstr("top_n is -1, expected 0 or more"));
  EXPECT_THAT(refusal({{"model", "other"}}), HasSubstr("404 "));
  EXPECT_EQ(reranker().status("/rerank", {{"query", "Who?"}}), 422);
}

}  // namespace
}  // namespace bertcl::serve::tests
