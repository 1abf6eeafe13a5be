// SPDX-License-Identifier: Apache-2.0
// The decoders of a tokenizer.json: they make a text of tokens.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "text/base/json_node.hpp"
#include "text/pipeline/encoding.hpp"

namespace bertcl::text {

/// One decoder rewrites the tokens that the one before it leaves.
using Decoders = std::vector<std::function<void(std::vector<std::string>& tokens)>>;

/// Without the spaces that word pieces leave before English punctuation and contractions:
/// clean_up_tokenization() of transformers.
std::string cleaned_up(std::string text);

/// The decoders of a tokenizer whose file has none.
Decoders decoders_of(Spelling spelling);

/// Those of a node "decoder", as in Hugging Face's tokenizers; none if one of them is of a type
/// that is not supported.
std::optional<Decoders> read_decoders(const JsonNode& node);

/// The text that tokens spell.
std::string decode(const Decoders& decoders, std::vector<std::string> tokens);

}  // namespace bertcl::text
