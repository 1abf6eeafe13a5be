// SPDX-License-Identifier: Apache-2.0
// An evaluation in reports: the titles of its metrics, and its row.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tasks/evaluate.hpp"

namespace bertcl::tasks {

/// "Pearson" of the metric "pearson".
std::string metric_title(const std::string& name);

/// The scores and costs of one model.
struct EvaluationRow {
  std::filesystem::path path;
  std::string precision;
  std::uintmax_t bytes = 0;
  /// Keys of the JSON, before and after the times.
  std::vector<std::pair<std::string, double>> metrics, more_metrics;
  std::size_t total = 0;     ///< questions, texts
  std::size_t features = 0;  ///< sequences that the model read
  std::size_t tokens = 0, tokens_padded = 0;
  double total_seconds = 0.0, model_seconds = 0.0;
  std::optional<std::size_t> truncated;  ///< texts that were longer; none where nothing is cut

  /// Sets all but the model's path, precision and size.
  void set_results(const Evaluation& evaluation);
  double tokens_per_second() const;
};

/// A value that is not finite becomes null.
nlohmann::ordered_json to_json(const EvaluationRow& row);

}  // namespace bertcl::tasks
