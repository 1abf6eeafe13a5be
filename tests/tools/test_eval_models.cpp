// SPDX-License-Identifier: Apache-2.0
// bertcl eval of several models, each with the files beside it.
#include <cstddef>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "program_runner.hpp"
#include "tasks_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tools {
namespace {

using tests::expect_refused, tests::joined, tests::run_bertcl;

class SeveralModelsTest : public tests::FolderTest {
 protected:
  /// A model in a folder of its own, with files beside it.
  std::string model(const std::string& folder, const std::map<std::string, std::string>& files) {
    for (const char* sub : {"", "/1_Pooling"})
      std::filesystem::create_directory(path(folder + sub));
    for (const auto& [name, content] : files) write(folder + "/" + name, content);
    return write(folder + "/m.onnx", tests::model_of_tasks());
  }
  /// What models are evaluated to, beside one another.
  nlohmann::json eval(std::vector<std::string> models, std::vector<std::string> more) const {
    models.insert(models.begin(), "eval");
    succeeded(run_bertcl(joined(joined(models, more), {"--json", path("r.json")})));
    return read_json(path("r.json")).at("models");
  }

  const std::string words_ = read(tests::kVocabulary);
  const std::string modules_ =
      R"([{"type": "sentence_transformers.models.Pooling", "path": "1_Pooling"}])";
  const std::string mean_ = R"({"pooling_mode": "mean"})";
};

TEST_F(SeveralModelsTest, EachReadsTextsByTheFilesBesideIt) {
  const std::string any = model(
      "any", {{"vocab.txt", words_}, {"modules.json", modules_}, {"1_Pooling/config.json", mean_}});
  std::string pieces = words_;  // "norway" is two tokens
  pieces.replace(pieces.find("\nnorway\n"), 8, "\nno-way\n");
  const std::string other =
      model("other", {{"vocab.txt", pieces},
                      {"tokenizer_config.json", R"({"model_max_length": 24})"},
                      {"modules.json", modules_},
                      {"1_Pooling/config.json", mean_}});
  const std::string bare = model("bare", {});
  const std::string squad = write("d.json", tests::kTwoContexts);
  std::string many;
  for (int i = 0; i < 8; ++i) many += "Oslo lies in Norway. ";
  const std::string texts = write("d.tsv", many + "\ta\nA cat\tb\n");
  for (const std::vector<std::string>& task : std::vector<std::vector<std::string>>{
           {"--data", squad},
           {"--data", squad, "--task", "retrieval"},
           {"--data", texts, "--task", "classify", "--labels", "a,b"}}) {
    const nlohmann::json alone[] = {eval({any}, task)[0], eval({other}, task)[0]};
    ASSERT_NE(alone[0].at("tokens"), alone[1].at("tokens")) << task.back();
    const nlohmann::json two = eval({any, other}, task), back = eval({other, any}, task);
    for (const char* count : {"tokens", "truncated"}) {
      for (const std::size_t i : {0u, 1u}) {
        EXPECT_EQ(two[i].value(count, 0), alone[i].value(count, 0)) << task.back() << i;
        EXPECT_EQ(back[i].value(count, 0), alone[1 - i].value(count, 0)) << task.back() << i;
      }
    }
  }
  EXPECT_EQ(eval({bare, other}, {"--data", squad})[0].at("tokens"),
            eval({other}, {"--data", squad})[0].at("tokens"))
      << "the first tokenizer there is";
  EXPECT_THAT(succeeded(run_bertcl({"eval", any, other, "--task", "classify", "--labels", "a,b",
                                    "--data", texts}))
                  .out,
              HasSubstr("\nother/m.onnx: 1 of them is longer than 24 tokens and truncated"));
}

TEST_F(SeveralModelsTest, WhatTheyWouldHaveToShareIsRefusedWhereItDiffers) {
  const auto with_prompt = [&](const std::string& folder, const std::string& prompt) {
    return model(folder, {{"vocab.txt", words_},
                          {"modules.json", modules_},
                          {"1_Pooling/config.json", mean_},
                          {"config_sentence_transformers.json",
                           R"({"prompts": {"query": ")" + prompt + R"("}})"}});
  };
  const std::string one = with_prompt("one", "query: "), other = with_prompt("other", "ask: ");
  const std::vector<std::string> retrieval = {"--task", "retrieval", "--data",
                                              write("d.json", tests::kTwoContexts)};
  expect_refused(joined({"eval", one, other}, retrieval),
                 {one + " and " + other +
                  " have different prompts in config_sentence_"
                  "transformers.json; evaluate them separately"});
  eval({one, with_prompt("same", "query: ")}, retrieval);
  const std::string bare = model("bare", {});
  for (const auto& both : {std::vector{bare, one}, {one, bare}})
    expect_refused(joined(joined({"eval"}, both), retrieval),
                   {bare + ": no output is a vector"});  // its prompts are no reason
  expect_refused(joined({"eval", bare, one, other}, retrieval),
                 {one + " and " + other + " have different prompts"});
  const std::string more = model("more", {{"vocab.txt", words_ + "[more]\n"}});
  expect_refused({"eval", one, more, "--task", "fill-mask", "--data", write("t.txt", "A cat\n")},
                 {one + " and " + more +
                  " have different vocabularies, but the same tokens are hidden for all models"});
}

}  // namespace
}  // namespace bertcl::tools
