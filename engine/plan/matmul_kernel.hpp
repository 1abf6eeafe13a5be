// SPDX-License-Identifier: Apache-2.0
// The kernel of a MatMul of two computed operands.
#pragma once
#include <array>
#include <string>

#include "plan/builder.hpp"
#include "plan/matmul_shape.hpp"

namespace bertcl::plan {

/// The kernel of a batched MatMul on a device, and its grid.
struct MatMulKernel {
  const char* variant = "";
  std::string program;
  std::array<SizeExpr, 3> global;
  std::array<std::size_t, 3> local{1, 1, 1};
  std::string why_not_faster;
};

inline constexpr std::int32_t kMatMulBlockRows = 64;  // of a work-item

/// Of `type` "f32" or "s32": by work-groups on a GPU, else by work-items.
MatMulKernel matmul_kernel(Builder& builder, const ir::Node& node, const std::string& type,
                           const MatMulShape& shape);

}  // namespace bertcl::plan
