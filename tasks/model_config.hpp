// SPDX-License-Identifier: Apache-2.0
// What lies beside a model, or in its metadata, about its classes.
#pragma once
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bertcl::tasks {

/// Hugging Face's config.json.
struct ModelConfig {
  /// By id2label; none where it has only names that nobody gave (LABEL_0, ..).
  std::vector<std::string> labels;
  /// By problem_type: whether a text may be of several classes.
  std::optional<bool> multi_label;
  bool is_regression = false;  ///< by problem_type: outputs are numbers, not classes
};

/// Empty if there is no such file. Throws Error that names it if it is damaged.
ModelConfig read_model_config(const std::filesystem::path& path);

/// ["O", "B-person"], which finetune.py writes into the metadata of a model. Throws Error that
/// begins with `place` if it is anything else.
std::vector<std::string> parse_class_names(std::string_view json, const std::string& place);

/// Where they stand in the metadata.
inline constexpr const char* kClassNamesKey = "bertcl.classes";

}  // namespace bertcl::tasks
