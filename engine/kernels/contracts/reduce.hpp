// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels along one axis of a tensor that is seen as [outer, size, inner].
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// out[outer, inner] = op of x over `size`.
template <class A>
struct Reduce {
  A x{}, out{}, op{}, outer{}, size{}, inner{}, chunk{};
  static constexpr Field<Reduce, A> fields[] = {
      {&Reduce::x, "x", "T"},           {&Reduce::out, "out", "T"},
      {&Reduce::op, "op", "int"},  // code of reduce.cl
      {&Reduce::outer, "outer", "int"}, {&Reduce::size, "size", "int"},
      {&Reduce::inner, "inner", "int"}, {&Reduce::chunk, "chunk", "int"},
  };
};

/// out[outer, inner] = index of the largest x.
template <class A>
struct ArgMax {
  A x{}, out{}, outer{}, size{}, inner{}, take_last{}, chunk{};
  static constexpr Field<ArgMax, A> fields[] = {
      {&ArgMax::x, "x", "T"},           {&ArgMax::out, "out", "i64"},
      {&ArgMax::outer, "outer", "int"}, {&ArgMax::size, "size", "int"},
      {&ArgMax::inner, "inner", "int"}, {&ArgMax::take_last, "take_last", "int"},
      {&ArgMax::chunk, "chunk", "int"},
  };
};

/// Running sums of x along `size`.
template <class A>
struct CumSum {
  A x{}, out{}, outer{}, size{}, inner{}, exclusive{}, reverse{}, chunk{};
  static constexpr Field<CumSum, A> fields[] = {
      {&CumSum::x, "x", "T"},
      {&CumSum::out, "out", "T"},
      {&CumSum::outer, "outer", "int"},
      {&CumSum::size, "size", "int"},
      {&CumSum::inner, "inner", "int"},
      {&CumSum::exclusive, "exclusive", "int"},
      {&CumSum::reverse, "reverse", "int"},
      {&CumSum::chunk, "chunk", "int"},
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract reduce_contracts[] = {
    row<ArgMax>("argmax_f32", "f32"), row<ArgMax>("argmax_i32", "i32"),
    row<ArgMax>("argmax_i64", "i64"), row<CumSum>("cumsum_f32", "f32"),
    row<CumSum>("cumsum_i32", "i32"), row<CumSum>("cumsum_i64", "i64"),
    row<Reduce>("reduce_f32", "f32"), row<Reduce>("reduce_i32", "i32"),
    row<Reduce>("reduce_i64", "i64"),
};

}  // namespace bertcl::kernels
