// SPDX-License-Identifier: Apache-2.0
// What lies beside a model, or in its metadata, about its classes and its longest text.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/base/json_node.hpp"

namespace bertcl::tasks {

/// Hugging Face's config.json, without the names of classes.
struct ModelConfig {
  /// Whether, by problem_type, a text may be of several classes.
  std::optional<bool> multi_label;
  bool is_regression = false;  ///< by problem_type: outputs are numbers, not classes
  /// Tokens by max_position_embeddings, without the positions of padding of RoBERTa and the like.
  std::optional<int> positions;
};

/// Empty if there is no such file. Throws Error that names it if it is damaged.
ModelConfig read_model_config(const std::filesystem::path& path);

/// Names of classes by id2label of a config.json, numbers as text; none where it has only names
/// that nobody gave (LABEL_0, ..), or there is no such file. Throws Error that names it if it is
/// damaged.
std::vector<std::string> read_labels(const std::filesystem::path& path);

/// A number of tokens; none where it is so large that it stands for no limit. Throws Error that
/// names it if it is not one.
std::optional<int> read_length(const text::JsonNode& node);

/// Tokens of the longest text, as model_max_length of tokenizer_config.json and config.json beside
/// a model say, whichever is less; none where both are silent. Throws Error as read_length().
std::optional<int> declared_length(const std::filesystem::path& model);

/// Tokens of a text at most, by the `limit` that files or options set, for a model that takes
/// `longest` (0: any number); 512 where nothing sets one.
template <class T>
T longest_text(std::optional<T> limit, std::int64_t longest) {
  if (longest <= 0) return limit.value_or(512);
  return std::min(static_cast<T>(longest), limit.value_or(static_cast<T>(longest)));
}

/// Throws Error if sequences of `max_length` tokens are too long for such a model.
void check_length(std::int64_t max_length, std::int64_t longest);

/// The activation that sentence-transformers writes beside a model that scores pairs, such as
/// "torch.nn.modules.linear.Identity"; "" where nothing tells. Throws Error that names a damaged
/// file.
std::string read_activation(const std::filesystem::path& model);

struct ClassNames {
  std::vector<std::string> names;  ///< in their order; may be empty
  std::filesystem::path origin;    ///< the file that has them
};

/// Names of the classes of a model: those of its metadata, else the labels of the config.json
/// beside `model`, its file ("": a model in memory, which has no config.json). Throws Error if
/// either is damaged.
ClassNames find_class_names(const std::map<std::string, std::string>& metadata,
                            const std::filesystem::path& model);

}  // namespace bertcl::tasks
