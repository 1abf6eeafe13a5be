// SPDX-License-Identifier: Apache-2.0
// bertcl quantize: the file it writes, what runs in integers then, and what it refuses.
#include <gmock/gmock.h>

#include "program_runner.hpp"

namespace bertcl::tests {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::string kModel = source_file("models/minilm-l6-squad/model.onnx");
const std::string kVocabulary = source_file("models/minilm-l6-squad/vocab.txt");
const std::string kCalibration = source_file("data/calibration.json");

class QuantizeTest : public FolderTest {
 protected:
  ProgramResult quantize(const std::string& output, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"quantize", kModel,       "-o",        output,
                                          "--data",   kCalibration, "--samples", "6"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_bertcl(arguments);
  }
};

TEST_F(QuantizeTest, WritesAModelThatRunsInIntegers) {
  const ProgramResult made = quantize(path("q.onnx"), {"--json", path("q.json")});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.err, "");
  EXPECT_THAT(made.out, AllOf(HasSubstr("q.onnx"), HasSubstr("left in float")));
  EXPECT_THAT(files(), ElementsAre("q.json", "q.onnx"));
  const nlohmann::json report = read_json(path("q.json"));
  EXPECT_EQ(report.at("samples"), 6);
  EXPECT_EQ(report.at("method"), "minmax");
  EXPECT_FALSE(report.at("tensors").empty());

  const ProgramResult inspected =
      run_bertcl({"inspect", path("q.onnx"), "--require", "int8", "--json", "-"});
  EXPECT_EQ(inspected.code, 0) << inspected.err;
  std::size_t integer = 0;
  const nlohmann::json plan = nlohmann::json::parse(inspected.out);
  for (const auto& op : plan.at("ops")) {
    if (op.at("op") == "linear_q" || op.at("op") == "attention_q") {
      EXPECT_EQ(op.at("type"), "int8") << op;
      ++integer;
    }
  }
  EXPECT_EQ(integer, 6u * 5 + 1) << "QKV, attention, three products a layer; the head";

  const ProgramResult evaluated =
      run_bertcl({"eval", path("q.onnx"), "--compare", kModel, "--data",
                  source_file("data/sample-v2.0.json"), "--limit", "16", "--json", "-"});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  const nlohmann::json models = nlohmann::json::parse(evaluated.out).at("models");
  EXPECT_EQ(models[0].at("precision"), "int8");
  EXPECT_EQ(models[1].at("precision"), "fp32");
  EXPECT_GT(models[0].at("HasAns_f1"), models[1].at("HasAns_f1").get<double>() - 15);
}

TEST_F(QuantizeTest, TheSameInputGivesTheSameBytes) {
  ASSERT_EQ(quantize(path("a.onnx")).code, 0);
  ASSERT_EQ(quantize(path("b.onnx")).code, 0);
  EXPECT_TRUE(read(path("a.onnx")) == read(path("b.onnx")));
}

TEST_F(QuantizeTest, WhatIsLeftInFloatFailsTheRequirement) {
  const std::string value_product = "*/attention/self/MatMul_1";
  const ProgramResult made = quantize(path("q.onnx"), {"--exclude", value_product});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("layer.0/attention/self/MatMul_1 and 5 more"));
  const ProgramResult inspected = run_bertcl({"inspect", path("q.onnx"), "--require", "int8"});
  EXPECT_EQ(inspected.code, 1);
  EXPECT_THAT(inspected.err, AllOf(testing::StartsWith("bertcl: "), HasSubstr("int8 is required"),
                                   HasSubstr("runs in fp32")));
}

TEST_F(QuantizeTest, RefusalsLeaveNoFile) {
  const auto refused = [&](const std::vector<std::string>& more) {
    const std::string message = refusal(quantize(path("q.onnx"), more));
    EXPECT_THAT(files(), testing::IsEmpty());
    return message;
  };
  EXPECT_THAT(refused({"--exclude", "no such node"}), HasSubstr("no such node"));
  EXPECT_THAT(refused({"--method", "guess"}), AllOf(HasSubstr("guess"), HasSubstr("minmax")));
  EXPECT_THAT(refused({"--method", "percentile", "--percentile", "101"}), HasSubstr("101"));
  EXPECT_THAT(refused({"--activations", "s4"}), HasSubstr("s4"));
  EXPECT_THAT(refusal(quantize(path("none/q.onnx"))), HasSubstr("none"));
  EXPECT_THAT(refusal(run_bertcl({"quantize", kModel, "-o", kModel, "--data", kCalibration})),
              HasSubstr("the model itself"));
  EXPECT_THAT(refusal(run_bertcl({"quantize", write("m.onnx", "words"), "-o", path("q.onnx"),
                                  "--data", kCalibration, "--vocab", kVocabulary})),
              AllOf(HasSubstr("m.onnx"), HasSubstr("not an ONNX file")));
  EXPECT_THAT(files(), ElementsAre("m.onnx"));
}

}  // namespace
}  // namespace bertcl::tests
