// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels that prepack weights [K, N] into panels, part by part: n columns starting at
// `first`.
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// And sums of the columns.
template <class A>
struct PrepackS8 {
  A w{}, packed{}, colsum{}, n{}, K{}, panel{}, group{}, first{}, N{};
  static constexpr Field<PrepackS8, A> fields[] = {
      {&PrepackS8::w, "w", "u8|i8?"},  // [K, n]; the planner gives it at the launch
      {&PrepackS8::packed, "packed", "raw"},
      {&PrepackS8::colsum, "colsum", "raw"},  // i32 [N]
      {&PrepackS8::n, "n", "int"},
      {&PrepackS8::K, "K", "int"},
      {&PrepackS8::panel, "panel", "int"},
      {&PrepackS8::group, "group", "int"},  // rows of w that lie together
      {&PrepackS8::first, "first", "int"},
      {&PrepackS8::N, "N", "int"},
  };
};

/// In f32, f16 or bf16.
template <class A>
struct PrepackFloat {
  A w{}, packed{}, n{}, K{}, panel{}, first{}, N{};
  static constexpr Field<PrepackFloat, A> fields[] = {
      {&PrepackFloat::w, "w", "f32|f16?"},  // [K, n]; the planner gives it at the launch
      {&PrepackFloat::packed, "packed", "raw"}, {&PrepackFloat::n, "n", "int"},
      {&PrepackFloat::K, "K", "int"},           {&PrepackFloat::panel, "panel", "int"},
      {&PrepackFloat::first, "first", "int"},   {&PrepackFloat::N, "N", "int"},
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract prepack_contracts[] = {
    row<PrepackFloat>("prepack_f32"),
    row<PrepackFloat>("prepack_pairs"),
    row<PrepackS8>("prepack_s8"),
};

}  // namespace bertcl::kernels
