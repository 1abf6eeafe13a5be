// SPDX-License-Identifier: Apache-2.0
// The Open Inference Protocol: the outputs are those of the session, as JSON and as bytes.
#include <cstring>
#include <vector>

#include "serve/routes/tensors.hpp"
#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;

constexpr const char* kInfer = "/v2/models/qa/infer";
constexpr const char* kLength = "Inference-Header-Content-Length";
const std::vector<std::int64_t> kIds = {101, 2040, 9711, 102, 101, 2460, 102, 0};
const std::vector<std::int64_t> kMask = {1, 1, 1, 1, 1, 1, 1, 0};

TestService& qa() {
  static TestService service({.models = {"qa"}});
  return service;
}

runtime::Tensors expected() {
  runtime::Tensors inputs;
  inputs["input_ids"] = ir::Tensor::of<std::int64_t>({2, 4}, kIds);
  inputs["attention_mask"] = ir::Tensor::of<std::int64_t>({2, 4}, kMask);
  return qa().service().models().front()->setup().session->run(inputs);
}

json tensor(const std::string& name, const json& data) {
  return {{"name", name}, {"datatype", "INT64"}, {"shape", {2, 4}}, {"data", data}};
}

json request() {
  return {{"id", "7"}, {"inputs", {tensor("input_ids", kIds), tensor("attention_mask", kMask)}}};
}

std::string refusal(const json& body) {
  const HttpResponse reply = qa().call("POST", kInfer, body.dump());
  return std::to_string(reply.status) + ' ' + reply.body;
}

TEST(InferenceProtocol, JsonGivesTheBitsOfTheSession) {
  const json reply = qa().post(kInfer, request());
  EXPECT_EQ(reply["model_name"], "qa");
  EXPECT_EQ(reply["model_version"], "1");
  EXPECT_EQ(reply["id"], "7");
  const runtime::Tensors outputs = expected();
  ASSERT_EQ(reply["outputs"].size(), outputs.size());
  for (const json& output : reply["outputs"]) {
    const ir::Tensor& own = outputs.at(output["name"].get<std::string>());
    EXPECT_EQ(output["datatype"], "FP32");
    EXPECT_EQ(output["shape"], (json{2, 4}));
    const auto values = own.as<float>();
    EXPECT_EQ(output["data"].get<std::vector<float>>(),
              (std::vector<float>(values.begin(), values.end())));
  }
  json nested = request();
  nested["inputs"][0]["data"] = {{101, 2040, 9711, 102}, {101, 2460, 102, 0}};
  EXPECT_EQ(qa().post(kInfer, nested), reply) << "nested lists";
  nested["inputs"][1]["datatype"] = "INT32";
  EXPECT_EQ(qa().post("/v2/models/qa/versions/1/infer", nested), reply);
}

TEST(InferenceProtocol, TokensAreCountedWithoutPadding) {
  TestService service({.models = {"qa"}});
  EXPECT_EQ(service.status(kInfer, request()), 200);
  EXPECT_EQ(service.record.texts, 2u);
  EXPECT_EQ(service.record.tokens, 7u) << "of a tensor of 8";
}

TEST(InferenceProtocol, BytesInAndOut) {
  json head = request();
  for (json& input : head["inputs"]) {
    input.erase("data");
    input["parameters"]["binary_data_size"] = 64;
  }
  head["outputs"] = {{{"name", "end_logits"}, {"parameters", {{"binary_data", true}}}},
                     {{"name", "start_logits"}}};
  const std::string text = head.dump();
  std::string body = text;
  for (const auto* values : {&kIds, &kMask})
    body.append(reinterpret_cast<const char*>(values->data()), 64);
  const auto length = std::to_string(text.size());
  const HttpResponse reply = qa().call("POST", kInfer, body, {{kLength, length}});
  ASSERT_EQ(reply.status, 200) << reply.body;
  EXPECT_EQ(reply.type, "application/octet-stream");
  ASSERT_EQ(reply.headers.size(), 1u);
  const auto at = static_cast<std::size_t>(std::stoi(reply.headers[0].second));
  const json outputs = json::parse(reply.body.substr(0, at))["outputs"];
  EXPECT_EQ(outputs[0]["parameters"]["binary_data_size"], 32);
  EXPECT_EQ(outputs[1]["data"].size(), 8u);
  const ir::Tensor logits = expected().at("end_logits");
  const auto own = logits.bytes();
  ASSERT_EQ(reply.body.size(), at + 32);
  EXPECT_EQ(std::memcmp(reply.body.data() + at, own.data(), 32), 0);

  EXPECT_EQ(qa().call("POST", kInfer, body + "x", {{kLength, length}}).status, 400);
  EXPECT_EQ(qa().call("POST", kInfer, body, {{kLength, "99999"}}).status, 400);
  EXPECT_EQ(qa().call("POST", kInfer, body, {{kLength, "x"}}).status, 400);
  body.resize(body.size() - 1);
  EXPECT_EQ(qa().call("POST", kInfer, body, {{kLength, length}}).status, 400);
}

TEST(InferenceProtocol, WhatDoesNotFitIsRefused) {
  json body = request();
  body["inputs"][0]["shape"] = {2, 5};
  EXPECT_THAT(refusal(body),
              HasSubstr("400 {\"error\":\"inputs[0].data has 8 elements, expected "));
  body["inputs"][0]["shape"] = {-1, 4};
  EXPECT_THAT(refusal(body), HasSubstr("400"));
  body["inputs"][0]["shape"] = {2147483647, 2147483647};
  EXPECT_THAT(refusal(body), HasSubstr("too many elements"));
  body["inputs"][0]["shape"] = {0, 2147483647, 2147483647};
  EXPECT_THAT(refusal(body), HasSubstr("too many elements"));
  body = request();
  body["inputs"][0]["datatype"] = "BYTES";
  EXPECT_THAT(refusal(body), HasSubstr("'BYTES', which is not supported"));
  body = request();
  body["inputs"][0]["name"] = "ids";
  EXPECT_THAT(refusal(body), HasSubstr("unknown input 'ids' (choose from input_ids, "));
  body["inputs"][0]["name"] = "attention_mask";
  EXPECT_THAT(refusal(body), HasSubstr("duplicate input 'attention_mask'"));
  body = request();
  body["outputs"] = {{{"name", "logits"}}};
  EXPECT_THAT(refusal(body), HasSubstr("unknown output 'logits' (choose from start_logits, "));
  body = request();
  body["inputs"].erase(0);
  EXPECT_THAT(refusal(body), HasSubstr("400")) << "no ids";
  body = request();
  body["inputs"][0]["data"][1] = 999999;
  EXPECT_THAT(refusal(body), HasSubstr("400")) << "an id outside the table";
  EXPECT_EQ(qa().status(kInfer, request()), 200) << "and it goes on";
  EXPECT_EQ(qa().status("/v2/models/other/infer", request()), 404);
  EXPECT_EQ(qa().status("/v2/models/qa/versions/2/infer", request()), 404);
}

TEST(InferenceProtocol, NestedListsHaveTheShape) {
  json body = request();
  body["inputs"][0]["data"] = {{101, 102}, {101, 2040, 2460, 102, 102, 0}};
  EXPECT_THAT(refusal(body), HasSubstr("400 {\"error\":\"inputs[0].data[0] has 2 elements, "
                                       "expected 4 from the shape"));
  body["inputs"][0]["data"] = {{101, 2040}, {9711, 102}, {101, 2460}, {102, 0}};
  EXPECT_THAT(refusal(body), HasSubstr("400 {\"error\":\"inputs[0].data[0] has 2 elements"));
}

TEST(InferenceProtocol, ParametersThatCannotBeHonouredAreRefused) {
  json body = request();
  body["inputs"][0]["parameters"]["binary_data_size"] = 64;
  EXPECT_THAT(refusal(body), HasSubstr("400 {\"error\":\"inputs[0] has both data and "
                                       "parameters.binary_data_size"));
  for (const char* name : {"shared_memory_region", "classification"}) {
    body = request();
    body["outputs"] = {{{"name", "start_logits"}, {"parameters", {{name, 2}}}}};
    EXPECT_THAT(refusal(body), HasSubstr(std::string("400 {\"error\":\"outputs[0].parameters.") +
                                         name + " is not supported"));
  }
  body = request();
  body["inputs"][1]["parameters"] = {{"shared_memory_region", "a"}};
  EXPECT_THAT(refusal(body),
              HasSubstr("inputs[1].parameters.shared_memory_region is not supported"));
}

TEST(InferenceProtocol, TruthValuesAreThoseOfJson) {
  const ir::Tensor some = ir::Tensor::of<std::int64_t>({1, 3}, {0, 1, 1});
  EXPECT_EQ(data_json(some.converted(ir::DType::boolean)), "[false,true,true]");
  EXPECT_EQ(data_json(some.converted(ir::DType::u8)), "[0,1,1]");
}

TEST(InferenceProtocol, ModelsAreDescribed) {
  const json model = json::parse(qa().call("GET", "/v2/models/qa").body);
  EXPECT_EQ(model["name"], "qa");
  EXPECT_EQ(model["inputs"][0],
            (json{{"name", "input_ids"}, {"datatype", "INT64"}, {"shape", {-1, -1}}}));
  EXPECT_EQ(qa().call("GET", "/v2").status, 200);
  EXPECT_EQ(qa().call("GET", "/v2/health/live").status, 200);
  EXPECT_EQ(qa().call("GET", "/v2/health/ready").status, 200);
  EXPECT_EQ(qa().call("GET", "/v2/models/qa/ready").status, 200);
  EXPECT_EQ(qa().call("GET", "/v2/models/other/ready").status, 404);
}

TEST(InferenceProtocol, NamesOfModelsMayHaveSlashes) {
  TestService service({.models = {"org/team/vectors", "qa"}});
  const auto status = [&](const std::string& method, const std::string& path) {
    return service.call(method, path, "{}").status;
  };
  EXPECT_EQ(
      service.post("/v1/embeddings", {{"input", "a"}, {"model", "org/team/vectors"}})["model"],
      "org/team/vectors");
  EXPECT_EQ(json::parse(service.call("GET", "/v1/models/org/team/vectors").body)["id"],
            "org/team/vectors");
  for (const std::string name : {"/v2/models/org/team/vectors", "/v2/models/qa"}) {
    for (const char* version : {"", "/versions/1"}) {
      EXPECT_EQ(status("GET", name + version), 200);
      EXPECT_EQ(status("GET", name + version + "/ready"), 200);
      EXPECT_EQ(status("POST", name + version + "/infer"), 400);
      EXPECT_EQ(status("GET", name + version + "/infer"), 405);
      EXPECT_EQ(status("POST", name + version), 405);
    }
    EXPECT_EQ(status("GET", name + "/versions/2"), 404);
    EXPECT_EQ(status("GET", name + "/nothing"), 404);
  }
  EXPECT_EQ(status("GET", "/v1/models/"), 404);
}

}  // namespace
}  // namespace bertcl::serve::tests
