// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels that take their elements one by one, `chunk` of them for each work-item.
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// out = op(x).
template <class A>
struct Unary {
  A x{}, out{}, op{}, count{}, chunk{};
  static constexpr Field<Unary, A> fields[] = {
      {&Unary::x, "x", "T"},           {&Unary::out, "out", "U"},
      {&Unary::op, "op", "int"},  // code of elementwise_unary.cl
      {&Unary::count, "count", "int"}, {&Unary::chunk, "chunk", "int"},
  };
};

/// out = op(a, b), broadcast.
template <class A>
struct Binary {
  A a{}, b{}, out{}, op{}, shape{}, rank{}, count{}, chunk{};
  static constexpr Field<Binary, A> fields[] = {
      {&Binary::a, "a", "T"},
      {&Binary::b, "b", "T"},
      {&Binary::out, "out", "T|bool"},
      {&Binary::op, "op", "int"},        // code of elementwise_binary.cl
      {&Binary::shape, "shape", "i32"},  // extents, strides of a, strides of b
      {&Binary::rank, "rank", "int"},
      {&Binary::count, "count", "int"},
      {&Binary::chunk, "chunk", "int"},
  };
};

/// out = activation(gate) * up; quantized where it is integers.
template <class A>
struct Gated {
  A gate{}, up{}, activation{}, out{}, out_type{}, out_inv_scale{}, out_zero_point{}, count{},
      columns{}, chunk{};
  static constexpr Field<Gated, A> fields[] = {
      {&Gated::gate, "gate", "f32"},               // [count / columns, columns]
      {&Gated::up, "up", "f32"},                   // the same
      {&Gated::activation, "activation", "int"},   // code of activation.clh
      {&Gated::out, "out", "f32|u8|i8@out_type"},  // the same
      {&Gated::out_type, "out_type", "int"},
      {&Gated::out_inv_scale, "out_inv_scale", "f32?"},    // [columns] of an integer out
      {&Gated::out_zero_point, "out_zero_point", "f32?"},  // [columns]
      {&Gated::count, "count", "int"},
      {&Gated::columns, "columns", "int"},
      {&Gated::chunk, "chunk", "int"},
  };
};

/// out = condition ? a : b, broadcast.
template <class A>
struct Where {
  A condition{}, a{}, b{}, out{}, shape{}, rank{}, count{}, chunk{};
  static constexpr Field<Where, A> fields[] = {
      {&Where::condition, "condition", "bool"},
      {&Where::a, "a", "T"},
      {&Where::b, "b", "T=a"},
      {&Where::out, "out", "T=a"},
      {&Where::shape, "shape", "i32"},  // extents, strides of the three
      {&Where::rank, "rank", "int"},
      {&Where::count, "count", "int"},
      {&Where::chunk, "chunk", "int"},
  };
};

/// y = x in another type.
template <class A>
struct Cast {
  A x{}, from{}, y{}, to{}, count{}, chunk{};
  static constexpr Field<Cast, A> fields[] = {
      {&Cast::x, "x", "any@from"},    {&Cast::from, "from", "int"},  // types.clh
      {&Cast::y, "y", "any@to"},      {&Cast::to, "to", "int"},
      {&Cast::count, "count", "int"}, {&Cast::chunk, "chunk", "int"},
  };
};

/// out[i] = start + i * delta.
template <class A>
struct Range {
  A start{}, delta{}, out{}, count{}, chunk{};
  static constexpr Field<Range, A> fields[] = {
      {&Range::start, "start", "T"},  // [1]
      {&Range::delta, "delta", "T"},  // [1]
      {&Range::out, "out", "T"},       {&Range::count, "count", "int"},
      {&Range::chunk, "chunk", "int"},
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract elementwise_contracts[] = {
    row<Binary>("binary_bool", "bool"),
    row<Binary>("binary_f32", "f32"),
    row<Binary>("binary_i32", "i32"),
    row<Binary>("binary_i64", "i64"),
    row<Cast>("cast"),
    row<Gated>("gated"),
    row<Range>("range_i32", "i32"),
    row<Range>("range_i64", "i64"),
    row<Unary>("unary_bool", "bool", "bool"),
    row<Unary>("unary_f32", "f32", "f32|bool"),
    row<Unary>("unary_i32", "i32", "i32"),
    row<Unary>("unary_i64", "i64", "i64"),
    row<Where>("where_1", "size1"),
    row<Where>("where_2", "size2"),
    row<Where>("where_4", "size4"),
    row<Where>("where_8", "size8"),
};

}  // namespace bertcl::kernels
