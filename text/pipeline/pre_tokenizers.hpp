// SPDX-License-Identifier: Apache-2.0
// The pre-tokenizers of a tokenizer.json: they split the text into words.
#pragma once
#include "text/base/json_node.hpp"
#include "text/pipeline/parts.hpp"

namespace bertcl::text {

/// That of a node "pre_tokenizer". Throws Error by name on a kind that is not supported.
Stage read_pre_tokenizer(const JsonNode& node);

}  // namespace bertcl::text
