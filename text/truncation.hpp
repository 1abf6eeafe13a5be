// SPDX-License-Identifier: Apache-2.0
// How much of two texts stays where they are too long for one sequence.
#pragma once
#include <algorithm>
#include <cstddef>
#include <utility>

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

}  // namespace bertcl::text
