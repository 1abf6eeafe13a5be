// SPDX-License-Identifier: Apache-2.0
// tokenizer.json of Hugging Face's tokenizers, for BERT's WordPiece only.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"

namespace bertcl::text {

/// The hint in messages about other tokenizers.
inline constexpr const char* kWordPieceOnly =
    "only WordPiece tokenizers are supported (BERT, DistilBERT, ELECTRA, MiniLM). Other models run "
    "on token ids: bertcl run, verify, bench and inspect need no vocabulary";

/// A vocabulary, and its file's tokenizer options.
struct TokenizerFile {
  std::vector<std::string> tokens;  ///< by id; an id that no token has is ""
  TokenizerOptions options;
};

/// Reads model, normalizer, pre_tokenizer and added_tokens. How texts are put together
/// (post_processor, truncation, padding) is said by each task, not by this file.
/// Throws Error with `origin` and the place: a model of another type than WordPiece, a normalizer
/// or pre-tokenizer that is not BERT's, an added token that is none of BERT's five, a setting that
/// BasicTokenizer and WordPieceTokenizer do not have, or damage.
TokenizerFile parse_tokenizer_json(std::string_view content, const std::string& origin);

}  // namespace bertcl::text
