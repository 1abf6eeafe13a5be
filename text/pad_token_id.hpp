// SPDX-License-Identifier: Apache-2.0
// The token that pads the rows of a batch, by the files of a model.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

#include "text/tokenizer.hpp"

namespace bertcl::text {

/// pad_token_id of the config.json beside a model.
std::optional<std::int64_t> pad_id_in_config(const std::filesystem::path& model);

/// pad_token_id of the config.json beside (companion_file()) a model, else `padding` of its
/// tokenizer.json, else the id of pad_token in its tokenizer_config.json; none where they say
/// nothing, or no vocabulary is there. Throws Error that names the file if it is damaged.
std::optional<std::int64_t> read_pad_token_id(const std::filesystem::path& model);

/// The pad token of a tokenizer, in the order of transformers: the first that is in its vocabulary
/// of pad_token in tokenizer_config.json, special_tokens_map.json and config.json beside the model;
/// else `padding` of the tokenizer.json, then pad_token_id of the config.json; else [PAD] or <pad>.
/// Throws Error that names a file that is damaged. pipelines/base.py does the same.
std::optional<std::int64_t> pad_id_of(const Tokenizer& tokenizer,
                                      const std::filesystem::path& model);

}  // namespace bertcl::text
