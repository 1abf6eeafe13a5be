// SPDX-License-Identifier: Apache-2.0
// Contracts of kernels that only move elements.
#pragma once
#include "kernels/contract.hpp"

namespace bertcl::kernels {

/// target[target_start + ...] = source[source_start + ...] over the extents of `shape`.
template <class A>
struct CopyStrided {
  A source{}, target{}, source_start{}, target_start{}, shape{}, rank{}, count{}, chunk{};
  static constexpr Field<CopyStrided, A> fields[] = {
      {&CopyStrided::source, "source", "T"},
      {&CopyStrided::target, "target", "T=source"},
      {&CopyStrided::source_start, "source_start", "int"},
      {&CopyStrided::target_start, "target_start", "int"},
      {&CopyStrided::shape, "shape", "i32"},  // extents, strides of source, strides of target
      {&CopyStrided::rank, "rank", "int"},
      {&CopyStrided::count, "count", "int"},
      {&CopyStrided::chunk, "chunk", "int"},
  };
};

/// target[target_start + ...] = value.
template <class A>
struct FillStrided {
  A value{}, target{}, target_start{}, shape{}, rank{}, count{}, chunk{};
  static constexpr Field<FillStrided, A> fields[] = {
      {&FillStrided::value, "value", "T"},  // [1]
      {&FillStrided::target, "target", "T=value"},
      {&FillStrided::target_start, "target_start", "int"},
      {&FillStrided::shape, "shape", "i32"},  // as of CopyStrided
      {&FillStrided::rank, "rank", "int"},
      {&FillStrided::count, "count", "int"},
      {&FillStrided::chunk, "chunk", "int"},
  };
};

/// out[outer, i, inner] = data[outer, indices[i], inner].
template <class A>
struct Gather {
  A data{}, indices{}, index_type{}, out{}, outer{}, axis{}, inner{}, index_count{}, error{},
      rows_per_item{};
  static constexpr Field<Gather, A> fields[] = {
      {&Gather::data, "data", "T"},  // [outer, axis, inner]
      {&Gather::indices, "indices", "i32|i64@index_type"},
      {&Gather::index_type, "index_type", "int"},
      {&Gather::out, "out", "T=data"},
      {&Gather::outer, "outer", "int"},
      {&Gather::axis, "axis", "int"},
      {&Gather::inner, "inner", "int"},
      {&Gather::index_count, "index_count", "int"},
      {&Gather::error, "error", "i32"},  // set where an index is outside
      {&Gather::rows_per_item, "rows_per_item", "int"},
  };
};

/// out[i] = data at i, with indices[i] along one axis.
template <class A>
struct GatherElements {
  A data{}, indices{}, index_type{}, out{}, shape{}, rank{}, extent{}, axis_stride{}, error{},
      count{}, chunk{};
  static constexpr Field<GatherElements, A> fields[] = {
      {&GatherElements::data, "data", "T"},
      {&GatherElements::indices, "indices", "i32|i64@index_type"},
      {&GatherElements::index_type, "index_type", "int"},
      {&GatherElements::out, "out", "T=data"},
      {&GatherElements::shape, "shape", "i32"},  // extents, strides of data and of out
      {&GatherElements::rank, "rank", "int"},
      {&GatherElements::extent, "extent", "int"},  // of the axis
      {&GatherElements::axis_stride, "axis_stride", "int"},
      {&GatherElements::error, "error", "i32"},
      {&GatherElements::count, "count", "int"},
      {&GatherElements::chunk, "chunk", "int"},
  };
};

/// Slices of data at tuples of indices.
template <class A>
struct GatherND {
  A data{}, indices{}, index_type{}, out{}, batches{}, tuples{}, depth{}, extents{}, inner{},
      error{}, rows_per_item{};
  static constexpr Field<GatherND, A> fields[] = {
      {&GatherND::data, "data", "T"},                         // [batches, extents..., inner]
      {&GatherND::indices, "indices", "i32|i64@index_type"},  // [batches, tuples, depth]
      {&GatherND::index_type, "index_type", "int"},
      {&GatherND::out, "out", "T=data"},
      {&GatherND::batches, "batches", "int"},
      {&GatherND::tuples, "tuples", "int"},
      {&GatherND::depth, "depth", "int"},
      {&GatherND::extents, "extents", "i32"},  // [depth]
      {&GatherND::inner, "inner", "int"},
      {&GatherND::error, "error", "i32"},
      {&GatherND::rows_per_item, "rows_per_item", "int"},
  };
};

/// Rows of padded sequences, without the padding.
template <class A>
struct Pack {
  A padded{}, packed{}, seq_offsets{}, batch{}, seq{}, row_bytes{}, rows_per_item{};
  static constexpr Field<Pack, A> fields[] = {
      {&Pack::padded, "padded", "any"},            // [batch, seq, row_bytes]
      {&Pack::packed, "packed", "any=padded"},     // [tokens, row_bytes]
      {&Pack::seq_offsets, "seq_offsets", "i32"},  // [batch + 1]
      {&Pack::batch, "batch", "int"},
      {&Pack::seq, "seq", "int"},
      {&Pack::row_bytes, "row_bytes", "int"},
      {&Pack::rows_per_item, "rows_per_item", "int"},
  };
};

/// The inverse; padding rows are 0. The end of each row may go to another tensor.
template <class A>
struct Unpack {
  A packed{}, padded{}, second{}, seq_offsets{}, batch{}, seq{}, row_bytes{}, second_bytes{},
      rows_per_item{};
  static constexpr Field<Unpack, A> fields[] = {
      {&Unpack::packed, "packed", "any"},            // [tokens, row_bytes + second_bytes]
      {&Unpack::padded, "padded", "any=packed"},     // [batch, seq, row_bytes]
      {&Unpack::second, "second", "any=packed?"},    // [batch, seq, second_bytes]
      {&Unpack::seq_offsets, "seq_offsets", "i32"},  // [batch + 1]
      {&Unpack::batch, "batch", "int"},
      {&Unpack::seq, "seq", "int"},
      {&Unpack::row_bytes, "row_bytes", "int"},
      {&Unpack::second_bytes, "second_bytes", "int"},
      {&Unpack::rows_per_item, "rows_per_item", "int"},
  };
};

/// The kernels of these contracts.
inline constexpr KernelContract move_contracts[] = {
    row<CopyStrided>("copy_strided_1", "size1"),
    row<CopyStrided>("copy_strided_2", "size2"),
    row<CopyStrided>("copy_strided_4", "size4"),
    row<CopyStrided>("copy_strided_8", "size8"),
    row<FillStrided>("fill_strided_1", "size1"),
    row<FillStrided>("fill_strided_2", "size2"),
    row<FillStrided>("fill_strided_4", "size4"),
    row<FillStrided>("fill_strided_8", "size8"),
    row<Gather>("gather_1", "size1"),
    row<Gather>("gather_2", "size2"),
    row<Gather>("gather_4", "size4"),
    row<Gather>("gather_8", "size8"),
    row<GatherElements>("gather_elements_1", "size1"),
    row<GatherElements>("gather_elements_2", "size2"),
    row<GatherElements>("gather_elements_4", "size4"),
    row<GatherElements>("gather_elements_8", "size8"),
    row<GatherND>("gather_nd_1", "size1"),
    row<GatherND>("gather_nd_2", "size2"),
    row<GatherND>("gather_nd_4", "size4"),
    row<GatherND>("gather_nd_8", "size8"),
    row<Pack>("pack"),
    row<Unpack>("unpack"),
};

}  // namespace bertcl::kernels
