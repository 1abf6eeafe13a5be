// SPDX-License-Identifier: Apache-2.0
// What a tokenizer.json puts around the tokens of texts, and how it trims their offsets.
#pragma once
#include <vector>

#include "text/base/json_node.hpp"
#include "text/pipeline/special_tokens.hpp"

namespace bertcl::text {

struct PostProcessor {
  SpecialTokens special;
  /// Each entry takes spaces off the ends of tokens; it tells whether the space before the first
  /// word was added by the pre-tokenizer, so that there is none in the text.
  std::vector<bool> trims;
};

/// Throws Error by name on a kind or a template that is not supported.
PostProcessor read_post_processor(const JsonNode& node);

}  // namespace bertcl::text
