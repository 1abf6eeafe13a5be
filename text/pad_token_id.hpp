// SPDX-License-Identifier: Apache-2.0
// The token that pads the rows of a batch, by the files of a model.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>

namespace bertcl::text {

/// pad_token_id of the config.json beside (companion_file()) a model, else `padding` of its
/// tokenizer.json, else the id of pad_token in its tokenizer_config.json; none where they say
/// nothing, or no vocabulary is there. Throws Error that names the file if it is damaged.
std::optional<std::int64_t> read_pad_token_id(const std::filesystem::path& model);

}  // namespace bertcl::text
