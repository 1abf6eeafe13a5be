// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels along one axis of a tensor that is seen as [outer, size, inner].
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// out[outer, inner] = op of x over `size`.
BERTCL_CONTRACT(Reduce, (x, "T"), (out, "T"), (op, "int"),  // code of reduce.cl
                (outer, "int"), (size, "int"), (inner, "int"), (chunk, "int"));

/// out[outer, inner] = index of the largest x.
BERTCL_CONTRACT(ArgMax, (x, "T"), (out, "i64"), (outer, "int"), (size, "int"), (inner, "int"),
                (take_last, "int"), (chunk, "int"));

/// Running sums of x along `size`.
BERTCL_CONTRACT(CumSum, (x, "T"), (out, "T"), (outer, "int"), (size, "int"), (inner, "int"),
                (exclusive, "int"), (reverse, "int"), (chunk, "int"));

consteval auto reduce_contracts() {
  return std::array{
      contract_for<ArgMax>("argmax_f32", "f32"), contract_for<ArgMax>("argmax_i32", "i32"),
      contract_for<ArgMax>("argmax_i64", "i64"), contract_for<CumSum>("cumsum_f32", "f32"),
      contract_for<CumSum>("cumsum_i32", "i32"), contract_for<CumSum>("cumsum_i64", "i64"),
      contract_for<Reduce>("reduce_f32", "f32"), contract_for<Reduce>("reduce_i32", "i32"),
      contract_for<Reduce>("reduce_i64", "i64"),
  };
}

}  // namespace bertcl::kernels
