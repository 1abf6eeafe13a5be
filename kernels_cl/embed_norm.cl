// SPDX-License-Identifier: Apache-2.0
// Embedding of packed tokens with its LayerNorm, and quantization of the result: one work-item a row.
//
//   s[i]   = word_table[input_ids][i] + position_table[position_ids][i] + type_table[token_type_ids][i]
//   out[i] = (s[i] - mean) / sqrt(variance + eps) * gamma[i] + beta[i]
//   q[i]   = round(out[i] * q_inv_scale[i]) + q_zero_point[i], half to even, saturated; r the same
//
//   input_ids, position_ids, token_type_ids  int[tokens]
//   tables        [table rows][hidden], table_type 0 f32 or 3 f16 (storage)
//   gamma, beta, inverse scales and zero points [hidden] f32
//   out           [tokens][hidden] f32;  q, r [tokens][hidden], q_type and r_type 1 u8 or 2 s8
//   error         one int, set to 1 if an id was outside its table; the nearest row is used then
//   position_ids with its table, token_type_ids, beta, out, q and r with theirs may be null; without
//   token_type_ids a type_table gives its row 0 to each token, and may be null as well.
//
// Grid: (ceil(tokens / rows_per_item)), any local size. Bounds: none. No unsafe math options.
#include "row.clh"

#ifndef ROW_MAX
#define ROW_MAX 4096  // longest row kept in private memory
#endif

size_t row_of(int id, int rows, int hidden, __global int* error) {
  if (id < 0 || id >= rows) *error = 1;
  return (size_t)clamp(id, 0, rows - 1) * hidden;
}

ROW_INLINE float16 load_sum16(__global const void* word_table, size_t word, __global const void* position_table,
                   size_t position, __global const void* type_table, size_t type, int table_type,
                   int i, int n) {
  float16 s = load_row16(word_table, word + i, n, table_type, 1.0f, 0);
  if (position_table) s += load_row16(position_table, position + i, n, table_type, 1.0f, 0);
  if (type_table) s += load_row16(type_table, type + i, n, table_type, 1.0f, 0);
  return s;
}

__kernel void embed_norm(__global const int* input_ids, __global const int* position_ids,
                         __global const int* token_type_ids, __global const void* word_table,
                         int word_rows, __global const void* position_table, int position_rows,
                         __global const void* type_table, int type_rows, int table_type,
                         __global const float* gamma, __global const float* beta, float eps,
                         __global float* out, __global uchar* q, int q_type,
                         __global const float* q_inv_scale, __global const float* q_zero_point,
                         __global uchar* r, int r_type, __global const float* r_inv_scale,
                         __global const float* r_zero_point, __global int* error, int tokens,
                         int hidden, int rows_per_item) {
  float16 kept[ROW_MAX / 16];
  const int is_kept = hidden <= ROW_MAX;
  const int first = get_global_id(0) * rows_per_item, last = min(first + rows_per_item, tokens);

  for (int row = first; row < last; row++) {
    const size_t word = row_of(input_ids[row], word_rows, hidden, error);
    const size_t position =
        position_table ? row_of(position_ids[row], position_rows, hidden, error) : 0;
    const size_t type =
        type_table && token_type_ids ? row_of(token_type_ids[row], type_rows, hidden, error) : 0;
    float16 sum = 0.0f;
    for (int i = 0; i < hidden; i += 16) {
      const float16 s = load_sum16(word_table, word, position_table, position, type_table, type,
                                   table_type, i, min(16, hidden - i));
      sum += s;
      if (is_kept) kept[i / 16] = s;
    }
    const float mean = sum16(sum) / hidden;

    float16 squares = 0.0f;
    for (int i = 0; i < hidden; i += 16) {
      const int n = min(16, hidden - i);
      float16 s = is_kept ? kept[i / 16]
                          : load_sum16(word_table, word, position_table, position, type_table, type,
                                       table_type, i, n);
      s = LANE < n ? s - mean : (float16)(0.0f);
      squares = fma(s, s, squares);
    }
    const float factor = 1.0f / sqrt(sum16(squares) / hidden + eps);

    for (int i = 0; i < hidden; i += 16) {
      const int n = min(16, hidden - i);
      const float16 s = is_kept ? kept[i / 16]
                                : load_sum16(word_table, word, position_table, position, type_table,
                                             type, table_type, i, n);
      float16 y = (s - mean) * factor * load_floats16(gamma, i, n);
      if (beta) y += load_floats16(beta, i, n);
      const size_t at = (size_t)row * hidden;
      if (out) store_row16(out, at + i, n, y);
      if (q) store_columns16(q, at, i, n, y, q_type, q_inv_scale, q_zero_point);
      if (r) store_columns16(r, at, i, n, y, r_type, r_inv_scale, r_zero_point);
    }
  }
}
