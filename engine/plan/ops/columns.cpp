// SPDX-License-Identifier: Apache-2.0
#include "plan/ops/columns.hpp"

#include <utility>

#include "plan/types.hpp"

namespace bertcl::plan {

Argument column_constants(Builder& b, std::vector<float> values) {
  const auto count = std::ssize(values);
  return b.constant(ir::Tensor::of({count}, std::move(values)));
}

OutColumns out_columns(Builder& b, const ir::Value* scale, const ir::Value* zero_point,
                       std::int64_t columns) {
  if (!scale) return {};
  std::vector<float> inverse = per_column(scale, columns, 1);
  for (float& s : inverse) s = 1.0f / s;
  const Argument inv_scale = column_constants(b, std::move(inverse));
  return {inv_scale, column_constants(b, per_column(zero_point, columns, 0))};
}

}  // namespace bertcl::plan
