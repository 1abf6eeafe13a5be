// SPDX-License-Identifier: Apache-2.0
// From tokens back to a text.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>

#include "text/tokenizer.hpp"

namespace bertcl::text {

/// The text that tokens spell, as Hugging Face's tokenizers decode them: by the decoder of a
/// tokenizer.json, else by Tokenizer::spelling().
class Decoder {
 public:
  explicit Decoder(std::shared_ptr<const Tokenizer> tokenizer);
  /// `skip_special` leaves out the tokens that the file marks as special or, if it marks none,
  /// those around texts and [PAD], [UNK], <s> and the like. Throws Error for an id outside the
  /// vocabulary.
  std::string operator()(std::span<const std::int64_t> ids, bool skip_special) const;

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unordered_set<std::int32_t> special_;  ///< that stand for no text: [CLS], [PAD], <s>, ...
};

}  // namespace bertcl::text
