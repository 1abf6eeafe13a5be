// SPDX-License-Identifier: Apache-2.0
// Texts, questions and data from standard input: lines, and JSON lines.
#include "npz/npz.hpp"
#include "program_runner.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::tests {
namespace {

using ir::Tensor;

using StandardInputTest = FolderTest;

TEST_F(StandardInputTest, HoldsDataToEvaluate) {
  const std::string lines =
      R"({"id": "a", "question": "Who lives in Oslo?", "context": "Ada lives in Oslo.",)"
      R"( "answers": {"text": ["Ada"], "answer_start": [0]}})"
      "\n";
  const nlohmann::json json = json_of(run_bertcl(
      {"eval", kModel, "--data", "-", "--predictions", path("p.json"), "--json", "-"}, {}, lines));
  EXPECT_EQ(json.at("models").at(0).at("exact_match"), 100.0);
  EXPECT_EQ(read_json(path("p.json")), nlohmann::json({{"a", "Ada"}}));
  EXPECT_THAT(succeeded(run_bertcl({"eval", kModel, "--data", "-"}, {}, lines)).out,
              StartsWith("1 question of standard input on "));
  expect_refused({"eval", kModel, "--data", "-"}, {"standard input:2: "}, {}, lines + "{}\n");
  expect_refused({"eval", kModel, "--data", "-", "--task", "classify", "--labels", "a,b"},
                 {"standard input:2: 'bad'"}, {}, "good\ta\nbad\n");
  expect_refused({"eval", kModel, "--data", "-", "--task", "classify", "--labels", "a,b"},
                 {"standard input:1: 3 columns, expected 2"}, {}, "1\tgood\ta\n");
  expect_refused({"eval", kModel, "--data", "-", "--task", "classify", "--labels", "-"},
                 {"--data and --labels both read standard input"}, {}, "good\ta\n");
}

TEST_F(StandardInputTest, HoldsTextsToRun) {
  const std::string objects =
      "{\"text\": \"Who?\"}\n"
      R"({"text": "Who lives in Oslo?", "text_pair": "Ada does.", "id": "x"})"
      "\n";
  const auto found = json_lines(run_bertcl({"run", kModel}, {}, objects));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_FALSE(found[0].contains("id"));
  EXPECT_EQ(found[1].at("id"), "x");
  EXPECT_EQ(found[0].at("tokens"), nlohmann::json({"[CLS]", "who", "?", "[SEP]"}));
  EXPECT_EQ(found[1].at("tokens").size(), 11u);
  EXPECT_EQ(found[0].at("outputs").at("start_logits").size(), 4u) << "one for each token";

  // The same as that of its ids: [CLS] who ? [SEP].
  npz::save(path("x.npz"),
            {{"input_ids", Tensor::of<std::int64_t>({1, 4}, {101, 2040, 1029, 102})}});
  run_bertcl({"run", kModel, "--inputs", path("x.npz"), "--outputs", path("y.npz")});
  const Tensor expected = npz::load(path("y.npz")).at("start_logits");
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(found[0]["outputs"]["start_logits"][i].get<float>(), expected.as<float>()[i], 1e-3);

  // Plain lines, and arrays that are filled up.
  const nlohmann::json json =
      json_of(run_bertcl({"run", kModel, write("t.txt", "Who?\nWho lives in Oslo?\n"), "--outputs",
                          path("z.npz"), "--json", "-"}));
  EXPECT_EQ(json.at("texts"), 2);
  EXPECT_EQ(json.at("tokens"), 4 + 7);
  EXPECT_EQ(json.at("outputs").at(0).at("shape"), nlohmann::json({2, 7}));
  const Tensor stacked = npz::load(path("z.npz")).at("start_logits");
  EXPECT_THAT(stacked.shape(), ElementsAre(2, 7));
  for (std::size_t i = 0; i < 7; ++i)
    EXPECT_NEAR(stacked.as<float>()[i], i < 4 ? expected.as<float>()[i] : 0.0F, 1e-3);
}

TEST_F(StandardInputTest, TextsThatCannotBeReadAreNamedByTheirLine) {
  const auto refused = [](const std::string& input) {
    return refusal(run_bertcl({"run", kModel}, {}, input));
  };
  EXPECT_THAT(refused("{\"text\": \"a\"}\n{\"id\": \"x\"}\n"),
              HasSubstr("standard input:2: text is missing"));
  EXPECT_THAT(refused("one\ncaf\xe9\n"), HasSubstr("standard input:2: invalid UTF-8"));
  EXPECT_THAT(refused(""), HasSubstr("standard input: contains no text"));
  expect_refused({"run", kModel, "--json", "-"}, {"would share standard output"}, {}, "one\n");
  expect_refused({"run", kModel, "--inputs", path("x.npz")}, {"--outputs"});
  const std::string binary = write("binary", std::string("\x08\x0a\0\xff", 4));
  for (const char* command : {"run", "embed", "tag"})
    expect_refused({command, kModel, binary},
                   {binary + ":2: invalid UTF-8 at byte 3 of 4; expected UTF-8 text"});
  expect_refused({"run", kModel, write("x.npz", "PK\xff")},
                 {"x.npz: texts are expected; give arrays with --inputs"});
}

TEST_F(StandardInputTest, AFailedReadIsNoEnd) {
  for (const std::string& command : {"embed " + kModel + " -", "answer " + kModel}) {
    // Folders can be opened and not read.
    FILE* pipe = popen((built_file("bertcl").string() + " " + command + " </ 2>&1").c_str(), "r");
    ASSERT_TRUE(pipe);
    std::string out(256, '\0');
    out.resize(std::fread(out.data(), 1, out.size(), pipe));
    EXPECT_NE(pclose(pipe), 0);
    EXPECT_EQ(out, "bertcl: standard input: cannot read: Is a directory\n");
  }
}

TEST_F(StandardInputTest, JsonArraysAreRefused) {
  const std::string array = "[\n {\"text\": \"a\", \"query\": \"b\"}\n]\n";
  const std::string remedy = "is a JSON array; write one object a line (jq -c '.[]' FILE)";
  for (const char* command : {"run", "classify", "tag", "fill-mask", "rerank", "embed"})
    expect_refused({command, kModel, "-"}, {"standard input: " + remedy}, {}, array);
  expect_refused({"similarity", kModel, write("a.json", array)}, {"a.json: " + remedy});
  expect_refused({"eval", kModel, "--data", "-"}, {"standard input: " + remedy}, {}, array);
  expect_refused({"quantize", kModel, "-o", path("q.onnx"), "--task", "fill-mask", "--data",
                  write("a.txt", array)},
                 {"a.txt: " + remedy});
  expect_refused({"eval", kModel, "--data", write("a.json", array)}, {"a.json: " + remedy});
}

TEST_F(StandardInputTest, HoldsTheTextOfOneQuestion) {
  const std::vector<std::string> ask = {"answer", "--context", "-"};
  const auto asked = joined(ask, {"-q", "Where does she live?"});
  const ProgramResult text = succeeded(run_bertcl(asked, {}, "Ada lives\nin Oslo.\n"));
  EXPECT_THAT(text.out, AllOf(StartsWith("Oslo\n"), Not(HasSubstr("built-in"))));
  expect_refused(asked, {"standard input:2: invalid UTF-8"}, {}, "Ada lives\nin \xd8.\n");
  expect_refused(ask, {"--context - needs -q"}, {}, "Where does she live?\n");
}

TEST_F(StandardInputTest, AnswersSayWhichTextIsAsked) {
  const std::string note = ", in the built-in text about OpenCL\n";
  const std::string own = write("t.txt", "The Khronos Group maintains OpenCL.");
  const std::vector<std::string> ask = {"answer", "-q", "Who maintains OpenCL?"};
  EXPECT_THAT(succeeded(run_bertcl(ask)).out, HasSubstr(note));
  EXPECT_THAT(
      succeeded(run_bertcl(joined(ask, {"--may-be-absent", "--null-threshold", "-99"}))).out,
      StartsWith("No answer in the built-in text about OpenCL (null odds"));
  EXPECT_THAT(succeeded(run_bertcl(joined(ask, {"--context", own}))).out,
              AllOf(HasSubstr("score"), Not(HasSubstr("built-in"))));
  const std::string out = succeeded(run_bertcl({"answer"}, {},
                                               "Who maintains OpenCL?\n"
                                               R"({"question": "Who?", "context": "Ada."})"
                                               "\n"))
                              .out;
  EXPECT_THAT(out, HasSubstr(note));
  EXPECT_EQ(out.find(note), out.rfind(note)) << "not of a context of its own";
  for (const char* array : {"[\n{\"question\": \"Who?\"}]\n", "[{\"question\": \"Who?\"}]\n"})
    expect_refused({"answer"}, {"standard input:1: is a JSON array; write one question a line"}, {},
                   array);
}

TEST_F(StandardInputTest, LongQuestionsAreTruncatedWithAWarning) {
  std::string question = "Who";
  for (int i = 0; i < 70; ++i) question += " who";
  const std::string warning = "truncated the question from 71 to 64 tokens\n";
  EXPECT_EQ(run_bertcl({"answer", "-q", question}).err, "bertcl: " + warning);
  const ProgramResult lines = run_bertcl({"answer", "--json", "-"}, {}, "Who?\n" + question + "\n");
  EXPECT_EQ(lines.err, "bertcl: standard input:2: " + warning);
  const nlohmann::json answers = json_of(lines).at("answers");
  EXPECT_EQ(answers.at(0).at("question_truncated"), false);
  EXPECT_EQ(answers.at(1).at("question_truncated"), true);
}

TEST_F(StandardInputTest, HoldsQuestions) {
  const std::string lines =
      "Who maintains OpenCL?\n\n"
      R"({"question": "Where does she live?", "context": "Ada lives in Oslo."})"
      "\n";
  const ProgramResult text = succeeded(run_bertcl({"answer"}, {}, lines));
  EXPECT_THAT(text.out, AllOf(HasSubstr("? Who maintains OpenCL?\nKhronos Group\n"),
                              HasSubstr("? Where does she live?\nOslo\n")));
  const nlohmann::json answers =
      json_of(run_bertcl({"answer", "--json", "-"}, {}, lines)).at("answers");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].at("answer"), "Khronos Group");
  EXPECT_EQ(answers[1].at("answer"), "Oslo");
  EXPECT_EQ(answers[1].at("answer_start"), 13);
  const auto refused = [](const std::string& input) {
    return run_bertcl({"answer", "--json", "-"}, {}, input).err;
  };
  EXPECT_THAT(refused("Who?\n{\"context\": \"a\"}\n"),
              HasSubstr("bertcl: standard input:2: question is missing; a line is a question"));
  EXPECT_THAT(refused(R"({"question": "Who?", "contxt": "a"})"),
              HasSubstr("standard input:1: unknown member 'contxt' (did you mean context?); a "
                        "line is a question"));
  EXPECT_EQ(refused(R"({"id": "1", "question": "Who?", "context": "Ada.", "answers": {},)"
                    R"( "is_impossible": true, "plausible_answers": []})"),
            "");
  for (const char* nothing : {"", "\n \n"})
    EXPECT_EQ(refused(nothing), "bertcl: standard input: contains no question; each line is one\n");
  EXPECT_THAT(refused("\n\n{\"question\": \n"), HasSubstr("standard input:3: invalid JSON"));
  EXPECT_THAT(refused("Who?\ncaf\xe9\n"), HasSubstr("standard input:2: invalid UTF-8"));
}

TEST_F(StandardInputTest, MarksOfWindowsAreNoPartOfAQuestion) {
  const std::string lines = "\xEF\xBB\xBFWho maintains OpenCL?\r\nWhat?\r\n";
  const nlohmann::json answers =
      json_of(run_bertcl({"answer", "--json", "-"}, {}, lines)).at("answers");
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].at("question"), "Who maintains OpenCL?");
  EXPECT_EQ(answers[1].at("question"), "What?");
}

}  // namespace
}  // namespace bertcl::tests
