// SPDX-License-Identifier: Apache-2.0
// What lies beside the model of a session.
#include "bertcl/model_settings.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/boundary.hpp"
#include "api/session_impl.hpp"
#include "support/with_code.hpp"
#include "tasks/model_files/model_config.hpp"
#include "text/base/companion_files.hpp"
#include "text/base/json_node.hpp"
#include "text/model_tokenizer.hpp"
#include "text/pad_token_id.hpp"
#include "text/token_names.hpp"

namespace bertcl {
namespace {

ModelSettings settings_of(const ModelInfo& info, const std::filesystem::path& model) {
  ModelSettings settings;
  settings.max_length = info.max_length;
  const bool has_classes = info.task == Task::text_classification ||
                           info.task == Task::token_classification || info.task == Task::unknown;
  if (has_classes) settings.classes = tasks::find_class_names(info.metadata, model).names;
  if (model.empty()) return settings;
  if (const auto declared = tasks::declared_length(model))
    settings.max_length =
        info.max_length > 0 ? std::min<std::int64_t>(info.max_length, *declared) : *declared;
  const auto config = tasks::read_model_config(text::companion_file(model, "config.json"));
  settings.multi_label = config.multi_label;
  settings.is_regression = config.is_regression;
  settings.activation = tasks::read_activation(model);
  settings.vocabulary = text::vocabulary_beside(model);
  const auto tokenizer = text::object_beside(model, "tokenizer_config.json");
  const std::string origin = text::companion_file(model, "tokenizer_config.json").string();
  const text::JsonNode node(tokenizer, origin);
  settings.cleans_up = node.flag("clean_up_tokenization_spaces", false);
  settings.has_token_types = text::has_token_types(node);
  if (!settings.vocabulary.empty())
    settings.truncates_left = text::with_config(settings.vocabulary).cut_left;
  settings.mask_names = text::token_names_beside(model, "mask_token");
  settings.pad_names = text::token_names_beside(model, "pad_token");
  settings.pad_id = text::pad_id_in_config(model);
  return settings;
}

}  // namespace

ModelSettings read_model_settings(const Session& session) {
  return translate_exceptions([&] {
    return with_code(ErrorCode::invalid_file,
                     [&] { return settings_of(session.info(), SessionAccess::file(session)); });
  });
}

}  // namespace bertcl
