// SPDX-License-Identifier: Apache-2.0
// What relative positions add to the scores of attention (He et al., 2021), the plain version: one
// work-item computes one row of one head.
//
//   out[row, key] = scale * x[row] . positions[index[row][key]] + addend[row, key]    or, of_keys,
//   out[row, key] = scale * x[key] . positions[index[key][row]] + addend[row, key]
//
//   within one head of one sequence; row, key: places in it. Scores are stored key by key, so that
//   those of many rows with one key lie together, as attention reads them.
//
//            row
//         o-------o   x          [tokens][x_stride], f32, u8 or s8 by x_type (types.clh), less
//     key | [out] |              x_zero_point; head h starts at x_offset + h * head_size
//         o-------o   positions  [head][count / 32][head_size][32]: 32 columns side by side, the
//        <-out_row->             last panel filled with zeros
//                     index      [seq][index_row]; -1 is the last position
//
//   out       [head][first row of the sequence + key][row]; out_head: elements from head to head
//   addend    as out, or null
//   seq_offsets[batch + 1]  first row of each sequence
//   error     one int, set to 1 if an index was outside; the nearest position is used then
//
// The arguments are those of every position_scores kernel; `block_rows` tokens of x are for a
// work-item of another.
// Grid: (longest sequence, heads, batch), any local size.
#include "attention/position_scores.clh"

__kernel void position_scores(POSITION_SCORES_PARAMETERS(float)) {
  const int head = get_global_id(1), sequence = get_global_id(2), row = get_global_id(0);
  if (head >= heads) return;
  const int begin = seq_offsets[sequence], count = seq_offsets[sequence + 1] - begin;
  if (row >= count) return;
  positions += head * table_size(position_count, head_size);

  for (int key = 0; key < count; key++) {
    const int from = of_keys ? key : row, to = of_keys ? row : key;
    int position = index[(size_t)from * index_row + to];
    position = position < 0 ? position + position_count : position;
    if (position < 0 || position >= position_count) *error = 1;
    const size_t column = column_of(clamp(position, 0, position_count - 1), head_size);
    const size_t first = (size_t)(begin + from) * x_stride + x_offset + head * head_size;
    float sum = 0.0f;
    for (int d = 0; d < head_size; d++)
      sum = fma(element_of(x, first + d, x_type, x_zero_point), positions[column + d * PANEL], sum);
    const size_t at = (size_t)head * out_head + (size_t)(begin + key) * out_row + row;
    out[at] = addend ? fma(sum, scale, addend[at]) : sum * scale;
  }
}
