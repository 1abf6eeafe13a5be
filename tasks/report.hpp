// SPDX-License-Identifier: Apache-2.0
// Reports as JSON: what all of them begin with, and the row of an evaluation.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "opencl/device/device.hpp"
#include "tasks/evaluate.hpp"

namespace bertcl::tasks {

/// The result of a command after the keys
///   schema            "bertcl.COMMAND/1"; the number rises when a key goes or changes its meaning
///   bertcl            version of the program
///   device, driver, platform, platform_version
///                     what ran it; null without `device`
/// Keys of the result with these names are ignored. docs/json.md documents all keys.
nlohmann::ordered_json report_of(std::string_view command,
                                 const std::optional<opencl::DeviceInfo>& device,
                                 const nlohmann::ordered_json& result);

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
