// SPDX-License-Identifier: Apache-2.0
// Files of null odds and n-best lists in the form of the official scripts.
#pragma once
#include <filesystem>
#include <span>

#include "squad/predictions.hpp"

namespace bertcl::squad {

/// Writes {id: null odds} for evaluate-v2.0.py --na-prob-file.
void save_null_odds(const std::filesystem::path& path, std::span<const QuestionPrediction> answers);

/// Writes {id: [{text, probability, start_logit, end_logit}]}.
void save_nbest(const std::filesystem::path& path, std::span<const QuestionPrediction> answers);

}  // namespace bertcl::squad
