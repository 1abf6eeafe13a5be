// SPDX-License-Identifier: Apache-2.0
// Files of predictions, null odds and n-best lists, in the form of SQuAD's official scripts.
#include "tasks/prediction_files.hpp"

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "support/json_text.hpp"
#include "support/pending_file.hpp"

namespace bertcl::tasks {
namespace {

using nlohmann::json;

/// `items` are pairs of an id and what `value_of` makes the value of.
template <typename Items, typename ValueOf>
void save(const std::filesystem::path& path, const Items& items, const ValueOf& value_of) {
  std::string content;
  for (const auto& [id, item] : items)
    content += fmt::format("{}\n  {}: {}", content.empty() ? "{" : ",", json_text(json(id)),
                           json_text(value_of(item)));
  write_file(path, (content.empty() ? "{" : content) + "\n}\n");
}

}  // namespace

void save_predictions(const std::filesystem::path& path,
                      const nlohmann::ordered_json& predictions) {
  save(path, predictions.items(), std::identity());
}

void save_null_odds(const std::filesystem::path& path,
                    std::span<const squad::QuestionPrediction> answers) {
  save(path, answers,
       [](const squad::Prediction& prediction) { return json(prediction.null_odds.value()); });
}

void save_nbest(const std::filesystem::path& path,
                std::span<const squad::QuestionPrediction> answers) {
  save(path, answers, [](const squad::Prediction& prediction) {
    json list = json::array();
    for (const squad::NBestEntry& entry : prediction.nbest) {
      list.push_back({{"text", entry.text},
                      {"probability", entry.probability},
                      {"start_logit", entry.start_logit},
                      {"end_logit", entry.end_logit}});
    }
    return list;
  });
}

}  // namespace bertcl::tasks
