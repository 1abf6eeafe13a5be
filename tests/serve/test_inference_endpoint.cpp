// SPDX-License-Identifier: Apache-2.0
// POST / as Hugging Face's inference endpoints: options in `parameters`, and the form of classes.
#include <cmath>

#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;

TestService& classes() {
  static TestService service({.models = {"classes", "vectors"}, .normalize = false});
  return service;
}

json predicted(const json& parameters, const json& beside = json::object()) {
  json body = {{"inputs", "short"}, {"parameters", parameters}};
  body.update(beside);
  return classes().post("/", body);
}

TEST(InferenceEndpoint, ClassesOfATextAreAListInAList) {
  const json expected = classes().post("/predict", {{"inputs", "short"}});
  EXPECT_EQ(classes().post("/", {{"inputs", "short"}}), json::array({expected}));
  EXPECT_EQ(classes().post("/invocations", {{"inputs", "short"}}), json::array({expected}));
  const json batch = {{"inputs", json::array({json{"short"}, json{"a text", "another"}})}};
  EXPECT_EQ(classes().post("/", batch), classes().post("/predict", batch));
}

TEST(InferenceEndpoint, ClassesFollowTheParameters) {
  const json softmax = classes().post("/predict", {{"inputs", "short"}});
  const json logits = classes().post("/predict", {{"inputs", "short"}, {"raw_scores", true}});
  for (const char* name : {"softmax", "default"})
    EXPECT_EQ(predicted({{"function_to_apply", name}})[0], softmax);
  EXPECT_EQ(predicted({{"function_to_apply", "none"}})[0], logits);
  EXPECT_EQ(predicted({{"raw_scores", true}})[0], logits);
  EXPECT_EQ(predicted({{"top_k", nullptr}}, {{"raw_scores", true}})[0], logits);
  const json sigmoids = predicted({{"function_to_apply", "sigmoid"}})[0];
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_NEAR(sigmoids[i]["score"].get<double>(),
                1 / (1 + std::exp(-logits[i]["score"].get<double>())), 1e-6);
  EXPECT_EQ(predicted({{"top_k", 1}}), json::array({json::array({softmax[0]})}));
  EXPECT_EQ(predicted({{"top_k", 9}})[0], softmax);
  EXPECT_EQ(classes().post("/predict", {{"inputs", "short"}, {"top_k", 1}}),
            json::array({softmax[0]}));
}

TEST(InferenceEndpoint, VectorsFollowTheParameters) {
  const auto same = [](const json& options) {
    json flat = {{"inputs", "short"}, {"model", "vectors"}}, nested = flat;
    flat.update(options);
    nested["parameters"] = options;
    const json expected = classes().post("/embed", flat);
    EXPECT_EQ(classes().post("/", nested), expected) << options;
    return expected;
  };
  const json unit = same({{"normalize", true}});
  EXPECT_NE(same({{"normalize", false}}), unit);
  EXPECT_EQ(same({{"dimensions", 3}})[0].size(), 3u);
  std::string text;
  for (int i = 0; i < 600; ++i) text += "one ";
  const json long_text = {{"inputs", text}, {"model", "vectors"}};
  EXPECT_EQ(classes().status("/", long_text), 413);
  json cut = long_text;
  cut["parameters"] = {{"truncate", true}};
  EXPECT_EQ(classes().status("/", cut), 200);
}

TEST(InferenceEndpoint, ParametersAreOptionsAlone) {
  const json options = {{"inputs", "another text"}, {"model", "vectors"}, {"top_k", 1}};
  EXPECT_EQ(predicted(options), predicted({{"top_k", 1}}));
}

TEST(InferenceEndpoint, WrongParametersAreRefused) {
  const auto refusal = [](const json& parameters) {
    const json body = {{"inputs", "short"}, {"parameters", parameters}};
    const HttpResponse reply = classes().call("POST", "/", body.dump());
    return std::to_string(reply.status) + ' ' + reply.body;
  };
  EXPECT_THAT(refusal({{"function_to_apply", "max"}}),
              HasSubstr("422 {\"error\":\"function_to_apply is \\\"max\\\" (choose from none, "));
  EXPECT_THAT(refusal({{"top_k", 0}}),
              HasSubstr("422 {\"error\":\"top_k is 0, expected 1 or more"));
  EXPECT_THAT(refusal({{"prompt_name", "query"}}), HasSubstr("422 "));
  EXPECT_THAT(refusal("all"), HasSubstr("422 {\"error\":\"parameters is not an object"));
}

}  // namespace
}  // namespace bertcl::serve::tests
