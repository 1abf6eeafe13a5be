// SPDX-License-Identifier: Apache-2.0
// Reader of SQuAD files.
#include "squad/dataset.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "bertcl/error.hpp"
#include "support/fail.hpp"
#include "support/option_name.hpp"
#include "text/base/json_file.hpp"
#include "text/base/json_node.hpp"

namespace bertcl::squad {
namespace {

using text::JsonNode;

constexpr const char* kForm =
    "a SQuAD file is {\"data\": [{\"paragraphs\": [{\"context\": .., \"qas\": [{\"id\": .., "
    "\"question\": .., \"answers\": [{\"text\": ..}]}]}]}]}";

std::string read_answer(const JsonNode& node) { return node.at("text").string(); }

Question read_question(const JsonNode& node, std::size_t context, bool& version_2) {
  Question question;
  question.id = text::name_of(node.at("id"));
  question.text = node.at("question").string();
  question.context = context;
  node.at("answers").each(
      [&](const JsonNode& answer) { question.answers.push_back(read_answer(answer)); });
  if (node.value().contains("is_impossible")) {
    question.is_impossible = node.at("is_impossible").boolean();
    version_2 = true;
  }
  return question;
}

constexpr const char* kLineForm =
    R"(each line is an object {"question": "..", "context": "..", "answers": {"text": [".."]}})";

/// {"text": [..]}, as Hugging Face's data sets have them, or a list of
/// objects as in a SQuAD file.
std::vector<std::string> read_line_answers(const JsonNode& node) {
  std::vector<std::string> answers;
  if (node.value().is_array()) {
    node.each([&](const JsonNode& answer) { answers.push_back(read_answer(answer)); });
    return answers;
  }
  node.at("text").each([&](const JsonNode& text) { answers.push_back(text.string()); });
  return answers;
}

/// A question a line. It is v2.0 if one of them has no answer.
Dataset parse_lines(const text::DataFile& file) {
  Dataset dataset;
  std::unordered_map<std::string, std::size_t> line_of_id;
  text::each_object(file, kLineForm, [&](const JsonNode& object, std::size_t line) {
    Question question;
    const auto id = object.find("id");
    question.id = id ? text::name_of(*id) : std::to_string(dataset.questions.size());
    question.text = object.at("question").string();
    const std::string& context = object.at("context").string();
    if (dataset.contexts.empty() || dataset.contexts.back() != context)
      dataset.contexts.push_back(context);
    question.context = dataset.contexts.size() - 1;
    question.answers = read_line_answers(object.at("answers"));
    question.is_impossible = question.answers.empty();
    dataset.version_2 = dataset.version_2 || question.is_impossible;
    const auto [other, is_new] = line_of_id.emplace(question.id, line);
    if (!is_new)
      text::fail_at(file, line,
                    fmt::format("id \"{}\" is already used in line {}; ids must be unique",
                                question.id, other->second));
    dataset.questions.push_back(std::move(question));
  });
  return dataset;
}

/// Texts and tables are data of other tasks.
void check_is_json(std::string_view text, const std::string& origin) {
  const std::size_t first = text.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == text.npos || text[first] == '{' || text[first] == '[') return;
  throw Error(fmt::format("{}: not a JSON object; {}; other forms are data of other tasks ({})",
                          origin, kForm, option_name("task")),
              ErrorCode::invalid_file);
}

}  // namespace

Dataset parse_dataset(const text::DataFile& file) {
  if (file.form == text::Form::json_lines) return parse_lines(file);
  const std::string& origin = file.name;
  check_is_json(file.content, origin);
  const nlohmann::json document = text::parse_json(file.content, origin);
  Dataset dataset;
  std::unordered_map<std::string, std::string> path_of_id;
  std::string without_answers;  // path of the first question that has none
  const JsonNode root(document, origin, kForm);
  root.at("data").each([&](const JsonNode& article) {
    article.at("paragraphs").each([&](const JsonNode& paragraph) {
      dataset.contexts.push_back(paragraph.at("context").string());
      paragraph.at("qas").each([&](const JsonNode& qa) {
        Question question = read_question(qa, dataset.contexts.size() - 1, dataset.version_2);
        const auto [other, is_new] = path_of_id.emplace(question.id, qa.path());
        if (!is_new) {
          fail("{}: {}.id \"{}\" is already used at {}.id; ids must be unique", origin, qa.path(),
               question.id, other->second);
        }
        if (question.answers.empty() && without_answers.empty()) without_answers = qa.path();
        dataset.questions.push_back(std::move(question));
      });
    });
  });
  if (dataset.questions.empty()) fail("{}: contains no questions", origin);
  if (!dataset.version_2 && !without_answers.empty()) {
    fail(
        "{}: {}.answers is empty; only v2.0 files (with is_impossible keys) "
        "may have questions without an answer",
        origin, without_answers);
  }
  return dataset;
}

Dataset load_dataset(const std::filesystem::path& path) {
  return parse_dataset(text::read_data(path, {text::Form::squad, text::Form::document}));
}

}  // namespace bertcl::squad
