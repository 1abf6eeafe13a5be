// SPDX-License-Identifier: Apache-2.0
// Scores and times of models side by side, as table and JSON.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "squad/features.hpp"
#include "tasks/report.hpp"
#include "tools/measure/kernel_profile.hpp"

namespace bertcl::tools {

/// A score, with its title in the table.
struct Score {
  std::string title;
  double value = 0.0;
  int digits = 3;
  bool compared = false;  ///< stands in the line that compares two models
};

/// A score, or a difference of two with its sign; "undefined" for NaN, as of a correlation with
/// what is constant.
std::string score_text(double value, int digits);
std::string difference_text(double value, int digits);

/// What a model made of one question or text, and what that is worth.
struct ItemResult {
  std::string id;
  std::string prediction;           ///< the answer, label, index or score; of a list its JSON
  std::vector<std::string> parts;   ///< of a list
  std::optional<double> number;     ///< of a score
  std::optional<squad::Span> span;  ///< of an answer in its context
  std::optional<double> exact, f1;  ///< of an answer, in percent
};

struct EvaluatedModel : tasks::EvaluationRow {
  std::vector<Score> scores;                ///< the same titles for all models
  std::size_t max_length = 0;               ///< tokens of the longest sequence that was made
  std::vector<std::vector<float>> vectors;  ///< of the texts, of a model that gives vectors
  /// Cosines of these with those of the first model, which has none.
  std::optional<double> mean_cosine, min_cosine;
  std::vector<ItemResult> items;  ///< in the order of the data; kept where models are compared
  /// Items with the prediction of the first model, which has none; none where these are numbers.
  std::optional<std::size_t> equal_answers;
  // For the page alone.
  std::vector<KernelTime> kernels;  ///< the slowest first, for a batch of the size below
  std::int64_t profiled_batch = 0, profiled_seq = 0;
};

/// A row of the table: a score or a cost, with a cell for each model.
struct TableRow {
  std::string title;
  std::vector<std::string> cells;
};
std::vector<TableRow> table_rows(const std::vector<EvaluatedModel>& models);

/// Compares the predictions and the vectors of each model with those of the first.
void compare_with_first(std::vector<EvaluatedModel>& models);

/// The names of the files, with as many of their folders as tell them apart.
std::vector<std::string> short_names(const std::vector<std::filesystem::path>& paths);

/// A table with one column for each model: scores have few digits, paths are long. Then how the
/// first differs from each other one. `head` says what was measured, on which device.
void print_evaluation(const std::vector<EvaluatedModel>& models, const std::string& head);

/// An object for each model. A value that is not finite becomes null.
nlohmann::ordered_json to_json(const std::vector<EvaluatedModel>& models);

}  // namespace bertcl::tools
