// SPDX-License-Identifier: Apache-2.0
// From tokens back to a text.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>

#include "text/tokenizer.hpp"

namespace bertcl::serve {

/// Ids of the tokens that stand for no text: [CLS], [PAD], <s>, ...
std::unordered_set<std::int32_t> special_ids(const text::Tokenizer& tokenizer);

/// The text that tokens spell, as Hugging Face's tokenizers decode them: word pieces joined and
/// English punctuation drawn to its word, bytes of byte-level BPE, or pieces whose spaces are
/// U+2581. Throws Error for an id outside the vocabulary.
std::string decode(const text::Tokenizer& tokenizer, std::span<const std::int64_t> ids,
                   bool skip_special);

}  // namespace bertcl::serve
