// SPDX-License-Identifier: Apache-2.0
// Embedding of packed tokens with its LayerNorm, and quantization of the result: one work-item per
// row.
//
//   s[i]   = word_table[input_ids][i] + position_table[position_ids][i]
//            + type_table[token_type_ids][i]
//   out[i] = (s[i] - mean) / sqrt(variance + eps) * gamma[i] + beta[i]
//   q[i]   = round(out[i] * q_inv_scale[i]) + q_zero_point[i], half to even, saturated; r the same
//
//   input_ids, position_ids, token_type_ids  int[tokens]
//   tables        [table rows][hidden], table_type 0 f32 or 3 f16 (storage)
//   gamma, beta, inverse scales and zero points [hidden] f32
//   out           [tokens][hidden] f32;  q, r [tokens][hidden], q_type and r_type 1 u8 or 2 s8;
//                 q_type may be 7 bf16, of out itself
//   error         one int, set to 1 if an id was outside its table; the nearest row is used then
//   position_ids with its table, token_type_ids, beta, out, q and r with theirs may be null;
//   without token_type_ids a type_table gives its row 0 to each token, and may be null as well.
//
// Grid: (ceil(tokens / rows_per_item)), any local size. Bounds: none. No unsafe math options.
#include "persistent/place.clh"
#include "rows/row_norm.clh"

static size_t row_of(int id, int rows, int hidden, __global int* error) {
  if (id < 0 || id >= rows) *error = 1;
  return (size_t)clamp(id, 0, rows - 1) * hidden;
}

// Elements first .. first + count - 1 of s; word, position and type are the first elements of their
// rows.
ROW_INLINE void add_terms(float16* kept, __global const void* word_table, size_t word,
                          __global const void* position_table, size_t position,
                          __global const void* type_table, size_t type, int table_type, int first,
                          int count) {
  add_term(kept, 1, word_table, word + first, count, table_type, 0, 0);
  if (position_table) add_term(kept, 0, position_table, position + first, count, table_type, 0, 0);
  if (type_table) add_term(kept, 0, type_table, type + first, count, table_type, 0, 0);
}

KERNEL embed_norm(__global const int* input_ids, __global const int* position_ids,
                  __global const int* token_type_ids, __global const void* word_table,
                  int word_rows, __global const void* position_table, int position_rows,
                  __global const void* type_table, int type_rows, int table_type,
                  __global const float* gamma, __global const float* beta, float eps,
                  NORM_RESULTS, __global int* error, int tokens, int hidden,
                  int rows_per_item PLACE_PARAMETER) {
  float16 kept[ROW_MAX / 16];
  const int begin = PLACE.id.x * rows_per_item, end = min(begin + rows_per_item, tokens);

  for (int row = begin; row < end; row++) {
    const size_t word = row_of(input_ids[row], word_rows, hidden, error);
    const size_t position =
        position_table ? row_of(position_ids[row], position_rows, hidden, error) : 0;
    const size_t type =
        type_table && token_type_ids ? row_of(token_type_ids[row], type_rows, hidden, error) : 0;
    const size_t at = (size_t)row * hidden;
    float mean = 0.0f, factor = 0.0f;
    // 0: the sum, 1: the squares, 2: the results; a row of one block is made once.
    for (int pass = 0; pass < 3; pass++) {
      float sum = 0.0f;
      for (int first = 0; first < hidden; first += ROW_MAX) {
        const int count = min(ROW_MAX, hidden - first);
        if (pass == 0 || hidden > ROW_MAX)
          add_terms(kept, word_table, word, position_table, position, type_table, type, table_type,
                    first, count);
        if (pass == 0) sum += sum_of(kept, count);
        if (pass == 1) sum += squares_of(kept, count, mean);
        if (pass < 2) continue;
        finish_row(kept, at, first, count, mean, factor, gamma, beta, out, NORM_QUANTIZED);
      }
      if (pass == 0) mean = sum / hidden;
      if (pass == 1) factor = 1.0f / sqrt(sum / hidden + eps);
    }
  }
}

ALWAYS_MERGED(embed_norm, (POINTER(0), POINTER(1), POINTER(2), POINTER(3), INTEGER(4), POINTER(5),
                           INTEGER(6), POINTER(7), INTEGER(8), INTEGER(9), POINTER(10), POINTER(11),
                           FLOAT(12), POINTER(13), POINTER(14), INTEGER(15), POINTER(16),
                           POINTER(17), POINTER(18), INTEGER(19), POINTER(20), POINTER(21),
                           POINTER(22), INTEGER(23), INTEGER(24), INTEGER(25), STEP_PLACE))
