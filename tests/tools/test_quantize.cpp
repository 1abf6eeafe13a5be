// SPDX-License-Identifier: Apache-2.0
// bertcl quantize: the file it writes, what runs in integers then, and what it refuses.
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <filesystem>

#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

class QuantizeTest : public FolderTest {
 protected:
  ProgramResult quantize(const std::string& output, std::vector<std::string> more = {}) const {
    return run_bertcl(
        joined({"quantize", kModel, "-o", output, "--data", kCalibration, "--samples", "6"}, more));
  }
  /// In a third of the time, for tests of neither.
  ProgramResult quantize_without_smoothing_or_gptq(
      const std::string& output, const std::vector<std::string>& more = {}) const {
    return quantize(output, joined({"--smooth", "off", "--weight-rounding", "nearest"}, more));
  }
};

TEST_F(QuantizeTest, WritesAModelThatRunsInIntegers) {
  const ProgramResult made = succeeded(quantize(path("q.onnx"), {"--json", path("q.json")}));
  EXPECT_EQ(made.err, "");
  EXPECT_THAT(made.out, AllOf(HasSubstr("q.onnx"), HasSubstr("left in float")));
  EXPECT_THAT(files(), ElementsAre("q.json", "q.onnx", "vocab.txt"));
  const nlohmann::json report = read_json(path("q.json"));
  EXPECT_EQ(report.at("samples"), 6);
  EXPECT_EQ(report.at("method"), "minmax");
  EXPECT_FALSE(report.at("tensors").empty());

  std::size_t integer = 0;
  const nlohmann::json plan = json_of({"inspect", path("q.onnx"), "--require", "int8"});
  for (const auto& op : plan.at("ops")) {
    if (op.at("op") == "linear_q" || op.at("op") == "attention_q") {
      EXPECT_EQ(op.at("type"), "int8") << op;
      ++integer;
    }
  }
  EXPECT_EQ(integer, 6u * 5 + 1) << "QKV, attention, three linears a layer; the head";

  const nlohmann::json models =
      json_of({"eval", path("q.onnx"), "--compare", kModel, "--data", kData, "--limit", "16"})
          .at("models");
  EXPECT_EQ(models[0].at("precision"), "int8");
  EXPECT_EQ(models[1].at("precision"), "fp32");
  EXPECT_GT(models[0].at("HasAns_f1"), models[1].at("HasAns_f1").get<double>() - 15);

  succeeded(quantize(path("again.onnx")));
  EXPECT_TRUE(read(path("again.onnx")) == read(path("q.onnx")))
      << "the same input gives the same bytes";
}

TEST_F(QuantizeTest, TheTextTellsOfChannelsAndUnnormalizedSoftmax) {
  const ProgramResult made = succeeded(quantize_without_smoothing_or_gptq(
      path("q.onnx"), {"--preset", "fast", "--softmax", "unnormalized"}));
  EXPECT_THAT(made.out, AllOf(HasSubstr("24 activations with per-channel scales\n"),
                              HasSubstr("6 Softmax unnormalized: ")));
}

TEST_F(QuantizeTest, TheTextTellsOfActivationsAtRunTime) {
  const ProgramResult made =
      succeeded(run_bertcl({"quantize", kModel, "-o", path("q.onnx"), "--dynamic", "--per-token"}));
  EXPECT_THAT(made.out,
              HasSubstr("\n37 nodes quantized: activations at run time (i8), 37 weights ("));
}

TEST_F(QuantizeTest, WeightsOf7BitsStayWithNarrowSteps) {
  const nlohmann::json report = json_of(
      {"quantize", kModel, "-o", path("q.onnx"), "--dynamic", "--narrow-range", "--reduce-range"});
  EXPECT_EQ(report.at("weights").at("bits"), 7);
}

TEST_F(QuantizeTest, AQuantizedModelIsRefused) {
  succeeded(quantize_without_smoothing_or_gptq(path("q.onnx")));
  const ProgramResult again = run_bertcl({"quantize", path("q.onnx"), "-o", path("r.onnx"),
                                          "--data", kCalibration, "--vocab", kVocabulary});
  expect_refused(again, {"q.onnx: already quantized, it has 86 DequantizeLinear and 49 "
                         "QuantizeLinear nodes",
                         "give the float model"});
  EXPECT_THAT(files(), ElementsAre("q.onnx", "vocab.txt"));
}

// The model that int8 is compared with may be float; the one that is measured may not.
TEST_F(QuantizeTest, TheRequirementIsThatOfTheMeasuredModel) {
  succeeded(quantize_without_smoothing_or_gptq(path("q.onnx")));
  const auto eval = [](const std::string& model, const std::string& other) {
    return run_bertcl({"eval", model, "--compare", other, "--data",
                       source_file("data/sample-v2.0.json"), "--limit", "1", "--vocab", kVocabulary,
                       "--require", "int8"});
  };
  EXPECT_EQ(eval(path("q.onnx"), kModel).code, 0);
  const ProgramResult swapped = eval(kModel, path("q.onnx"));
  EXPECT_EQ(swapped.code, 1);
  EXPECT_THAT(swapped.err, HasSubstr("it is a float model"));
}

TEST_F(QuantizeTest, WhatIsLeftInFloatFailsTheRequirement) {
  const std::string value_matmul = "*/attention/self/MatMul_1";
  const ProgramResult made =
      succeeded(quantize_without_smoothing_or_gptq(path("q.onnx"), {"--exclude", value_matmul}));
  EXPECT_THAT(made.out, HasSubstr("layer.0/attention/self/MatMul_1 and 5 more"));
  const ProgramResult inspected = run_bertcl({"inspect", path("q.onnx"), "--require", "int8"});
  EXPECT_EQ(inspected.code, 1);
  EXPECT_THAT(inspected.err, AllOf(StartsWith("bertcl: "), HasSubstr("int8 is required"),
                                   HasSubstr("runs in fp32")));
}

TEST_F(QuantizeTest, AnInterruptLeavesNoFile) {
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    const auto start = std::chrono::steady_clock::now();
    const int code = interrupt_bertcl({"quantize", kModel, "-o", path("q.onnx"), "--data",
                                       kCalibration, "--samples", "50", "--sensitivity"},
                                      signal, [&] {  // while it works: it takes many seconds
                                        return std::chrono::steady_clock::now() - start >
                                               std::chrono::seconds(1);
                                      });
    EXPECT_EQ(code, 128 + signal);
    EXPECT_THAT(files(), IsEmpty());
  }
}

TEST_F(QuantizeTest, SmoothingThatAnotherOptionRulesOutIsRefusedOrNamed) {
  const auto refused = [&](const std::vector<std::string>& more) {
    return refusal(quantize(path("q.onnx"), more));
  };
  const auto dynamic = [&](const std::vector<std::string>& more) {
    return refusal(
        run_bertcl(joined({"quantize", kModel, "-o", path("q.onnx"), "--dynamic"}, more)));
  };
  EXPECT_THAT(refused({"--smooth", "auto", "--clip-gelu", "10"}),
              HasSubstr("--smooth has no effect here: GELU is clipped"));
  EXPECT_THAT(refused({"--smooth", "0.5", "--outputs", "MatMul"}),
              HasSubstr("--smooth has no effect here: outputs of operators are quantized"));
  EXPECT_THAT(refused({"--smooth", "auto", "--write-table", path("t.json")}),
              HasSubstr("--smooth has no effect here: smoothing changes tensors"));
  for (const std::vector<std::string>& asked : {std::vector<std::string>{"--smooth", "auto"},
                                                {"--weight-rounding", "gptq"},
                                                {"--bias-correction"},
                                                {"--method", "entropy"},
                                                {"--bins", "64"},
                                                {"--batch", "8"},
                                                {"--first-samples"},
                                                {"--max-seq-length", "64"},
                                                {"--samples", "3"},
                                                {"--two-sided"},
                                                {"--absolute"},
                                                {"--symmetric-ranges"},
                                                {"--minimum-range", "0.5"},
                                                {"--dedicated-pairs"},
                                                {"--adds", "all"},
                                                {"--lower-case"},
                                                {"--no-strip-accents"},
                                                {"--recalibrate-weights"},
                                                {"--task", "text"}}) {
    EXPECT_THAT(dynamic(asked),
                AllOf(HasSubstr(asked[0]), HasSubstr(" has no effect here: --dynamic ")));
  }
  for (const std::vector<std::string>& asked :
       {std::vector<std::string>{"--lower-case"}, {"--no-strip-accents"}, {"--task", "text"}})
    EXPECT_THAT(refusal(run_bertcl(joined({"quantize", kModel, "-o", path("q.onnx"), "--read-table",
                                           write("t.json", "{}")},
                                          asked))),
                HasSubstr(asked[0] + " has no effect here: a table of ranges has no samples"));
  std::filesystem::remove(path("t.json"));
  EXPECT_THAT(refused({"--recalibrate-weights"}),
              HasSubstr("--recalibrate-weights has no effect here: only a table has ranges of "
                        "weights; see --read-table"));
  EXPECT_THAT(refused({"--weights-qdq", "--weight-rounding", "gptq"}),
              HasSubstr("--weight-rounding gptq has no effect here: weights written as float"));
  EXPECT_THAT(refused({"--add-channels"}), HasSubstr("no Add is quantized; see --residual"));
  EXPECT_THAT(refused({"--adds", "all"}), HasSubstr("no Add is quantized; see --residual"));
  EXPECT_THAT(
      refused({"--enable-layer-module", "attention"}),
      HasSubstr("--enable-layer-module has no effect here: it re-enables disabled modules"));
  EXPECT_THAT(refused({"--axis", "Conv=0"}),
              HasSubstr("--axis Conv=0 has no effect here: no Conv is quantized"));
  EXPECT_THAT(refused({"--outputs", "MatMul,Add"}),
              HasSubstr("--outputs Add has no effect here: no Add is quantized; see --op-types"));
  EXPECT_THAT(refused({"--outputs", "Addd"}), HasSubstr("did you mean Add?"));
  EXPECT_THAT(refused({"--per-tensor", "--axis", "MatMul=0"}),
              HasSubstr("--axis has no effect here: it sets the channel axis of weights, which are "
                        "quantized per tensor; see --per-channel"));
  EXPECT_THAT(
      refused({"--axis", "MatMul=5"}),
      HasSubstr("--axis matches no weight: node '/m/bert/encoder/layer.0/attention/self/query/"
                "MatMul': axis 5 is out of range: the weight has 2 dimensions"));
  EXPECT_THAT(refused({"--weight-rounding", "gptq", "--axis", "MatMul=0"}),
              HasSubstr("--weight-rounding gptq has no effect here: weights have scales along"));
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"--adds", "all"}, {"--places", "sum"}, {"--outputs", "Add"}})
    EXPECT_THAT(refused({"--residual", "--add-channels", other[0], other[1]}),
                HasSubstr("--add-channels has no effect here: Adds get per-tensor scales"));
  EXPECT_THAT(dynamic({"--fuse-qkv"}), HasSubstr("--fuse-qkv has no effect here"));
  for (const char* scheme : {"i8-asymmetric", "s8-asymmetric", "u8-symmetric"})
    EXPECT_THAT(
        dynamic({"--per-token", "--activations", scheme}),
        HasSubstr("--per-token quantizes activations to symmetric i8; use --activations i8"));
  EXPECT_THAT(refused({"--sensitivity-samples", "3"}),
              HasSubstr("--sensitivity-samples has no effect without --sensitivity"));
  EXPECT_THAT(refused({"--method", "mse", "--two-sided", "--stride", "2"}),
              HasSubstr("--stride requires --absolute"));
  EXPECT_THAT(refused({"--reduce-range", "--weight-bits", "4"}),
              HasSubstr("--reduce-range quantizes weights to 7 bits and cannot be combined with "
                        "--weight-bits 4"));
  EXPECT_THAT(refused({"--full-range", "--reduce-range"}),
              HasSubstr("--full-range: cannot be combined with --reduce-range, which quantizes "
                        "weights to 7 bits"));
  EXPECT_THAT(files(), IsEmpty());
  const ProgramResult made =
      succeeded(quantize(path("q.onnx"), {"--clip-gelu", "10", "--weight-rounding", "nearest"}));
  EXPECT_THAT(made.out, HasSubstr("not smoothed: GELU is clipped"));
}

TEST_F(QuantizeTest, DataWithoutASampleAreNamed) {
  const std::string blank = write("blank.json", R"({"data": [{"paragraphs": [{"context": " ",
      "qas": [{"id": "q", "question": "Who?", "answers": [{"text": "x"}]}]}]}]})");
  expect_refused({"quantize", kModel, "-o", path("q.onnx"), "--data", blank},
                 {"blank.json: no calibration samples: none of 1 questions has tokens"});
  const std::string room = write("room.json", R"({"data": [{"paragraphs": [{"context": "a",
      "qas": [{"id": "q", "question": "Who is it?", "answers": [{"text": "a"}]}]}]}]})");
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"quantize", kModel, "-o", path("q.onnx")}, {"eval", kModel}})
    expect_refused(joined(command, {"--data", room, "--max-seq-length", "7"}),
                   {"question q: --max-seq-length 7 leaves no room for the context"});
}

TEST_F(QuantizeTest, RefusalsLeaveNoFile) {
  const auto refused = [&](const std::vector<std::string>& more) {
    const std::string message = refusal(quantize(path("q.onnx"), more));
    EXPECT_THAT(files(), IsEmpty());
    return message;
  };
  EXPECT_THAT(refused({"--exclude", "*/attention/self/MatMul_7"}),
              AllOf(HasSubstr("'*/attention/self/MatMul_7'"), HasSubstr("of the 62 candidates"),
                    HasSubstr("'/m/bert/encoder/layer.0/attention/self/MatMul_1'")));
  EXPECT_THAT(refused({"--axis", "MatMul=99999999999"}), HasSubstr("--axis"));
  EXPECT_THAT(refused({"--axis", "MatMul=x"}), HasSubstr("'MatMul=x' is not OPERATOR=AXIS"));
  EXPECT_THAT(refused({"--axis", "MatMul=1", "--axis", "MatMul=1"}),
              HasSubstr("--axis: 'MatMul' is given twice"));
  EXPECT_THAT(refused({"--axis", "MatMull=1"}), HasSubstr("'MatMull' has no weights"));
  EXPECT_THAT(refused({"--op-types", "MatMull"}),
              HasSubstr("operator 'MatMull' cannot be quantized (did you mean MatMul?); `bertcl "
                        "quantize --help-all` lists those that can"));
  EXPECT_THAT(refused({"--method", "guess"}), AllOf(HasSubstr("guess"), HasSubstr("minmax")));
  EXPECT_THAT(refused({"--method", "percentile", "--percentile", "101"}), HasSubstr("101"));
  EXPECT_THAT(refused({"--percentile", "99.9"}),
              HasSubstr("--percentile has no effect with --method minmax; use --method percentile "
                        "or torch-percentile\n"));
  EXPECT_THAT(refused({"--bins", "64"}),
              HasSubstr("--bins has no effect with --method minmax; use --method "));
  EXPECT_THAT(refused({"--method", "mse", "--moving-average"}),
              HasSubstr("--moving-average has no effect with --method mse; use --method minmax\n"));
  EXPECT_THAT(refused({"--method", "percentile", "--start-bin", "3"}),
              HasSubstr("--start-bin has no effect with --method percentile; use --method mse or "
                        "torch-entropy\n"));
  for (const auto& [option, method] :
       std::vector<std::pair<std::string, std::string>>{{"--stride", "minmax"},
                                                        {"--start-bin", "minmax"},
                                                        {"--quantized-bins", "mse"},
                                                        {"--averaging-constant", "mse"},
                                                        {"--averaged-samples", "entropy"}})
    EXPECT_THAT(refused({"--method", method, option, "1"}),
                HasSubstr(option + " has no effect with --method " + method));
  for (const char* option : {"--averaging-constant", "--averaged-samples"})
    EXPECT_THAT(refused({option, "1"}),
                HasSubstr(option + std::string(" has no effect without --moving-average")));
  EXPECT_THAT(refused({"--activations", "s4"}), HasSubstr("s4"));
  EXPECT_THAT(refused({"--task", "text", "--max-query-length", "8"}),
              HasSubstr("--max-query-length is for --task question-answering, not text"));
  expect_refused({"quantize", kModel, "-o", path("q.onnx"), "--dynamic", "--max-query-length", "8"},
                 {"--max-query-length has no effect here: --dynamic takes no samples"});
  EXPECT_THAT(refused({"--json", path("none/q.json")}),
              AllOf(HasSubstr("--json"), HasSubstr("none: No such file")));
  expect_refused(quantize(path("none/q.onnx")), {"none"});
  expect_refused(quantize(""), {"the path of the output is empty"});
  expect_refused({"quantize", kModel, "-o", kModel, "--data", kCalibration},
                 {"--output would overwrite " + kModel + ", which is read as MODEL"});
  expect_refused({"quantize", write("m.onnx", "words"), "-o", path("q.onnx"), "--data",
                  kCalibration, "--vocab", kVocabulary},
                 {"m.onnx", "not an ONNX file"});
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  expect_refused(quantize(path("pipe")), {"it is a device or a pipe"});
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
  EXPECT_THAT(files(), ElementsAre("m.onnx", "pipe"));
}

}  // namespace
}  // namespace bertcl::tests
