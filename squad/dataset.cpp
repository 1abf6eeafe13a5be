// SPDX-License-Identifier: Apache-2.0
// Reader of SQuAD files: a walk over the JSON that always knows where it stands.
#include "squad/dataset.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "bertcl/error.hpp"
#include "text/file.hpp"
#include "text/json_file.hpp"

namespace bertcl::squad {
namespace {

using nlohmann::json;

/// A JSON value and the way to it.
struct Node {
  const json* value;
  const std::string* origin;
  std::string path;

  [[noreturn]] void fail(const std::string& what) const {
    throw Error(
        fmt::format("{}: {} {}; a SQuAD file is {{\"data\": [{{\"paragraphs\": "
                    "[{{\"context\": .., \"qas\": [{{\"id\": .., \"question\": .., "
                    "\"answers\": [{{\"text\": ..}}]}}]}}]}}]}}",
                    *origin, path.empty() ? "the file" : path, what));
  }
  void expect(bool right, const char* type) const {
    if (!right) fail(fmt::format("is of type {}, expected {}", value->type_name(), type));
  }
  bool has(const char* key) const { return value->is_object() && value->contains(key); }
  Node at(const char* key) const {
    expect(value->is_object(), "object");
    const std::string inner = path.empty() ? key : path + '.' + key;
    const auto found = value->find(key);
    if (found == value->end()) Node{value, origin, inner}.fail("is missing");
    return {&*found, origin, inner};
  }
  template <typename Visit>
  void each(const Visit& visit) const {
    expect(value->is_array(), "array");
    for (std::size_t i = 0; i < value->size(); ++i) {
      visit(Node{&(*value)[i], origin, fmt::format("{}[{}]", path, i)});
    }
  }
  const std::string& string() const {
    expect(value->is_string(), "string");
    return value->get_ref<const std::string&>();
  }
};

Answer read_answer(const Node& node) {
  Answer answer;
  answer.text = node.at("text").string();
  if (node.has("answer_start")) {
    const Node start = node.at("answer_start");
    start.expect(start.value->is_number_integer(), "integer");
    answer.answer_start = start.value->get<std::int64_t>();
  }
  return answer;
}

Question read_question(const Node& node, std::size_t context, bool& version_2) {
  Question question;
  question.id = node.at("id").string();
  question.text = node.at("question").string();
  question.context = context;
  node.at("answers").each(
      [&](const Node& answer) { question.answers.push_back(read_answer(answer)); });
  if (node.has("is_impossible")) {
    const Node flag = node.at("is_impossible");
    flag.expect(flag.value->is_boolean(), "boolean");
    question.is_impossible = flag.value->get<bool>();
    version_2 = true;
  }
  return question;
}

}  // namespace

Dataset parse_dataset(std::string_view text, const std::string& origin) {
  const json document = text::parse_json(text, origin);
  Dataset dataset;
  std::unordered_map<std::string, std::string> path_of_id;
  std::string without_answers;  // path of the first question that has none
  const Node root{&document, &origin, ""};
  root.at("data").each([&](const Node& article) {
    article.at("paragraphs").each([&](const Node& paragraph) {
      dataset.contexts.push_back(paragraph.at("context").string());
      paragraph.at("qas").each([&](const Node& qa) {
        Question question = read_question(qa, dataset.contexts.size() - 1, dataset.version_2);
        const auto [other, is_new] = path_of_id.emplace(question.id, qa.path);
        if (!is_new) {
          throw Error(fmt::format("{}: {}.id \"{}\" stands already at {}.id; ids must be unique",
                                  origin, qa.path, question.id, other->second));
        }
        if (question.answers.empty() && without_answers.empty()) without_answers = qa.path;
        dataset.questions.push_back(std::move(question));
      });
    });
  });
  if (dataset.questions.empty()) throw Error(fmt::format("{}: holds no question", origin));
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
