// SPDX-License-Identifier: Apache-2.0
// Views of tensors for the generic kernels.
#include "plan/strided.hpp"

#include <algorithm>

namespace bertcl::plan {

std::array<ir::Dim, 3> split(const ir::Shape& shape, std::size_t first, std::size_t count) {
  std::array<ir::Dim, 3> view{1, 1, 1};
  for (std::size_t d = 0; d < shape.size(); ++d) {
    ir::Dim& part = view[d < first ? 0 : d < first + count ? 1 : 2];
    part = part * shape[d];
  }
  return view;
}

Strides row_major(const ir::Shape& shape) {
  Strides strides(shape.size(), ir::Dim(1));
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

Strides broadcast(const ir::Shape& from, const ir::Shape& to) {
  const Strides own = row_major(from);
  Strides strides(to.size(), ir::Dim(0));
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::size_t target = to.size() - from.size() + i;
    if (from[i] != ir::Dim(1) || to[target] == ir::Dim(1)) strides[target] = own[i];
  }
  return strides;
}

View coalesced(View view) {
  View result;
  result.strides.resize(view.strides.size());
  for (std::size_t d = 0; d < view.extents.size(); ++d) {
    if (view.extents[d] == ir::Dim(1)) continue;
    // The previous extent may take this one in if its stride is this extent times this stride.
    const bool coalesces =
        !result.extents.empty() && std::ranges::all_of(view.strides, [&](const Strides& s) {
          const auto operand = static_cast<std::size_t>(&s - view.strides.data());
          return result.strides[operand].back() == view.extents[d] * s[d];
        });
    if (coalesces) {
      result.extents.back() = result.extents.back() * view.extents[d];
    } else {
      result.extents.push_back(view.extents[d]);
    }
    for (std::size_t operand = 0; operand < view.strides.size(); ++operand) {
      Strides& s = result.strides[operand];
      if (coalesces)
        s.back() = view.strides[operand][d];
      else
        s.push_back(view.strides[operand][d]);
    }
  }
  return result;
}

SizeTable table_of(const View& view) {
  SizeTable table;
  for (const ir::Dim& d : view.extents) table.values.push_back(SizeExpr{d});
  for (const Strides& s : view.strides)
    for (const ir::Dim& d : s) table.values.push_back(SizeExpr{d});
  return table;
}

}  // namespace bertcl::plan
