// SPDX-License-Identifier: Apache-2.0
// Texts in one sequence: how much of them stays, and the special tokens around them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "text/pipeline/special_tokens.hpp"

namespace bertcl::text {

/// Tokens of the first and the second text that stay in `room` tokens: the longer text is cut, and
/// where the other is longer than half, both to half, with an odd token for the longer, or for the
/// second of equal ones (`longest_first` of Hugging Face's tokenizers, utils/truncation.rs).
inline std::pair<std::size_t, std::size_t> kept_of_pair(std::size_t first, std::size_t second,
                                                        std::size_t room) {
  if (first + second <= room) return {first, second};
  const std::size_t less = std::min({first, second, room / 2});
  return first > second ? std::pair{room - less, less} : std::pair{less, room - less};
}

using Tokens = std::span<const std::int32_t>;

/// One text or two as a model takes them.
struct EncodedInput {
  std::vector<std::int32_t> ids = {};  ///< [length] with special tokens
  std::size_t second = 0;              ///< token types are 0 before it and 1 from it
  std::size_t cut = 0;                 ///< truncated tokens
};

/// [CLS] first [SEP], or [CLS] first [SEP] second [SEP], with at most `room` tokens of the texts:
/// the longer one loses its last tokens, where `truncates_left` its first (kept_of_pair).
EncodedInput add_special_tokens(const SpecialTokens& special, Tokens first,
                                std::optional<Tokens> second, std::size_t room,
                                bool truncates_left);

}  // namespace bertcl::text
