// SPDX-License-Identifier: Apache-2.0
// Reader of SQuAD files.
#include "squad/dataset.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "bertcl/error.hpp"
#include "text/file.hpp"
#include "text/json_file.hpp"
#include "text/json_node.hpp"

namespace bertcl::squad {
namespace {

using text::JsonNode;

constexpr const char* kForm =
    "a SQuAD file is {\"data\": [{\"paragraphs\": [{\"context\": .., \"qas\": [{\"id\": .., "
    "\"question\": .., \"answers\": [{\"text\": ..}]}]}]}]}";

Answer read_answer(const JsonNode& node) {
  Answer answer;
  answer.text = node.at("text").string();
  if (node.value().contains("answer_start"))
    answer.answer_start = node.at("answer_start").integer();
  return answer;
}

Question read_question(const JsonNode& node, std::size_t context, bool& version_2) {
  Question question;
  question.id = node.at("id").string();
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

}  // namespace

Dataset parse_dataset(std::string_view text, const std::string& origin) {
  const nlohmann::json document = text::parse_json(text, origin);
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
          throw Error(fmt::format("{}: {}.id \"{}\" is already used at {}.id; ids must be unique",
                                  origin, qa.path(), question.id, other->second));
        }
        if (question.answers.empty() && without_answers.empty()) without_answers = qa.path();
        dataset.questions.push_back(std::move(question));
      });
    });
  });
  if (dataset.questions.empty()) throw Error(fmt::format("{}: contains no questions", origin));
  if (!dataset.version_2 && !without_answers.empty()) {
    throw Error(
        fmt::format("{}: {}.answers is empty; only v2.0 files (with is_impossible keys) "
                    "may have questions without an answer",
                    origin, without_answers));
  }
  return dataset;
}

Dataset load_dataset(const std::filesystem::path& path) {
  return parse_dataset(text::read_file(path), path.string());
}

}  // namespace bertcl::squad
