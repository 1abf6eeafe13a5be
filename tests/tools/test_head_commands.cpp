// SPDX-License-Identifier: Apache-2.0
// bertcl classify, tag and fill-mask: what they print, their options, and what they refuse. Their
// results are compared with Hugging Face's in tests/python/test_pipelines.py.
#include "tasks_model.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

class HeadCommandTest : public TasksModelTest {};

TEST_F(HeadCommandTest, ClassesAreNamedByOptionAndByFile) {
  const std::string input = "It is fine.\n\nIt is not.\n";
  const auto label = [&](const std::vector<std::string>& more) {
    return json("classify", input, more).at("results")[0].at("labels")[0].at("label");
  };
  const nlohmann::json report = json("classify", input, {"--labels", "bad,good", "--top-k", "5"});
  EXPECT_EQ(report.at("schema"), "bertcl.classify/1");
  EXPECT_EQ(report.at("activation"), "softmax");
  EXPECT_EQ(report.at("texts"), 3) << "a blank line is a text, too";
  const nlohmann::json& labels = report.at("results")[2].at("labels");
  ASSERT_EQ(labels.size(), 2u);
  EXPECT_NEAR(labels[0].at("score").get<double>() + labels[1].at("score").get<double>(), 1, 1e-6);
  EXPECT_GE(labels[0].at("score"), labels[1].at("score"));
  const std::string first = label({"--labels", "bad,good"});
  write("config.json", R"({"id2label": {"0": "BAD", "1": "GOOD"}})");
  EXPECT_EQ(label({}), first == "bad" ? "BAD" : "GOOD");
  write("config.json", R"({"id2label": {"0": "LABEL_0", "1": "LABEL_1"}})");
  EXPECT_THAT(refusal(run("classify", input)), HasSubstr("name its classes with --labels"))
      << "this model answers questions, too";
}

TEST_F(HeadCommandTest, TheActivationFollowsConfigAndOption) {
  const auto activation = [&](const std::string& config, const std::vector<std::string>& more) {
    write("config.json", config);
    return json("classify", "x\n", joined({"--labels", "a,b"}, more)).at("activation");
  };
  EXPECT_EQ(activation(R"({"problem_type": "multi_label_classification"})", {}), "sigmoid");
  EXPECT_EQ(activation(R"({"problem_type": "single_label_classification"})", {}), "softmax");
  EXPECT_EQ(activation(R"({"problem_type": "regression"})", {}), "none");
  EXPECT_EQ(activation(R"({"problem_type": "regression"})", {"--activation", "softmax"}),
            "softmax");
}

TEST_F(HeadCommandTest, PairsAndIds) {
  const std::string pairs = R"({"id": 7, "text": "It rains.", "text_pair": "It is wet."})"
                            "\n"
                            R"({"text": "It rains."})"
                            "\n";
  const nlohmann::json results = json("classify", pairs, {"--labels", "a,b"}).at("results");
  EXPECT_EQ(results[0].at("id"), "7");
  EXPECT_EQ(results[0].at("text_pair"), "It is wet.");
  EXPECT_FALSE(results[1].contains("id") || results[1].contains("text_pair"));
  const ProgramResult text = run("classify", pairs, {"--labels", "a,b"});
  EXPECT_THAT(text.out, AllOf(StartsWith(" score  label  id  text\n"),
                              HasSubstr("7   It rains. | It is wet.\n")));
}

// As for the pipeline of transformers.
TEST_F(HeadCommandTest, AnEmptySecondTextIsNone) {
  const std::string texts = R"({"text": "It rains.", "text_pair": ""})"
                            "\n"
                            R"({"text": "It rains."})"
                            "\n";
  const nlohmann::json report = json("classify", texts, {"--labels", "a,b"});
  EXPECT_EQ(report.at("tokens"), 2 * 5);
  EXPECT_EQ(report.at("results")[0].at("labels"), report.at("results")[1].at("labels"));
  EXPECT_THAT(run("classify", texts, {"--labels", "a,b"}).out, Not(HasSubstr("|")));
}

TEST_F(HeadCommandTest, EntitiesHaveTheirPlacesInCharacters) {
  // One of both orders makes each token an entity.
  for (const std::string labels : {"O,B-x", "B-x,O"}) {
    const nlohmann::json report = json("tag", "Zürich, Oslo\n", {"--labels", labels});
    EXPECT_EQ(report.at("aggregation"), "simple");
    for (const nlohmann::json& entity : report.at("results")[0].at("entities")) {
      EXPECT_EQ(entity.at("entity_group"), "x");
      if (entity.at("word") == "Oslo") {
        EXPECT_EQ(entity.at("start"), 8);
        EXPECT_EQ(entity.at("end"), 12);
      }
    }
    const nlohmann::json tokens =
        json("tag", "Zürich, Oslo\n", {"--labels", labels, "--aggregation", "none"});
    for (const nlohmann::json& entity : tokens.at("results")[0].at("entities")) {
      EXPECT_EQ(entity.at("entity"), "B-x");
      const std::vector<std::string> pieces = {"Zürich", ",", "Oslo"};
      EXPECT_EQ(entity.at("word"), pieces.at(entity.at("index").get<std::size_t>() - 1))
          << "[CLS] is the first token";
    }
  }
  std::string all;
  for (const std::string labels : {"O,B-x", "B-x,O"}) {
    const ProgramResult text = run("tag", "Oslo\nRome\n", {"--labels", labels});
    EXPECT_THAT(text.out, AllOf(StartsWith("Oslo\n"), HasSubstr("\n\nRome\n")));
    all += text.out;
  }
  EXPECT_THAT(all, AllOf(HasSubstr("no entities\n"), HasSubstr("score  label  start  end  word")));
}

TEST_F(HeadCommandTest, EachLineHasItsResult) {
  const auto texts_of = [](const nlohmann::json& results) {
    std::vector<std::string> texts;
    for (const nlohmann::json& result : results) texts.push_back(result.at("text"));
    return texts;
  };
  const auto lines = [](const std::string& text) { return "\n" + text + "\n \n\n" + text; };
  const auto all = [](const std::string& text) { return ElementsAre("", text, " ", "", text); };
  for (const std::string command : {"classify", "tag"})
    EXPECT_THAT(texts_of(json(command, lines("Oslo"), {"--labels", "O,B-x"}).at("results")),
                all("Oslo"))
        << command;
  EXPECT_THAT(texts_of(json_lines(run("run", lines("Oslo")))), all("Oslo"));
}

TEST_F(HeadCommandTest, LongTextsAreTruncatedWithAWarning) {
  const std::vector<std::string> options = {"--labels", "O,B-x", "--max-seq-length", "5"};
  const ProgramResult result = succeeded(run("tag", "one two three four five\nsix\n", options));
  EXPECT_THAT(result.err, HasSubstr("truncated 1 of 2 texts to 5 tokens"));
  EXPECT_THAT(result.out, Not(HasSubstr(" four\n")));
  write("tokenizer_config.json", R"({"model_max_length": 5})");
  EXPECT_EQ(run("tag", "one two three four five\nsix\n", {"--labels", "O,B-x"}).err, result.err);
}

TEST_F(HeadCommandTest, WhatIsLeftOfATextKeepsItsPlaces) {
  std::filesystem::copy_file(kVocabulary, path("vocab.txt"));
  write("tokenizer_config.json", R"({"truncation_side": "left"})");
  const auto entities = [&](const std::string& text, const std::string& labels) {
    return json_of(run_bertcl({"tag", model_, "--labels", labels, "--aggregation", "none",
                               "--max-seq-length", "5", "--json", "-"},
                              {}, text))
        .at("results")[0]
        .at("entities");
  };
  for (const std::string labels : {"O,B-x", "B-x,O"}) {
    nlohmann::json end = entities("one two three four five\n", labels);
    for (auto& entity : end)
      for (const char* key : {"start", "end"}) entity[key] = entity[key].get<int>() - 8;
    EXPECT_EQ(end, entities("three four five\n", labels));
  }
}

TEST_F(HeadCommandTest, WhatDoesNotFitIsRefused) {
  expect_refused(run("tag", "x\n"),
                 {model_ + ": the tags of the model's classes are unknown; list them", "--labels"});
  expect_refused({"tag", kModel},
                 {kModel + ": the outputs are start_logits",
                  "[batch, seq, 1 or more], with a number "
                  "for each tag"},
                 {}, "x\n");
  expect_refused(run("tag", "x\n", {"--labels", "O,B-x,I-x"}), {model_, "3 classes: O, B-x, I-x"});
  expect_refused(run("tag", "x\n", {"--labels", "O,B-x", "--aggregation", "last"}),
                 {"last", "first"});
  expect_refused(run("classify", "x\n", {"--labels", "a,b,c"}), {model_, "[batch, 3]"});
  expect_refused({"classify", kModel}, {kModel, "start_logits", "[batch, classes]"}, {}, "x\n");
  expect_refused(run("classify", "", {"--labels", "a,b"}), {"standard input: contains no text"});
  expect_refused(run("fill-mask", "a [MASK] b\n"),
                 {model_, "one class per vocabulary token (30522)"});
  expect_refused(run("classify", "caf\xe9\n", {"--labels", "a,b"}),
                 {"standard input:1: invalid UTF-8"});
}

}  // namespace
}  // namespace bertcl::tests
