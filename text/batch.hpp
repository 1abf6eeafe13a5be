// SPDX-License-Identifier: Apache-2.0
// Batches of token sequences: the padded inputs of the ONNX graph.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace bertcl::text {

/// Inputs of a BERT graph, each [batch, seq], padded with zeros to the longest sequence; the mask
/// of each row is a prefix of ones.
struct Batch {
  int batch = 0;
  int seq = 0;
  std::vector<std::int64_t> input_ids;
  std::vector<std::int64_t> attention_mask;
  std::vector<std::int64_t> token_type_ids;
};

struct BatchOptions {
  int max_tokens = 4096;    ///< bound on batch * seq; a sequence that is longer goes alone
  int max_batch = 64;       ///< bound on batch
  bool one_length = false;  ///< no padding: sequences of one length in a batch
};

/// One row of a batch. Segment ids are 0 before `second` and 1 from it.
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
