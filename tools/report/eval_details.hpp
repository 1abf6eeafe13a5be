// SPDX-License-Identifier: Apache-2.0
// What the page of `bertcl eval --html` shows beside scores and times.
#pragma once
#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tools/report/eval_report.hpp"

namespace bertcl::tools {

/// A question of SQuAD. The texts live as long as the data set.
struct ItemText {
  std::string_view question, context;
  std::vector<std::string> references;  ///< right answers; none where there is no answer
};
using ItemTexts = std::function<ItemText(std::size_t item)>;

/// For each model after the first: how many answers are the same, and each that is not, with the
/// text around both. `texts` is empty for tasks without questions. Predictions that are numbers
/// come by their distance, the largest first; others stay in the order of the data.
nlohmann::ordered_json comparisons_json(const std::vector<EvaluatedModel>& models,
                                        const ItemTexts& texts);

/// EM and F1 of each model by the words of the first right answer; empty for other tasks. The
/// scores of all questions are the mean of these, weighted by their questions.
nlohmann::ordered_json answer_lengths_json(const std::vector<EvaluatedModel>& models,
                                           const ItemTexts& texts);

/// Kernels of each model for the batch that was profiled.
nlohmann::ordered_json kernels_json(const std::vector<EvaluatedModel>& models);

/// The page; `report` is the JSON of the command with "comparisons", "answer_lengths", "kernels"
/// and "calibration".
std::string eval_page(const std::vector<EvaluatedModel>& models, const std::string& head,
                      const nlohmann::ordered_json& report);

}  // namespace bertcl::tools
