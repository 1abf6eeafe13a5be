// SPDX-License-Identifier: Apache-2.0
// What the evaluations of the public interface share.
#pragma once
#include <cstddef>
#include <string>

#include "bertcl/error.hpp"
#include "bertcl/sequences.hpp"
#include "bertcl/session.hpp"
#include "text/batch.hpp"

namespace bertcl {

/// The sequences of a batch, without padding.
inline Sequences unpadded(const text::Batch& batch) {
  Sequences sequences;
  for (std::size_t i = 0; i < batch.input_ids.size(); ++i) {
    if (batch.attention_mask[i] != 0) {
      sequences.ids.push_back(batch.input_ids[i]);
      sequences.types.push_back(batch.token_type_ids[i]);
    }
    if ((i + 1) % static_cast<std::size_t>(batch.seq) == 0)
      sequences.offsets.push_back(static_cast<std::int64_t>(sequences.ids.size()));
  }
  return sequences;
}

/// Throws Error if the vocabulary is larger than the model's, or if sequences of `max_length`
/// tokens are longer than it takes.
inline void check_sizes(const ModelInfo& info, const Tokenizer& tokenizer, int max_length) {
  if (info.vocabulary > 0 && tokenizer.size() > info.vocabulary)
    throw Error("the tokenizer has " + std::to_string(tokenizer.size()) +
                " tokens, the model's embedding table " + std::to_string(info.vocabulary) +
                " rows; use the tokenizer that belongs to this model");
  if (info.max_length > 0 && max_length > info.max_length)
    throw Error("sequences of " + std::to_string(max_length) +
                " tokens exceed the model's maximum of " + std::to_string(info.max_length));
}

}  // namespace bertcl
