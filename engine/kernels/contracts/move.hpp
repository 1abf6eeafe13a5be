// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels that only move elements.
#pragma once
#include <array>

#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// target[target_start + ...] = source[source_start + ...] over the extents of `shape`.
BERTCL_CONTRACT(CopyStrided, (source, "T"), (target, "T=source"), (source_start, "int"),
                (target_start, "int"),
                (shape, "i32"),  // extents, strides of source, strides of target
                (rank, "int"), (count, "int"), (chunk, "int"));

/// target[target_start + ...] = value.
BERTCL_CONTRACT(FillStrided, (value, "T"),                                   // [1]
                (target, "T=value"), (target_start, "int"), (shape, "i32"),  // as of CopyStrided
                (rank, "int"), (count, "int"), (chunk, "int"));

/// out[outer, i, inner] = data[outer, indices[i], inner].
BERTCL_CONTRACT(Gather, (data, "T"),  // [outer, axis, inner]
                (indices, "i32|i64@index_type"), (index_type, "int"), (out, "T=data"),
                (outer, "int"), (axis, "int"), (inner, "int"), (index_count, "int"),
                (error, "i32"),  // set where an index is outside
                (rows_per_item, "int"));

/// out[i] = data at i, with indices[i] along one axis.
BERTCL_CONTRACT(GatherElements, (data, "T"), (indices, "i32|i64@index_type"), (index_type, "int"),
                (out, "T=data"), (shape, "i32"),  // extents, strides of data and of out
                (rank, "int"), (extent, "int"),   // of the axis
                (axis_stride, "int"), (error, "i32"), (count, "int"), (chunk, "int"));

/// Slices of data at tuples of indices.
BERTCL_CONTRACT(GatherND, (data, "T"),            // [batches, extents..., inner]
                (indices, "i32|i64@index_type"),  // [batches, tuples, depth]
                (index_type, "int"), (out, "T=data"), (batches, "int"), (tuples, "int"),
                (depth, "int"), (extents, "i32"),  // [depth]
                (inner, "int"), (error, "i32"), (rows_per_item, "int"));

/// Rows of padded sequences, without the padding.
BERTCL_CONTRACT(Pack, (padded, "any"),   // [batch, seq, row_bytes]
                (packed, "any=padded"),  // [tokens, row_bytes]
                (seq_offsets, "i32"),    // [batch + 1]
                (batch, "int"), (seq, "int"), (row_bytes, "int"), (rows_per_item, "int"));

/// The inverse; padding rows are 0. The end of each row may go to another tensor.
BERTCL_CONTRACT(Unpack, (packed, "any"),  // [tokens, row_bytes + second_bytes]
                (padded, "any=packed"),   // [batch, seq, row_bytes]
                (second, "any=packed?"),  // [batch, seq, second_bytes]
                (seq_offsets, "i32"),     // [batch + 1]
                (batch, "int"), (seq, "int"), (row_bytes, "int"), (second_bytes, "int"),
                (rows_per_item, "int"));

consteval auto move_contracts() {
  return std::array{
      BERTCL_CONTRACTS_BY_SIZE(CopyStrided, "copy_strided"),
      BERTCL_CONTRACTS_BY_SIZE(FillStrided, "fill_strided"),
      BERTCL_CONTRACTS_BY_SIZE(Gather, "gather"),
      BERTCL_CONTRACTS_BY_SIZE(GatherElements, "gather_elements"),
      BERTCL_CONTRACTS_BY_SIZE(GatherND, "gather_nd"),
      contract_for<Pack>("pack"),
      contract_for<Unpack>("unpack"),
  };
}

}  // namespace bertcl::kernels
