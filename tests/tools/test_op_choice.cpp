// SPDX-License-Identifier: Apache-2.0
// bertcl quantize --sensitivity, --max-error and --max-drop on a tiny model.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "page_checks.hpp"
#include "program_runner.hpp"
#include "tasks_model.hpp"
#include "tests/quant/tiny_bert.hpp"
#include "tests/support/matchers.hpp"
#include "tools/measure/score_drop.hpp"
#include "tools/measure/sensitivity.hpp"

namespace bertcl::tests {
namespace {

class OpChoiceTest : public FolderTest {
 protected:
  OpChoiceTest() {
    std::ofstream model(path("model.onnx"), std::ios::binary);
    quant::tests::TinyBert bert({.vocabulary = 30522});
    EXPECT_TRUE(bert.builder().model().SerializeToOstream(&model));
    std::filesystem::copy_file(source_file("models/minilm-l6-squad/vocab.txt"), path("vocab.txt"));
  }
  ProgramResult quantize(std::vector<std::string> more) const {
    return run_bertcl(joined(
        {"quantize", path("model.onnx"), "-o", path("q.onnx"), "--force", "--data", kCalibration,
         "--samples", "4", "--json", path("q.json"), "--sensitivity-samples", "2"},
        more));
  }
};

TEST_F(OpChoiceTest, ShowsWhatEachOpCosts) {
  const ProgramResult made = succeeded(quantize({"--sensitivity-plot", path("q.svg")}));
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
  EXPECT_GT(found.at("all_unnormalized"), 0.0);
  EXPECT_EQ(found.at("alone_unnormalized").size(), 1u);
  EXPECT_FALSE(report.contains("max_drop"));

  const std::string picture = read(path("q.svg"));
  EXPECT_THAT(picture, AllOf(StartsWith("<svg "), EndsWith("</svg>\n"),
                             HasSubstr("/qa_outputs/MatMul"), Not(HasSubstr("href"))));
}

// XML is UTF-8 without control characters, and readers refuse what is not.
TEST(SensitivityPlot, IsXmlWhateverTheNamesAre) {
  std::string letters;
  for (int i = 0; i < 25; ++i) letters += "層";
  for (int i = 0; i < 3; ++i) {
    const quant::OpGroup op{letters + "<&>\x01\xff" + std::string(i, 'x'), {0}, {0.1, 0.2}};
    quant::Sensitivity sensitivity;
    sensitivity.ops = {op};
    sensitivity.kinds = {{"qkv", {0}, {0.1, 0.2}}};
    std::vector<quant::QuantizedOp> ops(1);
    ops[0].kind = quant::OpKind::qkv;
    const std::string plot = tools::sensitivity_svg(sensitivity, ops, "a\x02\xe5.onnx");
    EXPECT_THAT(plot, AllOf(HasSubstr("層&lt;&amp;&gt; \uFFFD"), HasSubstr(">...層"),
                            HasSubstr("a \uFFFD.onnx")));
    EXPECT_FALSE(std::ranges::any_of(plot, [](char c) { return c >= 0 && c < ' ' && c != '\n'; }));
    EXPECT_NO_THROW(nlohmann::json(plot).dump()) << "not UTF-8";
    expect_well_formed(plot);
  }
}

TEST_F(OpChoiceTest, LeavesTheFewestOpsForAnError) {
  ASSERT_EQ(quantize({"--sensitivity"}).code, 0);
  const nlohmann::json all = read_json(path("q.json")).at("sensitivity");
  // Less than all of them quantized give, with unnormalized Softmax too.
  const double most =
      90.0 * std::min(all.at("all").get<double>(), all.at("all_unnormalized").get<double>());
  const ProgramResult made = succeeded(quantize({"--max-error", std::to_string(most)}));
  EXPECT_THAT(made.out,
              AllOf(HasSubstr("to keep the error within"), HasSubstr("Error on 2 samples"),
                    HasSubstr("ops in float"), Not(HasSubstr("drop"))));
  const nlohmann::json report = read_json(path("q.json"));
  EXPECT_EQ(report.at("sensitivity").at("ops").size(), 9u) << "as ops were ranked";
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
  const ProgramResult made = succeeded(quantize({"--max-drop", "100", "--drop-samples", "10"}));
  EXPECT_THAT(made.out, AllOf(HasSubstr("met with 0 of 9 ops"), Not(HasSubstr("alone:"))));
  EXPECT_FALSE(read_json(path("q.json")).contains("sensitivity")) << "no op had to be ranked";
  nlohmann::json found = read_json(path("q.json")).at("max_drop");
  EXPECT_EQ(found.at("questions"), 10);
  EXPECT_EQ(found.at("unit"), "F1");
  EXPECT_TRUE(found.at("left_in_float").empty());
  ASSERT_EQ(found.at("steps").size(), 1u);
  EXPECT_EQ(found.at("drop"), found.at("steps")[0].at("drop"));

  succeeded(quantize({"--max-drop", "100", "--drop-data", source_file("data/sample-v2.0.json"),
                      "--drop-samples", "6", "--sensitivity"}));
  EXPECT_TRUE(read_json(path("q.json")).contains("sensitivity")) << "asked for";
  EXPECT_EQ(read_json(path("q.json")).at("max_drop").at("questions"), 6);
}

struct BoundedTask {
  std::string name, data, unit, score;  // of the JSON of eval
  double points = 1.0;                  // of one of it
  std::vector<std::string> labels;
};

TEST_F(OpChoiceTest, KeepsTheScoreOfEveryTaskWithinABound) {
  const std::string model = write("tasks.onnx", model_of_tasks());
  std::string texts, pairs, sentences;
  for (int i = 0; i < 12; ++i) {
    const std::string word = std::string(static_cast<std::size_t>(i % 5 + 1), 'a') + " film";
    texts += word + " of " + std::to_string(i) + "\t" + std::to_string(i % 2) + "\n";
    pairs += word + "," + std::to_string(i * i) + "," + std::to_string(i % 6) + "\n";
    sentences += word + "\tO\nOslo\tB-place\nis\tO\n" + std::to_string(i) + "\tB-place\n\n";
  }
  for (const BoundedTask& task : std::vector<BoundedTask>{
           {"classify", write("d.tsv", texts), "accuracy", "accuracy", 1.0, {}},
           {"similarity", write("d.csv", pairs), "Pearson", "pearson", 100.0, {}},
           {"tag", write("d.conll", sentences), "F1", "f1", 1.0, {"--labels", "O,B-place"}}}) {
    const auto run = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.end(),
                       {"--task", task.name, "--data", task.data, "--json", path("j")});
      arguments.insert(arguments.end(), task.labels.begin(), task.labels.end());
      succeeded(run_bertcl(arguments));
      return read_json(path("j"));
    };
    const auto quantize = [&](const std::vector<std::string>& more) {
      return run(joined({"quantize", model, "-o", path("q.onnx"), "--force", "--samples", "4",
                         "--max-drop", "1000"},
                        more))
          .at("max_drop");
    };
    const auto points = [&](const std::string& file) {
      return task.points * run({"eval", file}).at("models")[0].at(task.score).get<double>();
    };
    EXPECT_EQ(quantize({}).at("questions"), 8) << "those not calibrated on";
    EXPECT_EQ(quantize({"--drop-samples", "5"}).at("questions"), 5);
    const nlohmann::json all = quantize({"--drop-data", task.data});
    EXPECT_EQ(all.at("questions"), 12);
    EXPECT_EQ(all.at("unit"), task.unit);
    EXPECT_NEAR(all.at("float_score"), points(model), 1e-9) << task.name;
    EXPECT_NEAR(all.at("drop"), points(model) - points(path("q.onnx")), 1e-9) << task.name;
  }
}

TEST_F(OpChoiceTest, AScoreThatIsNotDefinedIsRefused) {
  const std::string model = write("tasks.onnx", model_of_tasks());
  const auto drop = [&](const std::string& task, const std::string& data) {
    return refusal(run_bertcl({"quantize", model, "-o", path("q.onnx"), "--task", task, "--data",
                               data, "--samples", "1", "--max-drop", "1"}));
  };
  EXPECT_THAT(drop("similarity", write("d.csv", "a,b,1\nc,d,1\ne,f,1\n")),
              AllOf(HasSubstr("tasks.onnx"), HasSubstr("its Pearson is undefined")));
}

/// An embedding so large that its norm is NaN.
std::string model_without_an_embedding_of(std::int64_t token) {
  onnx::ModelProto model;
  EXPECT_TRUE(model.ParseFromString(model_of_tasks()));
  for (auto& tensor : *model.mutable_graph()->mutable_initializer()) {
    if (tensor.name() != "bert.embeddings.word_embeddings.weight") continue;
    const float large = 3e38f;
    std::memcpy(tensor.mutable_raw_data()->data() + token * tensor.dims(1) * sizeof(float), &large,
                sizeof(float));
  }
  return model.SerializeAsString();
}

TEST_F(OpChoiceTest, AnItemWithoutAScoreIsNamedByItsPlaceInTheFile) {
  const std::string model = write("tasks.onnx", model_without_an_embedding_of(29145));  // zebra
  std::string texts;
  for (int i = 0; i < 12; ++i) texts += i == 7 ? "a zebra\t1\n" : "a horse\t0\n";
  const std::string data = write("d.tsv", texts);
  EXPECT_THAT(refusal(run_bertcl({"quantize", model, "-o", path("q.onnx"), "--task", "classify",
                                  "--data", data, "--samples", "4", "--max-drop", "1"})),
              AllOf(HasSubstr(data + ": the float model returned NaN"),
                    HasSubstr("item 7 of the texts"), Not(HasSubstr("--allow-nonfinite"))));
}

TEST_F(OpChoiceTest, LabelsThatLackAreToldBeforeAnyWork) {
  const std::string model = write("tasks.onnx", model_of_tasks());
  // Data that no reader takes: they are not looked at before.
  const std::string data = write("d.conll", "no tag");
  const auto refused = [&](const std::vector<std::string>& more) {
    return refusal(run_bertcl(joined({"quantize", model, "-o", path("q.onnx"), "--task", "tag",
                                      "--data", data, "--max-drop", "1"},
                                     more)));
  };
  EXPECT_THAT(refused({}), AllOf(HasSubstr(model + ": the tags of the model's classes are unknown"),
                                 HasSubstr("list them in output order with --labels")));
  EXPECT_THAT(refused({"--labels", path("absent.txt")}), HasSubstr("absent.txt"));
  EXPECT_THAT(refused({"--labels", "O,B-x"}), HasSubstr("d.conll")) << "the data are next";
}

/// A pipe that holds a text, as a shell's <(..), for programs that are started while it lives.
class Pipe {
 public:
  explicit Pipe(const std::string& text) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    EXPECT_EQ(::write(ends[1], text.data(), text.size()), std::ssize(text));
    ::close(ends[1]);
    end_ = ends[0];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() { ::close(end_); }
  std::string path() const { return "/dev/fd/" + std::to_string(end_); }

 private:
  int end_ = -1;
};

TEST_F(OpChoiceTest, WhatIsReadTwiceIsNoPipe) {
  const std::string model = write("tasks.onnx", model_of_tasks());
  const std::string texts = "good film\t1\nbad film\t0\n", data = write("d.tsv", texts);
  const auto arguments = [&](const std::string& from, const std::vector<std::string>& more) {
    return joined({"quantize", model, "-o", path("q.onnx"), "--force", "--task", "classify",
                   "--samples", "1", "--data", from},
                  more);
  };
  const Pipe unread(texts);
  for (const std::string& pipe : {unread.path(), std::string("-")}) {
    const std::string twice = pipe + " is read twice with --max-drop; name a file";
    expect_refused(arguments(pipe, {"--max-drop", "1000"}), {"--data: " + twice}, {}, texts);
    expect_refused(arguments(data, {"--max-drop", "1000", "--labels", pipe}),
                   {"--labels: " + twice}, {}, texts);
    expect_refused(arguments(pipe, {"--max-drop", "1000", "--drop-data", pipe}),
                   {"--data: " + twice}, {}, texts);
  }
  succeeded(run_bertcl(arguments("-", {}), {}, texts));
  const Pipe once(texts);
  succeeded(run_bertcl(arguments(once.path(), {})));
  const Pipe calibration(texts), drop(texts);
  succeeded(run_bertcl(
      arguments(calibration.path(), {"--max-drop", "1000", "--drop-data", drop.path()})));
}

TEST_F(OpChoiceTest, RefusesWhatCannotBe) {
  expect_refused(quantize({"--max-drop", "-101", "--drop-samples", "5"}), {"-101", "ops in float"});
  expect_refused(quantize({"--max-error", "0.001", "--sensitivity-plot", path("q.svg")}),
                 {"nothing to quantize", "error within 0.001 %", "of 9 ops in float"});
  expect_refused(quantize({"--max-error", "-1"}),
                 {"--max-error: '-1' is out of range (0 or more)"});
  expect_refused(quantize({"--drop-samples", "5"}), {"--max-drop"});
  expect_refused(quantize({"--max-drop", "1", "--max-error", "1"}), {"excludes"});
  expect_refused({"quantize", path("model.onnx"), "-o", path("q.onnx"), "--data", kCalibration,
                  "--samples", "0", "--max-drop", "1"},
                 {"--drop-data"});
  expect_refused({"quantize", path("model.onnx"), "-o", path("q.onnx"), "--sensitivity",
                  "--read-table", kCalibration},
                 {"--data"});
  EXPECT_THAT(files(), ElementsAre("model.onnx", "vocab.txt"));
}

TEST(OtherItems, AreThoseThatAreNotTaken) {
  EXPECT_THAT(tools::other_items(6, {}, 0), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(tools::other_items(6, {1, 4}, 0), ElementsAre(0, 2, 3, 5));
  EXPECT_THAT(tools::other_items(6, {1, 4}, 2), ElementsAre(0, 3));
  EXPECT_ERROR(HasSubstr("--drop-data"), tools::other_items(6, {0, 1, 2, 3, 4, 5}, 2));
}

TEST(SomeQuestions, AreThoseOfTheIndices) {
  squad::Dataset dataset;
  dataset.version_2 = true;
  dataset.contexts = {"a b"};
  for (int i = 0; i < 6; ++i) dataset.questions.push_back({std::to_string(i), "?", {}, false, 0});
  const squad::Dataset some = tools::some_questions(dataset, {1, 4});
  EXPECT_TRUE(some.version_2);
  ASSERT_EQ(some.questions.size(), 2u);
  EXPECT_EQ(some.questions[1].id, "4");
}

}  // namespace
}  // namespace bertcl::tests
