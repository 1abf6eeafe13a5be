// SPDX-License-Identifier: Apache-2.0
// Files of predictions, null odds and n-best lists, in the form of SQuAD's official scripts.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "squad/predictions.hpp"

namespace bertcl::tasks {

// One line for each item, in UTF-8: what is not, as the name of a file or of a class may be, is
// written as U+FFFD.

/// Writes Results::predictions().
void save_predictions(const std::filesystem::path& path, const nlohmann::ordered_json& predictions);

/// Writes {id: null odds} for evaluate-v2.0.py --na-prob-file.
void save_null_odds(const std::filesystem::path& path,
                    std::span<const squad::QuestionPrediction> answers);

/// Writes {id: [{text, probability, start_logit, end_logit}]}.
void save_nbest(const std::filesystem::path& path,
                std::span<const squad::QuestionPrediction> answers);

}  // namespace bertcl::tasks
