// SPDX-License-Identifier: Apache-2.0
// The module that a node was exported from.
#pragma once
#include <string>

#include "quant/graph/graph_index.hpp"
#include "quant/graph/structure.hpp"

namespace bertcl::quant {

/// The path of the module that a node was exported from, with dots
/// ("bert.encoder.layer.0.attention.self.query"): of its name, else of a constant that it or the
/// node after it reads; of a sum, the module that holds its norm. Empty where none of these tells.
std::string module_of(const GraphIndex& index, const Structure& structure, int node);

}  // namespace bertcl::quant
