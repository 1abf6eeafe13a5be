// SPDX-License-Identifier: Apache-2.0
// bertcl quantize --sensitivity, --max-error and --max-drop on a tiny model.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "program_runner.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tools/f1_drop.hpp"

namespace bertcl::tests {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class OpChoiceTest : public FolderTest {
 protected:
  OpChoiceTest() {
    std::ofstream model(path("model.onnx"), std::ios::binary);
    quant::tests::TinyBert bert({.vocabulary = 30522});
    EXPECT_TRUE(bert.builder().model().SerializeToOstream(&model));
    std::filesystem::copy_file(source_file("models/minilm-l6-squad/vocab.txt"), path("vocab.txt"));
  }
  ProgramResult quantize(std::vector<std::string> more) const {
    std::vector<std::string> arguments = {"quantize",
                                          path("model.onnx"),
                                          "-o",
                                          path("q.onnx"),
                                          "--data",
                                          kCalibration,
                                          "--samples",
                                          "4",
                                          "--json",
                                          path("q.json"),
                                          "--sensitivity-samples",
                                          "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_bertcl(arguments);
  }
  const std::string kCalibration = source_file("data/calibration.json");
};

TEST_F(OpChoiceTest, ShowsWhatEachOpCosts) {
  const ProgramResult made = quantize({"--sensitivity-plot", path("q.svg")});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("feed-forward out"), HasSubstr("layer 0"),
                              HasSubstr("/qa_outputs/MatMul")));
  EXPECT_THAT(files(), ElementsAre("model.onnx", "q.json", "q.onnx", "q.svg", "vocab.txt"));
  const nlohmann::json report = read_json(path("q.json"));
  const nlohmann::json& found = report.at("sensitivity");
  EXPECT_EQ(found.at("samples"), 2);
  ASSERT_EQ(found.at("ops").size(), 9u);
  double last = found.at("ops")[0].at("alone"), shares = 0.0;
  EXPECT_GT(last, 0.0);
  for (const auto& op : found.at("ops")) {
    EXPECT_LE(op.at("alone"), last);
    last = op.at("alone");
    shares += op.at("share").get<double>();
  }
  EXPECT_NEAR(shares, 1.0, 1e-9);
  EXPECT_EQ(found.at("kinds").size(), 7u);
  EXPECT_EQ(found.at("layers").size(), 1u);
  EXPECT_GT(found.at("all_deferred"), 0.0);
  EXPECT_EQ(found.at("alone_deferred").size(), 1u);
  EXPECT_FALSE(report.contains("max_drop"));

  const std::string picture = read(path("q.svg"));
  EXPECT_THAT(picture, AllOf(StartsWith("<svg "), EndsWith("</svg>\n"),
                             HasSubstr("/qa_outputs/MatMul"), testing::Not(HasSubstr("href"))));
}

TEST_F(OpChoiceTest, LeavesTheFewestOpsForAnError) {
  ASSERT_EQ(quantize({"--sensitivity"}).code, 0);
  const nlohmann::json all = read_json(path("q.json")).at("sensitivity");
  // Less than all of them quantized give, with deferred Softmax too.
  const double most =
      90.0 * std::min(all.at("all").get<double>(), all.at("all_deferred").get<double>());
  const ProgramResult made = quantize({"--max-error", std::to_string(most)});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, AllOf(HasSubstr("to keep the drop within"), HasSubstr("ops in float")));
  const nlohmann::json report = read_json(path("q.json"));
  const nlohmann::json& found = report.at("max_drop");
  EXPECT_LE(found.at("drop"), most);
  EXPECT_EQ(found.at("questions"), 2);
  ASSERT_FALSE(found.at("left_in_float").empty());
  EXPECT_EQ(report.at("quantized_nodes").get<std::size_t>() + found.at("left_in_float").size(), 9u);
  std::vector<std::string> left;
  for (const auto& entry : report.at("left_in_float")) left.push_back(entry.at("node"));
  EXPECT_THAT(left, Contains(found.at("left_in_float")[0]));
}

TEST_F(OpChoiceTest, KeepsF1WithinABound) {
  const ProgramResult made = quantize({"--max-drop", "100", "--drop-limit", "10"});
  ASSERT_EQ(made.code, 0) << made.err;
  nlohmann::json found = read_json(path("q.json")).at("max_drop");
  EXPECT_EQ(found.at("questions"), 10);
  EXPECT_EQ(found.at("unit"), "F1");
  EXPECT_TRUE(found.at("left_in_float").empty());
  ASSERT_EQ(found.at("steps").size(), 1u);
  EXPECT_EQ(found.at("drop"), found.at("steps")[0].at("drop"));

  const ProgramResult other = quantize({"--max-drop", "100", "--drop-data",
                                        source_file("data/sample-v2.0.json"), "--drop-limit", "6"});
  ASSERT_EQ(other.code, 0) << other.err;
  EXPECT_EQ(read_json(path("q.json")).at("max_drop").at("questions"), 6);
}

TEST_F(OpChoiceTest, RefusesWhatCannotBe) {
  EXPECT_THAT(refusal(quantize({"--max-drop", "-101", "--drop-limit", "5"})),
              AllOf(HasSubstr("-101"), HasSubstr("ops in float")));
  EXPECT_THAT(refusal(quantize({"--drop-limit", "5"})), HasSubstr("--max-drop"));
  EXPECT_THAT(refusal(quantize({"--max-drop", "1", "--max-error", "1"})), HasSubstr("excludes"));
  EXPECT_THAT(refusal(run_bertcl({"quantize", path("model.onnx"), "-o", path("q.onnx"), "--data",
                                  kCalibration, "--samples", "0", "--max-drop", "1"})),
              HasSubstr("--drop-data"));
  EXPECT_THAT(refusal(run_bertcl({"quantize", path("model.onnx"), "-o", path("q.onnx"),
                                  "--sensitivity", "--read-table", kCalibration})),
              HasSubstr("--data"));
  EXPECT_THAT(files(), ElementsAre("model.onnx", "vocab.txt"));
}

TEST(OtherQuestions, AreThoseThatAreNotTaken) {
  squad::Dataset dataset;
  dataset.contexts = {"a b"};
  for (int i = 0; i < 6; ++i) dataset.questions.push_back({std::to_string(i), "?", {}, false, 0});
  const auto ids = [&](const std::vector<std::size_t>& taken, std::size_t limit) {
    std::string all;
    for (const auto& q : tools::other_questions(dataset, taken, limit).questions) all += q.id;
    return all;
  };
  EXPECT_EQ(ids({}, 0), "012345");
  EXPECT_EQ(ids({1, 4}, 0), "0235");
  EXPECT_EQ(ids({1, 4}, 2), "03");
  EXPECT_ANY_THROW(ids({0, 1, 2, 3, 4, 5}, 2));
}

}  // namespace
}  // namespace bertcl::tests
