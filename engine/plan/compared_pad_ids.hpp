// SPDX-License-Identifier: Apache-2.0
// Ids by which a model finds padding itself.
#pragma once
#include <cstdint>
#include <vector>

#include "ir/graph.hpp"

namespace bertcl::plan {

/// Constants that the graph compares its token ids with to count or find tokens, as decoders with a
/// classification head find the last one by `input_ids != pad_token_id`. Not those of positions
/// that are sums of such a mask (RoBERTa): what they are for padding changes no token.
std::vector<std::int64_t> compared_pad_ids(const ir::Graph& graph);

}  // namespace bertcl::plan
