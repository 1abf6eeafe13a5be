// SPDX-License-Identifier: Apache-2.0
// The roles of a BERT model's inputs, by the names that exporters give them.
#pragma once
#include <string_view>

#include "ir/graph.hpp"

namespace bertcl::ir {

enum class InputRole {
  ids,          ///< input_ids, and whatever has none of the names below
  mask,         ///< attention_mask, input_mask
  token_types,  ///< token_type_ids, segment_ids
  positions,    ///< position_ids
  example_ids   ///< unique_ids of TensorFlow's BERT: passed through, no result depends on it
};

InputRole role_of_input(std::string_view name);

/// True for an input of token ids: integers [batch, seq].
bool is_token_ids(std::string_view name, const Type& type);

}  // namespace bertcl::ir
