// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels that take their elements one by one, `chunk` of them for each work-item.
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// out = op(x).
BERTCL_CONTRACT(Unary, (x, "T"), (out, "U"), (op, "int"),  // code of elementwise_unary.cl
                (count, "int"), (chunk, "int"));

/// out = op(a, b), broadcast.
BERTCL_CONTRACT(Binary, (a, "T"), (b, "T"), (out, "T|bool"),
                (op, "int"),     // code of elementwise_binary.cl
                (shape, "i32"),  // extents, strides of a, strides of b
                (rank, "int"), (count, "int"), (chunk, "int"));

/// out = activation(gate) * up; quantized where it is integers.
BERTCL_CONTRACT(Gated, (gate, "f32"),                        // [count / columns, columns]
                (up, "f32"),                                 // the same
                (activation, "int"),                         // code of activation.clh
                (out, "f32|u8|i8@out_type"),                 // the same
                (out_type, "int"), (out_inv_scale, "f32?"),  // [columns] of an integer out
                (out_zero_point, "f32?"),                    // [columns]
                (count, "int"), (columns, "int"), (chunk, "int"));

/// out = condition ? a : b, broadcast.
BERTCL_CONTRACT(Where, (condition, "bool"), (a, "T"), (b, "T=a"), (out, "T=a"),
                (shape, "i32"),  // extents, strides of the three
                (rank, "int"), (count, "int"), (chunk, "int"));

/// y = x in another type.
BERTCL_CONTRACT(Cast, (x, "any@from"), (from, "int"),  // types.clh
                (y, "any@to"), (to, "int"), (count, "int"), (chunk, "int"));

/// out[i] = start + i * delta.
BERTCL_CONTRACT(Range, (start, "T"),  // [1]
                (delta, "T"),         // [1]
                (out, "T"), (count, "int"), (chunk, "int"));

consteval auto elementwise_contracts() {
  return std::array{
      contract_for<Binary>("binary_bool", "bool"),
      contract_for<Binary>("binary_f32", "f32"),
      contract_for<Binary>("binary_i32", "i32"),
      contract_for<Binary>("binary_i64", "i64"),
      contract_for<Cast>("cast"),
      contract_for<Gated>("gated"),
      contract_for<Range>("range_i32", "i32"),
      contract_for<Range>("range_i64", "i64"),
      contract_for<Unary>("unary_bool", "bool", "bool"),
      contract_for<Unary>("unary_f32", "f32", "f32|bool"),
      contract_for<Unary>("unary_i32", "i32", "i32"),
      contract_for<Unary>("unary_i64", "i64", "i64"),
      BERTCL_CONTRACTS_BY_SIZE(Where, "where"),
  };
}

}  // namespace bertcl::kernels
