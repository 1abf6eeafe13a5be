// SPDX-License-Identifier: Apache-2.0
// The page of `bertcl eval --html`: its figures are those of the JSON, its texts are only text.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "page_checks.hpp"
#include "program_runner.hpp"
#include "tasks_model.hpp"
#include "tests/support/matchers.hpp"
#include "tests/support/tokenizer_json.hpp"
#include "tools/report/calibration.hpp"
#include "tools/report/excerpt.hpp"

namespace bertcl::tests {
namespace {

using nlohmann::json;
using tools::ExcerptPart;

std::string text_of(const std::vector<ExcerptPart>& parts) {
  std::string text;
  for (const ExcerptPart& part : parts)
    text += part.in_one && part.in_other ? "{" + part.text + "}"
            : part.in_one                ? "[" + part.text + "]"
            : part.in_other              ? "(" + part.text + ")"
                                         : part.text;
  return text;
}

TEST(ExcerptOfTwo, MarksSpansThatOverlapOrLieApart) {
  const std::string text = "one two three four five six seven eight nine ten";
  using squad::Span;
  EXPECT_EQ(text_of(tools::excerpt_of_two(text, Span{4, 13}, Span{8, 18}, 5)),
            "one [two ]{three}( four) five ...");
  EXPECT_EQ(text_of(tools::excerpt_of_two(text, Span{45, 48}, Span{0, 3}, 6)),
            "(one) two ... nine [ten]");
  EXPECT_EQ(text_of(tools::excerpt_of_two(text, Span{4, 7}, Span{4, 7}, 100)),
            "one {two} three four five six seven eight nine ten");
  EXPECT_EQ(text_of(tools::excerpt_of_two(text, std::nullopt, Span{8, 13}, 5)),
            "... two (three) four ...");
  EXPECT_EQ(text_of(tools::excerpt_of_two("", std::nullopt, std::nullopt)), "");
  EXPECT_EQ(text_of(tools::excerpt_of_two("all of it", std::nullopt, std::nullopt)), "all of it");
}

class EvalPageTest : public FolderTest {
 protected:
  /// A model of random weights that answers questions.
  std::string random_model() {
    quant::tests::TinyBert bert({.vocabulary = 30522});
    return write("random.onnx", bert.builder().model().SerializeAsString());
  }
  ProgramResult eval(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "eval");
    arguments.insert(arguments.end(),
                     {"--vocab", kVocabulary, "--html", path("e.html"), "--json", path("e.json")});
    ProgramResult result = run_bertcl(arguments);
    if (result.code == 0) {
      page_ = read(path("e.html"));
      report_ = read_json(path("e.json"));
      expect_page(page_);
    }
    return result;
  }
  std::string page_;
  json report_;
};

TEST_F(EvalPageTest, FiguresAreThoseOfTheJson) {
  const std::string other = random_model();
  const ProgramResult result =
      succeeded(eval({kModel, "--compare", other, "--data", kData, "--limit", "30"}));
  const json& comparison = report_.at("comparisons").at(0);
  EXPECT_EQ(comparison.at("total"), 30);
  const std::size_t differing = comparison.at("differing").size();
  EXPECT_EQ(comparison.at("equal").get<std::size_t>() + differing, 30u);
  EXPECT_FALSE(report_.at("models")[0].contains("equal_answers"));
  EXPECT_EQ(report_.at("models")[1].at("equal_answers"), comparison.at("equal"));
  EXPECT_THAT(result.out,
              HasSubstr(fmt::format("the same answer to {} of 30 ({:.1f} %)", 30 - differing,
                                    static_cast<double>(30 - differing) / 0.3)));
  ASSERT_GT(differing, 20u) << "the other model knows nothing";
  EXPECT_EQ(count(page_, "<article class=\"card item\">"), differing);
  for (const json& item : comparison.at("differing")) {
    // What is marked as the answer of a model is its answer.
    for (const auto& [of, answer] :
         {std::pair{"one", item.at("answers")[0]}, std::pair{"other", item.at("answers")[1]}}) {
      std::string marked;
      for (const json& part : item.at("excerpt"))
        if (part.at("of") == of || part.at("of") == "both") marked += part.at("text");
      EXPECT_EQ(marked, answer.get<std::string>()) << item.at("question");
    }
  }
  // The groups of lengths are all questions, and their mean is the score.
  for (std::size_t m = 0; m < 2; ++m) {
    double exact = 0, f1 = 0, questions = 0;
    for (const json& group : report_.at("answer_lengths")) {
      const double n = group.at("questions");
      questions += n;
      exact += n * group.at("exact_match")[m].get<double>();
      f1 += n * group.at("f1")[m].get<double>();
    }
    EXPECT_EQ(questions, 30);
    EXPECT_NEAR(f1 / 30, report_.at("models")[m].at("f1").get<double>(), 1e-9);
    EXPECT_NEAR(exact / 30, report_.at("models")[m].at("exact_match").get<double>(), 1e-9);
    char shown[32];
    std::snprintf(shown, sizeof shown, "<td class=\"num\">%.3f</td>", f1 / 30);
    EXPECT_THAT(page_, HasSubstr(shown));
  }
  ASSERT_EQ(report_.at("kernels").size(), 2u);
  for (const json& profile : report_.at("kernels")) EXPECT_FALSE(profile.at("kernels").empty());
  EXPECT_TRUE(report_.at("calibration").empty()) << "both are float";
  EXPECT_THAT(page_, Not(HasSubstr("Calibrated ranges")));
}

TEST_F(EvalPageTest, ModelsOfOneNameAreToldApart) {
  const std::string model = random_model();
  for (const char* folder : {"one", "other"}) {
    std::filesystem::create_directory(path(folder));
    std::filesystem::copy_file(model, path(folder) + "/model.onnx");
  }
  succeeded(eval({path("one/model.onnx"), "--compare", path("other/model.onnx"), "--data", kData,
                  "--limit", "2"}));
  EXPECT_THAT(page_, AllOf(HasSubstr("<title>one/model.onnx, evaluation"),
                           HasSubstr("other/model.onnx</th>")));
  EXPECT_THAT(page_, Not(HasSubstr(">model.onnx<")));
}

// Without a zero point the attribute tells the integers.
TEST_F(EvalPageTest, ARangeIsOfTheTypeThatTheNodeNames) {
  quant::tests::GraphBuilder g(21, 10);
  g.input("x", {4});
  g.weight("scale", {}, {0.5F});
  g.node("QuantizeLinear", {"x", "scale"}, "q",
         {{"output_dtype", std::int64_t{onnx::TensorProto::INT8}}});
  g.node("DequantizeLinear", {"q", "scale"}, "y");
  g.node("QuantizeLinear", {"y", "scale"}, "r");
  const auto ranges = tools::calibrated_ranges(write("m.onnx", g.model().SerializeAsString()));
  ASSERT_EQ(ranges.size(), 2u);
  EXPECT_EQ(ranges[0].type, ir::DType::i8);
  EXPECT_EQ(ranges[0].low, -64);
  EXPECT_EQ(ranges[0].high, 63.5);
  EXPECT_EQ(ranges[1].type, ir::DType::u8);
}

TEST_F(EvalPageTest, RangesAreThoseOfTheQuantizedFile) {
  const std::string model = random_model();
  succeeded(run_bertcl({"quantize", model, "-o", path("int8.onnx"), "--data", kCalibration,
                        "--vocab", kVocabulary, "--samples", "2", "--json", path("q.json")}));
  succeeded(eval({path("int8.onnx"), "--compare", model, "--data", kData, "--limit", "4"}));
  ASSERT_EQ(report_.at("calibration").size(), 1u);
  const json& ranges = report_.at("calibration")[0].at("tensors");
  const json quantizer = read_json(path("q.json"));
  std::size_t found = 0;
  for (const json& tensor : quantizer.at("tensors")) {
    for (const json& range : ranges) {
      if (range.at("tensor") != tensor.at("tensor")) continue;
      ++found;
      EXPECT_FLOAT_EQ(range.at("scale").get<float>(), tensor.at("scale").get<float>());
      EXPECT_EQ(range.at("zero_point"), tensor.at("zero_point"));
      EXPECT_LE(range.at("low").get<double>(), 0.0);
    }
  }
  EXPECT_GE(found, 6u) << "operands of the linears";
  for (const json& range : ranges) EXPECT_THAT(page_, HasSubstr(range.at("tensor")));
  EXPECT_THAT(page_, HasSubstr("<span class=\"title\">layer 0</span>"));
}

TEST_F(EvalPageTest, TheSameModelTwiceDiffersInNothing) {
  succeeded(eval({kModel, "--compare", kModel, "--data", kData, "--limit", "1"}));
  EXPECT_THAT(page_, HasSubstr("None differs."));
  EXPECT_EQ(count(page_, "<article"), 0u);
  EXPECT_EQ(report_.at("comparisons")[0].at("equal"), 1);
}

TEST_F(EvalPageTest, OneModelHasNothingToBeComparedWith) {
  succeeded(eval({kModel, "--data", kData, "--limit", "2"}));
  EXPECT_TRUE(report_.at("comparisons").empty());
  EXPECT_THAT(page_, Not(HasSubstr("Answers that differ")));
}

TEST_F(EvalPageTest, QuestionsAndContextsAreText) {
  const std::string hostile = "</p><script>alert('x')</script> & {{head}} \\u0001";
  const std::string data = write(
      "h.json", R"({"data": [{"paragraphs": [{"context": ")" + hostile +
                    R"( and Ann fell", "qas": [{"id": "1", "question": "Who <b>fell</b>? )" +
                    hostile + R"(", "answers": [{"text": "Ann", "answer_start": 49}]}]}]}]})");
  succeeded(run_bertcl({"eval", kModel, "--compare", random_model(), "--vocab", kVocabulary,
                        "--data", data, "--html", path("e.html")}));
  const std::string page = read(path("e.html"));
  expect_well_formed(page);
  EXPECT_THAT(page, HasSubstr("Who &lt;b&gt;fell&lt;/b&gt;? &lt;/p&gt;&lt;script&gt;"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
  EXPECT_THAT(page, HasSubstr("{{head}}")) << "a question is not part of the template";
  EXPECT_EQ(page.find('\x01'), std::string::npos);
}

TEST_F(EvalPageTest, OtherTasksShowTheirMetricAndWhatDiffers) {
  const std::string model = write("tasks.onnx", model_of_tasks());
  const std::string data =
      write("s.tsv", "sentence\tlabel\na good film\t1\na bad film\t0\nit is what it is\t1\n");
  succeeded(eval({model, "--compare", model, "--task", "classify", "--data", data}));
  EXPECT_EQ(report_.at("comparisons")[0].at("equal"), 3);
  EXPECT_TRUE(report_.at("answer_lengths").empty());
  EXPECT_THAT(page_, HasSubstr("accuracy"));
  EXPECT_THAT(page_, Not(HasSubstr("F1 by the length")));
}

// The ids with which kernels are timed are random.
TEST_F(EvalPageTest, TokensThatWereAddedBeyondTheTableAreNotTimed) {
  nlohmann::json tokenizer = bert_tokenizer_json({{"good", 4}, {"bad", 5}});
  for (int id = 6; id < 200; ++id)
    tokenizer["added_tokens"].push_back({{"id", id}, {"content", "<" + std::to_string(id) + ">"}});
  succeeded(run_bertcl({"eval", write("m.onnx", model_of_tasks(6)), "--task", "classify", "--data",
                        write("s.tsv", "good\t1\nbad\t0\n"), "--vocab",
                        write("tokenizer.json", tokenizer.dump()), "--html", path("e.html")}));
  EXPECT_THAT(read(path("e.html")), HasSubstr("accuracy"));
}

TEST_F(EvalPageTest, ACorrelationThatIsUndefinedIsCalledSo) {
  const std::string model = write("tasks.onnx", model_of_tasks());
  const ProgramResult result =
      succeeded(eval({model, "--compare", model, "--task", "similarity", "--data",
                      write("s.csv", "one,two,3\nthree,four,3\n")}));
  EXPECT_TRUE(report_.at("models")[0].at("pearson").is_null());
  EXPECT_THAT(result.out, AllOf(HasSubstr("Pearson undefined"), Not(HasSubstr("nan"))));
  EXPECT_THAT(page_, AllOf(HasSubstr("undefined against fp32"), Not(HasSubstr("nan"))));
}

TEST_F(EvalPageTest, AFolderThatIsAbsentIsNamedBeforeTheWork) {
  expect_refused({"eval", kModel, "--data", kData, "--html", path("none/e.html")}, {"none"});
}

}  // namespace
}  // namespace bertcl::tests
