// SPDX-License-Identifier: Apache-2.0
// Constants of a plan with one number for each column.
#pragma once
#include <vector>

#include "plan/builder.hpp"

namespace bertcl::plan {

/// f32 [values.size()].
Argument column_constants(Builder& b, std::vector<float> values);

/// What a kernel quantizes a result by: 1 / scale and the zero point of each column, f32 [columns].
struct OutColumns {
  Argument inv_scale = nullptr, zero_point = nullptr;
};

/// From constants of one element or of `columns`; `zero_point` may be null. Without `scale` both
/// are null: the result is not quantized.
OutColumns out_columns(Builder& b, const ir::Value* scale, const ir::Value* zero_point,
                       std::int64_t columns);

}  // namespace bertcl::plan
