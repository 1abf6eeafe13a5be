// SPDX-License-Identifier: Apache-2.0
// Exact match and F1, as in the official evaluation scripts of SQuAD v1.1 and v2.0.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "squad/dataset.hpp"

namespace bertcl::squad {

/// Answer text of each question id.
using Predictions = std::unordered_map<std::string, std::string>;

/// Score of each question id that grows with the belief that it has no answer.
using NullOdds = std::unordered_map<std::string, double>;

/// The questions with, or without, an answer.
struct SubsetScores {
  double exact = 0.0;
  double f1 = 0.0;
  std::size_t total = 0;
};

/// Best scores over all thresholds on the null odds, and areas under precision-recall curves.
struct ThresholdScores {
  double best_exact = 0.0;
  double best_exact_thresh = 0.0;
  double best_f1 = 0.0;
  double best_f1_thresh = 0.0;
  std::optional<double> pr_exact_ap;  ///< none of the three without answerable questions
  std::optional<double> pr_f1_ap;
  std::optional<double> pr_oracle_ap;
};

/// All figures in percent.
struct Scores {
  double exact_match = 0.0;
  double f1 = 0.0;
  std::size_t total = 0;
  std::optional<SubsetScores> has_answer;     ///< v2.0
  std::optional<SubsetScores> no_answer;      ///< v2.0
  std::optional<ThresholdScores> thresholds;  ///< v2.0 with null odds
  std::vector<std::string> missing;           ///< ids without a prediction

  /// Names of evaluate-v2.0.py ("exact", "f1", "total", "HasAns_f1", "best_f1_thresh", ..) or,
  /// for v1.1, of evaluate-v1.1.py ("exact_match", "f1").
  std::vector<std::pair<std::string, double>> official_metrics() const;
};

/// evaluate-v1.1.py: a missing prediction counts 0.
Scores evaluate_v1(std::span<const Question> questions, const Predictions& predictions);

/// evaluate-v2.0.py: a missing prediction is left out. With null odds also the best thresholds;
/// questions whose null odds exceed `threshold` count as answered by "" (--na-prob-thresh).
Scores evaluate_v2(std::span<const Question> questions, const Predictions& predictions,
                   const NullOdds* null_odds = nullptr, double threshold = 1.0);

/// Lower case, without ASCII punctuation and the articles a, an, the, single spaces.
std::string normalize_answer(std::string_view answer);

double exact_score(std::string_view prediction, std::string_view reference);

/// F1 over the multisets of normalized words; 0 without a common word, also if both are empty.
double f1_score(std::string_view prediction, std::string_view reference);

/// The same as v2.0 has it: 1 if both are empty.
double f1_score_v2(std::string_view prediction, std::string_view reference);

}  // namespace bertcl::squad
