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

TEST(RerankRoutes, WhatCannotBeRankedIsRefused) {
  const auto refusal = [](const json& more) {
    json body = kRerankBody;
    body.update(more);
    const Reply reply = reranker().call("POST", "/v1/rerank", body.dump());
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
