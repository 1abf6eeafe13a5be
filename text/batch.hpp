// SPDX-License-Identifier: Apache-2.0
// Batches of token sequences, without padding.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bertcl::text {

/// Rows one after the other: row i is [offsets[i], offsets[i + 1]) of the ids and token types.
struct Batch {
  std::vector<std::int64_t> ids, token_type_ids, offsets{0};

  std::size_t rows() const { return offsets.size() - 1; }
  std::size_t tokens() const { return ids.size(); }
};

struct BatchOptions {
  int max_tokens = 4096;    ///< bound on rows * longest; a sequence that is longer goes alone
  int max_batch = 64;       ///< bound on rows
  bool one_length = false;  ///< sequences of one length in a batch
};

/// One row of a batch. Token types are 0 before `second` and 1 from it.
struct Row {
  std::span<const std::int32_t> ids;
  std::size_t second = 0;
};

/// Groups sequences of similar length, longest first. Each index stands in exactly one group.
/// Throws Error if a bound is below 1.
std::vector<std::vector<std::size_t>> group_by_length(std::span<const std::size_t> lengths,
                                                      const BatchOptions& options);

Batch make_batch(std::span<const Row> rows);

}  // namespace bertcl::text
