// SPDX-License-Identifier: Apache-2.0
// Requests that would cost memory or time without bound, and errors that are not the client's.
#include <chrono>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "serve/routes/tensors.hpp"
#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;

constexpr const char* kInferQa = "/v2/models/qa/infer";

TestService& three_models() {
  static TestService service({.models = {"vectors", "score", "qa"}});
  return service;
}

std::string answer_to(TestService& service, const std::string& path, const std::string& body) {
  const HttpResponse reply = service.call("POST", path, body);
  return std::to_string(reply.status) + ' ' + reply.body;
}

std::string answer_to(const std::string& path, const std::string& body) {
  return answer_to(three_models(), path, body);
}

std::string nested(int depth, const std::string& inside = "") {
  return std::string(static_cast<std::size_t>(depth), '[') + inside +
         std::string(static_cast<std::size_t>(depth), ']');
}

std::string infer_of(const std::string& data, const std::string& datatype = "INT64",
                     const std::string& shape = "[1,1]") {
  return R"({"inputs":[{"name":"input_ids","datatype":")" + datatype + R"(","shape":)" + shape +
         R"(,"data":)" + data + "}]}";
}

TEST(HostileRequests, ListsInListsAreBounded) {
  EXPECT_THAT(answer_to(kInferQa, infer_of(nested(17, "7"))),
              AllOf(HasSubstr("400 "), HasSubstr("is nested too deeply")));
  EXPECT_THAT(answer_to(kInferQa, infer_of(nested(16, "7"))), Not(HasSubstr("nested")));
  EXPECT_THAT(answer_to(kInferQa, infer_of(nested(500'000))),
              HasSubstr("400 {\"error\":\"the body is nested too deeply"));
  EXPECT_THAT(answer_to("/embed", R"({"inputs":)" + nested(500'000) + "}"),
              HasSubstr("422 {\"error\":\"the body is nested too deeply"));
  EXPECT_THAT(answer_to("/embed", nested(500'000)), HasSubstr("nested too deeply"));
  EXPECT_THAT(answer_to("/embed", R"({"inputs":")" + std::string(100, '[') + R"(\"[[[[\\"})"),
              HasSubstr("200 "))
      << "brackets of a text are not lists";
}

TEST(HostileRequests, BodiesThatAreNoJsonAreNotQuoted) {
  const std::string damaged = R"({"inputs": "secret words" oops})";
  EXPECT_THAT(answer_to("/embed", damaged),
              AllOf(HasSubstr("422 "), HasSubstr("the body is not valid JSON (byte 27 of 31)"),
                    Not(HasSubstr("secret"))));
  EXPECT_THAT(answer_to(kInferQa, damaged),
              AllOf(HasSubstr("400 "), HasSubstr("the body is not valid JSON (byte 27 of 31)"),
                    Not(HasSubstr("secret"))));
  EXPECT_THAT(answer_to("/embed", R"({"inputs": ")"),
              HasSubstr("422 {\"error\":\"the body is not valid JSON (byte 12 of 12)"));
  EXPECT_THAT(answer_to("/embed", ""), HasSubstr("the body is not valid JSON (byte 0 of 0)"));
  for (const char* path : {"/embed", kInferQa}) {
    EXPECT_THAT(answer_to(path, R"({"inputs": 1e999})"),
                AllOf(HasSubstr("a number is out of range"), Not(HasSubstr("999"))));
    for (const char* body : {"[1]", "\"text\"", "null", "3"})
      EXPECT_THAT(answer_to(path, body), HasSubstr("the body must be a JSON object"));
  }
}

TEST(HostileRequests, ValuesThatATypeDoesNotHoldAreRefused) {
  EXPECT_THAT(answer_to(kInferQa, infer_of("[300]", "UINT8")), HasSubstr("is 300, outside UINT8"));
  EXPECT_THAT(answer_to(kInferQa, infer_of("[-1]", "UINT64")), HasSubstr("is -1, outside UINT64"));
  EXPECT_THAT(answer_to(kInferQa, infer_of("[2147483648]", "INT32")), HasSubstr("outside INT32"));
  EXPECT_THAT(answer_to(kInferQa, infer_of("[2]", "BOOL")), HasSubstr("outside BOOL"));
  EXPECT_THAT(answer_to(kInferQa, infer_of("[1e300]", "FP32")), HasSubstr("outside FP32"));
  EXPECT_THAT(answer_to(kInferQa, infer_of("[70000]", "FP16")), HasSubstr("outside FP16"));
  EXPECT_THAT(answer_to(kInferQa, infer_of("[true]", "FP32")), HasSubstr("expected number"));
  EXPECT_THAT(answer_to(kInferQa, infer_of("[1]", "INT64", "[4294967296]")),
              HasSubstr("is not a valid extent"));
  EXPECT_THAT(answer_to(kInferQa, infer_of("[]", "INT64", "[0,4]")), HasSubstr("200 "))
      << "a batch of none";
}

TEST(HostileRequests, DoublesKeepTheirBits) {
  const json input = {{"datatype", "FP64"}, {"shape", {2}}, {"data", {0.1, 1e300}}};
  std::string_view binary;
  const ir::Tensor tensor = read_tensor(text::JsonNode(input), binary);
  EXPECT_EQ(tensor.to_doubles(), (std::vector<double>{0.1, 1e300}));
  EXPECT_EQ(json::parse(data_json(tensor)), input["data"]);
}

TEST(HostileRequests, OutputsThatJsonDoesNotHaveAreErrorsOfTheModel) {
  const auto status_of = [](const ir::Tensor& tensor) {
    try {
      data_json(tensor);
    } catch (const HttpError& error) {
      return error.status;
    }
    return 200;
  };
  for (const double value :
       {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const ir::Tensor doubles = ir::Tensor::of<double>({2}, {1.0, value});
    for (const ir::DType type : {ir::DType::f64, ir::DType::f32, ir::DType::f16})
      EXPECT_EQ(status_of(doubles.converted(type)), 424);
  }
  EXPECT_EQ(status_of(ir::Tensor::of<double>({1}, {1.0})), 200);
  EXPECT_EQ(status_of(ir::Tensor::of<float>({0}, {})), 200);
}

TEST(HostileRequests, AnOutputIsGivenOnce) {
  json body = json::parse(infer_of("[101]"));
  body["inputs"].push_back(body["inputs"][0]);
  body["inputs"][1]["name"] = "attention_mask";
  body["inputs"][1]["data"] = json::array({1});
  body["outputs"] = {{{"name", "start_logits"}}, {{"name", "start_logits"}}};
  EXPECT_THAT(answer_to(kInferQa, body.dump()),
              AllOf(HasSubstr("400 "), HasSubstr("duplicate output 'start_logits'")));
  body["outputs"].erase(1);
  EXPECT_THAT(answer_to(kInferQa, body.dump()), HasSubstr("200 "));
}

TEST(HostileRequests, TensorsHaveNoMoreElementsThanTheQueueTakes) {
  TestService small({.models = {"qa"}, .batcher = {.max_queue_tokens = 8}});
  EXPECT_THAT(
      answer_to(small, kInferQa, infer_of("[1,2,3,4,5,6,7,8,9]", "INT64", "[1,9]")),
      AllOf(
          HasSubstr("413 "),
          HasSubstr("a tensor has 9 elements or empty rows, the limit is 8 (--max-queue-tokens)")));
  EXPECT_THAT(answer_to(small, kInferQa, infer_of("[]", "INT64", "[8,0]")), HasSubstr("200 "));
  EXPECT_THAT(answer_to(small, kInferQa, infer_of("[]", "INT64", "[9,0]")),
              AllOf(HasSubstr("413 "), HasSubstr("9 elements or empty rows, the limit is 8 ")));
}

TEST(HostileRequests, WindowsOfAContextAreBounded) {
  TestService small({.models = {"qa"}, .batcher = {.max_queue_tokens = 200}});
  std::string context;
  for (int i = 0; i < 400; ++i) context += "word ";
  json body = {{"question", "Who?"}, {"context", context}, {"max_seq_len", 50}, {"doc_stride", 1}};
  EXPECT_THAT(answer_to(small, "/answer", body.dump()),
              AllOf(HasSubstr("413 "), HasSubstr(" windows, the limit is 4; shorten it or let "
                                                 "windows overlap less (doc_stride)")));
  body["context"] = context.substr(0, 100);
  EXPECT_EQ(small.status("/answer", body), 200);
  body["top_k"] = 100;
  EXPECT_EQ(small.status("/answer", body), 200);
  body["top_k"] = 101;
  EXPECT_THAT(answer_to(small, "/answer", body.dump()),
              HasSubstr("top_k is 101, expected 1 to 100"));
}

TEST(HostileRequests, AnswersOfNanAreErrorsOfTheModel) {
  TestService broken({.models = {"nan"}});
  EXPECT_THAT(answer_to(broken, "/answer", R"({"question": "Who?", "context": "The cat."})"),
              AllOf(HasSubstr("424 "), HasSubstr("NaN or infinity"),
                    HasSubstr(R"("error_type":"Backend")")));
  const std::string body =
      R"({"inputs":[{"name":"input_ids","datatype":"INT64","shape":[1,1],"data":[101]},)"
      R"({"name":"attention_mask","datatype":"INT64","shape":[1,1],"data":[1]}]})";
  EXPECT_THAT(answer_to(broken, "/v2/models/nan/infer", body),
              AllOf(HasSubstr("500 "), HasSubstr("NaN or infinity")));
}

TEST(HostileRequests, TextsAreCountedBeforeTheyAreRead) {
  std::vector<std::string> texts(33, "a");
  for (int i = 0; i < 700; ++i) texts[0] += " a";
  EXPECT_THAT(answer_to("/embed_all", json{{"inputs", texts}}.dump()),
              HasSubstr("413 {\"error\":\"the request has 33 texts"));
  EXPECT_THAT(answer_to("/embed_all", R"({"inputs": []})"), HasSubstr("400 "));
  // Were they read first, null would be refused.
  const json nulls = std::vector<json>(33);
  for (const auto& [path, body] :
       {std::pair{"/embed", json{{"inputs", nulls}}},
        std::pair{"/tokenize", json{{"inputs", nulls}}}, std::pair{"/decode", json{{"ids", nulls}}},
        std::pair{"/rerank", json{{"query", "a"}, {"texts", nulls}}},
        std::pair{"/predict", json{{"inputs", nulls}}},
        std::pair{"/v1/embeddings", json{{"input", nulls}}}})
    EXPECT_THAT(answer_to(path, body.dump()),
                AllOf(HasSubstr("413 "), HasSubstr("the request has 33 texts")))
        << path;
}

TEST(HostileRequests, TokenizeGivesNoMoreTokensThanTheQueueTakes) {
  TestService small({.models = {"vectors"}, .batcher = {.max_queue_tokens = 8}});
  EXPECT_EQ(small.status("/tokenize", {{"inputs", {"a a", "a a"}}}), 200);
  EXPECT_EQ(small.status("/tokenize", {{"inputs", {"a a a", "a a a a"}}}), 413);
  EXPECT_THAT(answer_to(small, "/tokenize", R"({"inputs": "a a a a a a a a a"})"),
              AllOf(HasSubstr("413 "), HasSubstr("more tokens than the queue can ever hold")));
}

TEST(HostileRequests, BodiesShareABudget) {
  using std::chrono::milliseconds;
  BodyBudget budget(10);
  auto first = budget.take(6, milliseconds(0));
  EXPECT_TRUE(first);
  EXPECT_FALSE(budget.take(5, milliseconds(0)));
  EXPECT_FALSE(budget.take(11, milliseconds(1)));
  EXPECT_TRUE(budget.take(4, milliseconds(0)));
  EXPECT_TRUE(budget.take(0, milliseconds(0))) << "requests without a body do not wait";
  first.reset();
  EXPECT_TRUE(budget.take(11, milliseconds(0))) << "a larger one goes alone";
}

TEST(HostileRequests, LongTextsAreTokenizedAndDecoded) {
  const int words = 20'000;
  std::string text;
  for (int i = 0; i < words; ++i) text += "a!";
  const json tokens =
      three_models().post("/tokenize", {{"inputs", text}, {"add_special_tokens", false}});
  ASSERT_EQ(tokens[0].size(), 2u * words);
  json ids = json::array();
  for (const json& token : tokens[0]) ids.push_back(token["id"]);
  EXPECT_EQ(
      three_models().post("/decode", {{"ids", json::array({ids})}})[0].get<std::string>().size(),
      3u * words - 1);
}

TEST(HostileRequests, TokensOfLongTextsKnowTheirPlaces) {
  TestService service({.models = {"spans"}});
  const std::size_t count = 3 * 5000;
  std::string text;
  for (std::size_t i = 0; i < count; i += 3) text += "東a!";
  const json tokens = service.post("/tokenize", {{"inputs", text}})[0];
  ASSERT_EQ(tokens.size(), count + 2);
  EXPECT_EQ(
      tokens[0],
      (json{
          {"id", 2}, {"text", "[CLS]"}, {"special", true}, {"start", nullptr}, {"stop", nullptr}}));
  for (std::size_t i = 0, byte = 0; i < count; ++i) {
    EXPECT_EQ(tokens[i + 1]["start"], byte);
    byte += i % 3 == 0 ? 3 : 1;
    EXPECT_EQ(tokens[i + 1]["stop"], byte);
  }
  EXPECT_EQ(tokens[1]["text"], "東");
  EXPECT_EQ(tokens[2]["text"], "a");
  // TEI's text is that of the input, whatever the tokenizer makes of it.
  const json capital = service.post("/tokenize", {{"inputs", "東A?"}})[0];
  EXPECT_EQ(capital[2]["text"], "A");
  EXPECT_EQ(capital[3],
            (json{{"id", 1}, {"text", "?"}, {"special", false}, {"start", 4}, {"stop", 5}}));
}

TEST(HostileRequests, ErrorsAreTheClientsOrTheServers) {
  const auto status_of = [](ErrorCode code) {
    auto models = load_models({"vectors"}, {});
    ModelSetup setup = models.front()->setup();
    setup.load_hidden_states = [code]() -> std::shared_ptr<runtime::Session> {
      throw Error("it failed", code);
    };
    models.front() = std::make_unique<Model>(std::move(setup), BatcherOptions{});
    Metrics metrics;
    Service service({}, metrics);
    service.start(std::move(models));
    RequestRecord record;
    const HttpResponse reply = service.handle({"POST", "/embed_all", R"({"inputs": "a"})"}, record);
    EXPECT_THAT(reply.body, HasSubstr(reply.status == 422 ? "Validation" : "Backend"));
    return reply.status;
  };
  EXPECT_EQ(status_of(ErrorCode::invalid_file), 424) << "a file of the server";
  EXPECT_EQ(status_of(ErrorCode::device), 424);
  EXPECT_EQ(status_of(ErrorCode::out_of_memory), 424);
  EXPECT_EQ(status_of(ErrorCode::unsupported), 424);
}

TEST(HostileRequests, HiddenStatesThatAModelLacksAreNotLoadedForEachRequest) {
  const auto loads_of = [](bool fails, std::chrono::milliseconds reload_interval) {
    const auto models = load_models({"vectors"}, {});
    ModelSetup setup = models.front()->setup();
    int loads = 0;
    setup.load_hidden_states = [&, pooled = setup.session] {
      ++loads;
      if (fails) throw std::bad_alloc();
      return pooled;
    };
    setup.reload_interval = reload_interval;
    Model model(std::move(setup), {});
    const char* why = fails ? "out of memory" : "no hidden states";
    for (int i = 0; i < 3; ++i)
      EXPECT_THAT([&] { model.hidden_states(); },
                  testing::ThrowsMessage<HttpError>(HasSubstr(why)));
    return loads;
  };
  using std::chrono::milliseconds;
  for (const bool fails : {false, true}) {
    EXPECT_EQ(loads_of(fails, std::chrono::hours(1)), 1);
    EXPECT_EQ(loads_of(fails, milliseconds(0)), 3) << "there may be memory again";
  }
}

TEST(HostileRequests, WhatABatchThrowsIsTheBackends) {
  const HttpError memory = backend_error(std::bad_alloc());
  EXPECT_EQ(memory.status, 424);
  EXPECT_STREQ(memory.what(), "out of memory");
  const HttpError other = backend_error(std::logic_error("it failed"));
  EXPECT_EQ(other.status, 424);
  EXPECT_EQ(other.type, "Backend");
  EXPECT_STREQ(other.what(), "it failed");
}

}  // namespace
}  // namespace bertcl::serve::tests
