// SPDX-License-Identifier: Apache-2.0
// /answer against stored answers of transformers (tests/python/make_qa_golden.py), and its options.
#include <algorithm>
#include <fstream>
#include <map>

#include "tests/serve/models.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::serve::tests {
namespace {

using nlohmann::json;

TestService& qa_service() {
  static TestService made({.models = {"qa"}});
  return made;
}

json read(const std::string& path) {
  std::ifstream file(path);
  return json::parse(file);
}

/// The body of a request for each question of SQuAD, by its id.
std::map<std::string, json> requests_of(const json& squad) {
  std::map<std::string, json> requests;
  for (const json& article : squad["data"])
    for (const json& paragraph : article["paragraphs"])
      for (const json& asked : paragraph["qas"])
        requests[asked["id"]] = {{"question", asked["question"]},
                                 {"context", paragraph["context"]}};
  return requests;
}

TEST(Answers, AreThoseOfTransformers) {
  const char* const squad = "data/squad/dev-v1.1.json";
  BERTCL_NEEDS(squad);
  const auto requests = requests_of(read(bertcl::tests::shared_file(squad)));
  const json golden = read(bertcl::tests::source_file("tests/python/qa_golden.json"));
  std::size_t compared = 0;
  for (const json& group : golden["groups"])
    for (const auto& [id, expected] : group["answers"].items()) {
      json request = requests.at(id);
      request.update(group["options"]);
      json found = qa_service().post("/answer", request);
      const json all = expected.is_array() ? expected : json::array({expected});
      if (!found.is_array()) found = json::array({found});
      ASSERT_EQ(found.size(), all.size()) << id;
      for (std::size_t i = 0; i < all.size(); ++i, ++compared) {
        EXPECT_NEAR(found[i]["score"].get<double>(), all[i]["score"].get<double>(), 1e-4) << id;
        for (const char* key : {"answer", "start", "end"})
          EXPECT_EQ(found[i][key], all[i][key]) << id << ' ' << group["options"];
      }
    }
  EXPECT_EQ(compared, 340u);
}

TEST(Answers, MayBeNoneAmongSeveral) {
  json request = {{"question", "Who was the king of Norway?"},
                  {"context", "OpenCL is maintained by the Khronos Group."},
                  {"handle_impossible_answer", true},
                  {"top_k", 100}};
  const json all = qa_service().post("/answer", request);
  const auto none = [](const json& answer) { return answer["answer"] == ""; };
  EXPECT_EQ(std::ranges::count_if(all, none), 1);
  request["handle_impossible_answer"] = false;
  const json others = qa_service().post("/answer", request);
  EXPECT_EQ(std::ranges::count_if(others, none), 0);
}

TEST(Answers, HaveAsManyTokensAsAreAskedFor) {
  std::string context = "Who is it?";
  for (int i = 0; i < 30; ++i) context += " two words";
  json request = {{"question", "Who is it?"}, {"context", context}, {"top_k", 100}};
  const auto longest = [&] {
    std::ptrdiff_t words = 0;
    for (const json& answer : qa_service().post("/answer", request)) {
      const auto text = answer["answer"].get<std::string>();
      words = std::max(words, 1 + std::ranges::count(text, ' '));
    }
    return words;
  };
  EXPECT_EQ(longest(), 15);
  request["max_answer_len"] = 3;
  EXPECT_EQ(longest(), 3);
}

TEST(Answers, WindowsHoldSomethingNew) {
  const auto refusal = [](const json& options) {
    json request = {{"question", "Who made it?"}, {"context", "Ada Lovelace made it."}};
    request.update(options);
    return qa_service().call("POST", "/answer", request.dump()).body;
  };
  EXPECT_THAT(refusal({{"max_seq_len", 20}, {"doc_stride", 13}}),
              HasSubstr("doc_stride is 13, expected less than the 13 tokens that max_seq_len 20 "
                        "leaves for the context"));
  EXPECT_THAT(refusal({{"doc_stride", -1}}), HasSubstr("doc_stride is -1, expected 0 to"));
  EXPECT_THAT(refusal({{"max_seq_len", 8}, {"doc_stride", 0}}), HasSubstr("Ada"));
}

}  // namespace
}  // namespace bertcl::serve::tests
