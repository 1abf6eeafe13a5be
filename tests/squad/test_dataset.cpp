// SPDX-License-Identifier: Apache-2.0
// Reading of SQuAD files, and what is said about bad ones.
#include "squad/dataset.hpp"

#include <fmt/format.h>

#include "tests/squad/support.hpp"
#include "tests/support/matchers.hpp"

namespace bertcl::squad {
namespace {

const char* const v1 = R"({"version": "1.1", "data": [
  {"title": "A", "paragraphs": [
    {"context": "The cat sat.", "qas": [
      {"id": "q1", "question": "Who sat?", "answers": [{"text": "The cat", "answer_start": 0},
                                                       {"text": "cat"}]},
      {"id": "q2", "question": "What?", "answers": [{"text": "sat", "answer_start": 8}]}]},
    {"context": "Empty.", "qas": []}]},
  {"paragraphs": [
    {"context": "A dog.", "qas": [
      {"id": "q3", "question": "Who?", "answers": [{"text": "dog", "answer_start": 2}]}]}]}]})";

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::logic_error("no " + from);
  return text.replace(at, from.size(), to);
}

Dataset parse_dataset(const std::string& text, const std::string& name) {
  return squad::parse_dataset({name, text, text::form_of(name, text)});
}

std::string error_for(const std::string& text) {
  return error_of([&] { parse_dataset(text, "file.json"); });
}

TEST(Dataset, KeepsOrderAndContexts) {
  const Dataset dataset = parse_dataset(v1, "file.json");
  EXPECT_FALSE(dataset.version_2);
  ASSERT_EQ(dataset.contexts.size(), 3u);
  ASSERT_EQ(dataset.questions.size(), 3u);
  EXPECT_EQ(dataset.questions[0].id, "q1");
  EXPECT_EQ(dataset.questions[0].text, "Who sat?");
  ASSERT_EQ(dataset.questions[0].answers.size(), 2u);
  EXPECT_EQ(dataset.questions[0].answers[0], "The cat");
  EXPECT_EQ(dataset.questions[1].context, 0u);
  EXPECT_EQ(dataset.context_of(dataset.questions[2]), "A dog.");
}

TEST(Dataset, IdsMayBeNumbers) {
  EXPECT_EQ(parse_dataset(replaced(v1, R"("q3")", "73"), "file.json").questions[2].id, "73");
}

TEST(Dataset, PlacesOfAnswersAreNotRead) {
  for (const char* place : {R"("2")", "null", "-1"})
    EXPECT_EQ(parse_dataset(
                  replaced(v1, R"("answer_start": 2)", R"("answer_start": )" + std::string(place)),
                  "file.json")
                  .questions[2]
                  .answers.at(0),
              "dog");
}

TEST(Dataset, IsImpossibleMakesVersion2) {
  const Dataset dataset =
      parse_dataset(replaced(v1, R"("answers": [{"text": "sat", "answer_start": 8}])",
                             R"("is_impossible": true, "plausible_answers": [], "answers": [])"),
                    "file.json");
  EXPECT_TRUE(dataset.version_2);
  EXPECT_FALSE(dataset.questions[0].is_impossible);
  EXPECT_TRUE(dataset.questions[1].is_impossible);
  EXPECT_TRUE(dataset.questions[1].answers.empty());
}

TEST(Dataset, AMissingKeyIsNamedWithItsPath) {
  EXPECT_THAT(
      error_for(replaced(v1, R"("id": "q2", )", "")),
      AllOf(HasSubstr("file.json"), HasSubstr("data[0].paragraphs[0].qas[1].id is missing")));
  EXPECT_THAT(error_for(replaced(v1, R"("context": "A dog.", )", "")),
              HasSubstr("data[1].paragraphs[0].context is missing"));
  EXPECT_THAT(error_for(replaced(v1, R"("text": "cat")", R"("txt": "cat")")),
              HasSubstr("data[0].paragraphs[0].qas[0].answers[1].text is missing"));
  EXPECT_THAT(error_for("{}"), HasSubstr("data is missing"));
}

TEST(Dataset, AWrongTypeIsNamedWithItsPath) {
  EXPECT_THAT(error_for("[]"), HasSubstr("the file is of type array, expected object"));
  EXPECT_THAT(error_for(R"({"data": {}})"), HasSubstr("data is of type object, expected array"));
  EXPECT_THAT(error_for(replaced(v1, R"("Who?")", "null")),
              HasSubstr("data[1].paragraphs[0].qas[0].question is of type null, expected string"));
  EXPECT_THAT(error_for(replaced(v1, R"("id": "q3")", R"("id": "q3", "is_impossible": 1)")),
              HasSubstr("is_impossible is of type number, expected boolean"));
}

TEST(Dataset, BrokenJsonIsNamedWithLineColumnAndByte) {
  EXPECT_THAT(error_for("{\"data\": [\n  {]}"),
              AllOf(HasSubstr("file.json: invalid JSON"), HasSubstr("line 2, column 4"),
                    HasSubstr("byte 15 of 16")));
  const std::string text = v1;
  EXPECT_EQ(error_for(""), "file.json: invalid JSON: it is empty");
  for (const std::size_t size : {std::size_t{1}, text.size() / 2, text.size() - 1}) {
    EXPECT_THAT(error_for(text.substr(0, size)),
                AllOf(HasSubstr("invalid JSON: unexpected end"),
                      HasSubstr(fmt::format("after {} bytes", size))));
  }
  EXPECT_THAT(error_for(replaced(v1, "dog", "d\xFFg")), HasSubstr("UTF-8"));
}

TEST(Dataset, DataOfAnotherTaskNeedItsName) {
  for (const char* text : {"a fine film\t1\n", "\xEF\xBB\xBFsentence,label\n", " 3"})
    EXPECT_THAT(error_for(text),
                AllOf(HasSubstr("file.json: not a JSON object"), HasSubstr("'task'"),
                      HasSubstr("a SQuAD file is {\"data\"")));
}

TEST(Dataset, SemanticFaultsAreNamed) {
  EXPECT_THAT(error_for(replaced(v1, R"("q3")", R"("q1")")),
              AllOf(HasSubstr("data[1].paragraphs[0].qas[0].id \"q1\""),
                    HasSubstr("data[0].paragraphs[0].qas[0].id")));
  EXPECT_THAT(error_for(replaced(v1, R"([{"text": "dog", "answer_start": 2}])", "[]")),
              HasSubstr("data[1].paragraphs[0].qas[0].answers is empty"));
  EXPECT_THAT(error_for(R"({"data": []})"), HasSubstr("contains no questions"));
}

TEST(Dataset, JsonLinesAreAQuestionEach) {
  const std::string lines =
      R"({"id": "a", "question": "Who sat?", "context": "The cat sat.",
 "answers": {"text": ["The cat", "cat"], "answer_start": [0, 4]}})";
  std::string one = lines;
  std::erase(one, '\n');
  const std::string two =
      one + "\n\n" +
      R"({"question": "What?", "context": "The cat sat.", "answers": [{"text": "sat"}]})";
  const Dataset dataset = parse_dataset(two, "file.jsonl");
  ASSERT_EQ(dataset.questions.size(), 2u);
  EXPECT_FALSE(dataset.version_2);
  EXPECT_EQ(dataset.contexts.size(), 1u) << "a context is kept once";
  EXPECT_EQ(dataset.questions[0].id, "a");
  EXPECT_THAT(dataset.questions[0].answers, ElementsAre("The cat", "cat"));
  EXPECT_EQ(dataset.questions[1].id, "1");
  EXPECT_EQ(dataset.questions[1].answers.at(0), "sat");
  const Dataset second =
      parse_dataset(one + "\n" + R"({"question": "Why?", "context": "c", "answers": {"text": []}})",
                    "file.jsonl");
  EXPECT_TRUE(second.version_2);
  EXPECT_TRUE(second.questions[1].is_impossible);
  EXPECT_THAT(error_for(one + "\n" + one),
              HasSubstr("file.json:2: id \"a\" is already used in line 1"));
  EXPECT_THAT(error_for(one + R"(
{"question": "Why?"})"),
              AllOf(HasSubstr("file.json:2: context is missing"), HasSubstr("each line is")));
}

TEST(Dataset, MissingFilesAreNamed) {
  EXPECT_ERROR(AllOf(HasSubstr("/nowhere/squad.json"), HasSubstr("No such file")),
               load_dataset("/nowhere/squad.json"));
  EXPECT_ERROR(HasSubstr("directory"), load_dataset("/tmp"));
}

struct File {
  const char* path;
  std::size_t questions;
  bool version_2;
};

TEST(Dataset, PublishedFilesAreRead) {
  for (const File& file : {File{"data/squad/dev-v1.1.json", 10570, false},
                           File{"data/squad/dev-v2.0.json", 11873, true},
                           File{"data/squad/train-v1.1-44articles.json", 11877, false},
                           File{"data/squad/squadshifts_amazon_reviews_v1.0.json", 9885, false},
                           File{"data/squad/squadshifts_reddit_v1.0.json", 9803, false},
                           File{"data/squad/xquad.en.json", 1190, false},
                           File{"data/squad/mlqa_dev_en_en.json", 1148, false}}) {
    BERTCL_NEEDS(file.path);
    const Dataset dataset = load_dataset(tests::shared_file(file.path));
    EXPECT_EQ(dataset.questions.size(), file.questions) << file.path;
    EXPECT_EQ(dataset.version_2, file.version_2) << file.path;
  }
}

}  // namespace
}  // namespace bertcl::squad
