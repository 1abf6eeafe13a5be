// SPDX-License-Identifier: Apache-2.0
// Files of null odds and n-best lists in the form of the official scripts.
#include "squad/prediction_files.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "support/pending_file.hpp"

namespace bertcl::squad {
namespace {

using nlohmann::json;

std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// One line per question, in the order of the data set.
template <typename Value>
void save(const std::filesystem::path& path, std::span<const QuestionPrediction> answers,
          const Value& value_of) {
  std::string content;
  for (const auto& [id, prediction] : answers) {
    content += fmt::format("{}\n  {}: {}", content.empty() ? "{" : ",", dump(id),
                           dump(value_of(prediction)));
  }
  write_file(path, (content.empty() ? "{" : content) + "\n}\n");
}

}  // namespace

void save_null_odds(const std::filesystem::path& path,
                    std::span<const QuestionPrediction> answers) {
  save(path, answers,
       [](const Prediction& prediction) { return json(prediction.null_odds.value()); });
}

void save_nbest(const std::filesystem::path& path, std::span<const QuestionPrediction> answers) {
  save(path, answers, [](const Prediction& prediction) {
    json list = json::array();
    for (const NBestEntry& entry : prediction.nbest) {
      list.push_back({{"text", entry.text},
                      {"probability", entry.probability},
                      {"start_logit", entry.start_logit},
                      {"end_logit", entry.end_logit}});
    }
    return list;
  });
}

}  // namespace bertcl::squad
