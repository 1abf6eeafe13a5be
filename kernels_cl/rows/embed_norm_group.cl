// SPDX-License-Identifier: Apache-2.0
// Embedding of packed tokens with its LayerNorm, and quantization of the result, for GPUs: a
// work-group per token (row_group.clh), whose row stays in registers.
//
// Same arguments and semantics as embed_norm.cl; rows_per_item is not read.
// Grid: (ITEMS * tokens), work-group (ITEMS, 1, 1).
// Bounds: hidden <= 4 * ITEMS * VECTORS; every buffer begins at a multiple of 16 bytes. No unsafe
// math options.
#include "rows/row_norm_group.clh"

static size_t row_of(int id, int rows, int hidden, __global int* error) {
  if (id < 0 || id >= rows) *error = 1;
  return (size_t)clamp(id, 0, rows - 1) * hidden;
}

GROUP_KERNEL void embed_norm(
    __global const int* restrict input_ids, __global const int* restrict position_ids,
    __global const int* restrict token_type_ids, __global const void* restrict word_table,
    int word_rows, __global const void* restrict position_table, int position_rows,
    __global const void* restrict type_table, int type_rows, int table_type,
    __global const float* restrict gamma, __global const float* restrict beta, float eps,
    NORM_RESULTS, __global int* error, int tokens, int hidden, int rows_per_item) {
  __local float shared[3 * SHARED_WORDS];
  const bool aligned = hidden % 4 == 0;
  const int token = get_group_id(0);
  const size_t word = row_of(input_ids[token], word_rows, hidden, error);
  const size_t position =
      position_table ? row_of(position_ids[token], position_rows, hidden, error) : 0;
  const size_t type =
      type_table && token_type_ids ? row_of(token_type_ids[token], type_rows, hidden, error) : 0;
  float4 kept[VECTORS];
#pragma unroll
  for (int v = 0; v < VECTORS; v++) {
    const int i = (v * ITEMS + (int)get_local_id(0)) * 4, n = min(4, hidden - i);
    kept[v] = (float4)(0.0f);
    if (n <= 0) continue;
    kept[v] = load4(word_table, word + i, n, table_type, aligned);
    if (position_table) kept[v] += load4(position_table, position + i, n, table_type, aligned);
    if (type_table) kept[v] += load4(type_table, type + i, n, table_type, aligned);
  }
  finish_norm(kept, shared, token * (size_t)hidden, hidden, eps, 0, gamma, beta, 0, out,
              NORM_QUANTIZED);
}
