// SPDX-License-Identifier: Apache-2.0
// Views of tensors for the generic kernels: extents and strides that may be symbolic.
#pragma once
#include <array>
#include <vector>

#include "ir/dim.hpp"
#include "plan/plan.hpp"

namespace bertcl::plan {

/// A shape as [outer, size, inner] around `count` axes.
std::array<ir::Dim, 3> split(const ir::Shape& shape, std::size_t first, std::size_t count = 1);

using Strides = std::vector<ir::Dim>;

/// Several operands iterated together in row-major order of `extents`.
struct View {
  ir::Shape extents;
  std::vector<Strides> strides;  // one list for each operand, in elements; 0 repeats
};

Strides row_major(const ir::Shape& shape);

/// Strides for reading a tensor of shape `from` while iterating over `to` (NumPy broadcasting).
Strides broadcast(const ir::Shape& from, const ir::Shape& to);

/// Drops extents of 1 and coalesces neighbours that are contiguous in every operand, so that the
/// innermost runs are long.
View coalesced(View view);

/// extents, then the strides of each operand: the `shape` argument of the strided kernels.
SizeTable table_of(const View& view);

}  // namespace bertcl::plan
