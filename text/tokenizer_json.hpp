// SPDX-License-Identifier: Apache-2.0
// tokenizer.json of Hugging Face's tokenizers.
#pragma once
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "text/tokenizer.hpp"

namespace bertcl::text {

/// The hint in messages about tokenizers that are not supported.
inline constexpr const char* kTokenizerHint =
    "supported are WordPiece, BPE and Unigram as docs/models.md lists them. Other models run on "
    "token ids: bertcl run, verify, bench and inspect need no vocabulary";

/// Gives each BertNormalizer of a document what the options set, and a document of BERT's parts
/// without a post_processor that of BERT, unless the options add nothing. Returns whether that
/// changed it.
bool overrule(nlohmann::json& document, const TokenizerOptions& options);

/// Reads model, normalizer, pre_tokenizer, post_processor, decoder, added_tokens and truncation;
/// padding does not matter here, nor a decoder of a type that is not supported. Calls
/// overrule(). Throws Error with `origin` and the place: a part of a type that is not
/// supported, or damage.
std::shared_ptr<const Pipeline> make_pipeline(nlohmann::json document, const std::string& origin,
                                              const TokenizerOptions& options = {});

}  // namespace bertcl::text
