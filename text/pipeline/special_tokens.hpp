// SPDX-License-Identifier: Apache-2.0
// The special tokens that a model expects around its texts.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace bertcl::text {

/// BERT: [CLS] text [SEP], and [CLS] first [SEP] second [SEP]. RoBERTa: <s> first </s></s> second
/// </s>. Llama and Gemma: <bos> text, and <bos> first <bos> second.
struct SpecialTokens {
  std::vector<std::int32_t> before, after;                          ///< of a single text
  std::vector<std::int32_t> pair_before, pair_between, pair_after;  ///< of two texts
  bool token_types = true;  ///< the second text and what follows it have type 1, what precedes 0
  std::size_t between_second = 0;  ///< the last tokens of pair_between that have type 1, too

  /// Those of all places, some of them several times.
  std::vector<std::int32_t> all_ids() const {
    std::vector<std::int32_t> all;
    for (const auto* some : {&before, &after, &pair_before, &pair_between, &pair_after})
      all.insert(all.end(), some->begin(), some->end());
    return all;
  }
  std::size_t count() const { return before.size() + after.size(); }
  /// Where type 1 of two texts begins, if they have `tokens` and the second begins at `text`.
  std::size_t second_begin(std::size_t text, std::size_t tokens) const {
    return token_types ? text - between_second : tokens;
  }
  std::size_t pair_count() const {
    return pair_before.size() + pair_between.size() + pair_after.size();
  }
};

}  // namespace bertcl::text
