// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in f32, the plain version: one work-item computes one row of one
// head.
//
//   out[row] = sum_key softmax_key(scale * q[row] . k[key]) * v[key]
//
// within one head of one sequence:
//
//   q, k, v  [tokens][stride]: head h of a row starts at column offset + h * head_size, so that one
//            [tokens][3 * hidden] matrix can be passed three times. Strides and offsets in
//            elements. Each head of k and v serves heads_per_key heads of q, side by side.
//   out      [tokens][heads * head_size]
//   seq_offsets[batch + 1]  first row of each sequence; attention stays inside its sequence
//   key_mask[tokens]        1 = attend, 0 = not; read only where use_mask is not 0
//   bias     added to the scores where it is given, for row i and key j of a sequence:
//            head * bias_head + first row of sequence * bias_token + i * bias_row + j * bias_key
//   window   keys more than that many places from the row do not count; 0: all do
//
// A row whose keys are all masked is 0. The arguments are those of every attention_f32 kernel.
// Grid: (ceil(longest sequence / block_rows), heads, batch), any local size.
// Bounds: head_size <= HEAD_MAX.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private sums
#endif

float score(__global const float* q, __global const float* k, int head_size, float scale) {
  float sum = 0.0f;
  for (int d = 0; d < head_size; d++) sum = fma(q[d], k[d], sum);
  return sum * scale;
}

#include "attention/parameters.clh"
#include "attention/bias.clh"

__kernel void attention_f32(ATTENTION_FLOAT_PARAMETERS(float)) {
  const int head = get_global_id(1), sequence = get_global_id(2);
  if (head >= heads) return;
  const int begin = seq_offsets[sequence], end = seq_offsets[sequence + 1];
  const int first = begin + (int)get_global_id(0) * block_rows;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  const Bias added = BIAS_OF(head, begin);

  for (int row = first; row < min(first + block_rows, end); row++) {
    __global const float* q_row = q + (size_t)row * q_stride;
    const int first_key = first_in_window(begin, row, window);
    const int end_key = end_in_window(end, row, window);
    float largest = -INFINITY;
    for (int key = first_key; key < end_key; key++)
      if (!use_mask || key_mask[key])
        largest = fmax(largest, score(q_row, k + (size_t)key * k_stride, head_size, scale) +
                                    bias_at(added, row - begin, key - begin));

    float total = 0.0f;
    float sums[HEAD_MAX];
    for (int d = 0; d < head_size; d++) sums[d] = 0.0f;
    for (int key = first_key; key < end_key; key++) {
      if (use_mask && !key_mask[key]) continue;
      const float p = exp(score(q_row, k + (size_t)key * k_stride, head_size, scale) +
                          bias_at(added, row - begin, key - begin) - largest);
      total += p;
      for (int d = 0; d < head_size; d++)
        sums[d] = fma(p, v[(size_t)key * v_stride + d], sums[d]);
    }
    const float inverse = total == 0.0f ? 0.0f : 1.0f / total;
    __global float* out_row = out + ((size_t)row * heads + head) * head_size;
    for (int d = 0; d < head_size; d++) out_row[d] = sums[d] * inverse;
  }
}
