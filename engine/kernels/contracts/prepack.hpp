// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels that prepack weights [K, N] into panels, part by part: n columns starting at
// `first`.
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// Makes panels of int8 and sums of the columns.
BERTCL_CONTRACT(PrepackS8, (w, "u8|i8?"),  // [K, n]; the planner gives it at the launch
                (panels, "raw"), (column_sums, "raw"),  // i32 [N]
                (n, "int"), (K, "int"), (panel, "int"),
                (group, "int"),  // rows of w that lie together
                (first, "int"), (N, "int"));

/// Makes panels of f32, f16 or bf16.
BERTCL_CONTRACT(PrepackFloat, (w, "f32|f16?"),  // [K, n]; the planner gives it at the launch
                (panels, "raw"), (n, "int"), (K, "int"), (panel, "int"), (first, "int"),
                (N, "int"));

consteval auto prepack_contracts() {
  return std::array{
      contract_for<PrepackFloat>("prepack_f32"),
      contract_for<PrepackFloat>("prepack_pairs"),
      contract_for<PrepackS8>("prepack_s8"),
  };
}

}  // namespace bertcl::kernels
