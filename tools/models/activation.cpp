// SPDX-License-Identifier: Apache-2.0
// The activation that sentence-transformers writes beside a cross-encoder.
#include "tools/models/activation.hpp"

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "support/fail.hpp"
#include "text/companion_files.hpp"
#include "text/file.hpp"
#include "text/json_file.hpp"
#include "text/json_node.hpp"

namespace bertcl::tools {
namespace {

/// The name of the activation that sentence-transformers writes beside a model, or "".
std::string activation_of(const std::filesystem::path& model) {
  const auto member = [&](const char* file, const std::vector<std::string>& path) -> std::string {
    const std::filesystem::path name = text::companion_file(model, file);
    if (!text::is_present(name)) return "";
    const nlohmann::json document = text::read_json(name);
    const std::string place = name.string();
    std::optional<text::JsonNode> node(std::in_place, document, place);
    for (const std::string& key : path)
      if (node) node = node->find(key);
    return node ? node->string() : "";
  };
  for (const std::string& name : {member("config_sentence_transformers.json", {"activation_fn"}),
                                  member("config.json", {"sentence_transformers", "activation_fn"}),
                                  member("config.json", {"sbert_ce_default_activation_function"})})
    if (!name.empty()) return name;
  return "";
}

}  // namespace

bool applies_sigmoid(const std::filesystem::path& model) {
  const std::string name = activation_of(model);
  if (name.empty() || name.ends_with("Sigmoid")) return true;
  if (name.ends_with("Identity")) return false;
  fail(
      "{}: unknown activation {} (choose from Sigmoid, Identity in config.json, or "
      "override it: rerank --sigmoid or --logits, classify --activation)",
      model.string(), name);
}

}  // namespace bertcl::tools
