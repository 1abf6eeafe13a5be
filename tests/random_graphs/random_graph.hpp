// SPDX-License-Identifier: Apache-2.0
// Random small graphs of the operators that the engine supports, with the patterns of BERT among
// them, as exporters and quantizers spell them: something for each pass to change.
#pragma once
#include "ir/graph.hpp"

namespace bertcl::tests {

/// A graph of 5 to 25 operators with inputs x f32[batch, seq, hidden], table rows i64[batch, seq]
/// and a key mask of the same shape; the same one each time for the same seed. What it computes is
/// finite, for sample inputs at least, and moderate in size.
ir::Graph random_graph(unsigned seed);

}  // namespace bertcl::tests
