// SPDX-License-Identifier: Apache-2.0
// Tokens that the files beside a vocabulary add to it.
#pragma once
#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace bertcl::text {

/// False if none of the files that may is beside the vocabulary.
bool may_add_tokens(const std::filesystem::path& path);

/// Adds tokens to the tokenizer.json `document`, made of the vocabulary `path`. First those of
/// added_tokens_decoder (tokenizer_config.json) or, without it, of added_tokens.json; then the
/// special tokens that tokenizer_config.json names (without added_tokens_decoder also
/// special_tokens_map.json). Ids, and flags but lstrip of <mask>, are those of transformers 5.23.0
/// (`_from_pretrained()` of tokenization_utils_base.py): a token that the vocabulary lacks has the
/// next id. Returns whether that changed the document. Throws Error if a file is damaged or lists
/// another id.
bool add_tokens_beside(const std::filesystem::path& path, nlohmann::json& document);

}  // namespace bertcl::text
