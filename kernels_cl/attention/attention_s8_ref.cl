// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8, the plain version: one work-item computes one row of one
// head, exactly as the ONNX graph with QuantizeLinear on the probabilities; integer sums are exact.
//
//   score[key] = qk_scale * sum_d (q[row][d] - q_zero_point) * (k[key][d] - k_zero_point)
//   p[key]     = min(round(softmax(score)[key] * p_inv_scale), p_max)   half to even, zero point 0
//   out[row]   = pv_scale * sum_key p[key] * (v[key] - v_zero_point)
// or, if `unnormalized` is not 0, with the normalization last:
//   p[key]     = min(round(exp(score[key] - largest score) * p_inv_scale), p_max)
//   out[row]   = pv_scale / sum_key p[key] * sum_key p[key] * (v[key] - v_zero_point)
//
// or, if score_inv_scale is not 0, with quantized scores:
//   s[key]     = clamp(round(sum_d .. * score_inv_scale), score_low, score_high)
//   score[key] = qk_scale * s[key]
//
// With a bias, added to score[key], or a window: as in attention_f32_ref.cl.
//
//   q, k, v  [tokens][stride] u8 or s8: head h of a row starts at column offset + h * head_size, so
//            that one [tokens][3 * hidden] matrix can be passed three times. Offsets in elements.
//   out      [tokens][heads * head_size]: f32, or round(out * out_inv_scale) + out_zero_point
//            saturated
//   seq_offsets[batch + 1]  first row of each sequence; attention stays inside its sequence
//   key_mask[tokens]        1 = attend, 0 = not; read only where use_mask is not 0
//   types    TYPE_U8 or TYPE_S8 (types.clh), of the result also TYPE_F32
//   qk_scale = scale of q * scale of k * softmax scale, or scale of the scores * softmax scale
//   p_max    = 255 (u8) or 127 (s8)
//   pv_scale = scale of p * scale of v, unnormalized the scale of v alone
//
// A row whose keys are all masked is 0. The arguments are those of every attention_s8 kernel.
// Grid: (ceil(longest sequence / block_rows), heads, batch), any local size.
// Bounds: head_size <= HEAD_MAX.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private sums
#endif
#include "attention/parameters.clh"
#include "attention/bias.clh"
#include "lib/types.clh"

int load(__global const uchar* data, size_t i, int type, int zero_point) {
  return (type == TYPE_U8 ? (int)data[i] : (int)as_char(data[i])) - zero_point;
}

int score(__global const uchar* q, int q_type, int q_zero_point, __global const uchar* k,
          int k_type, int k_zero_point, int head_size, float inv_scale, int low, int high) {
  int sum = 0;
  for (int d = 0; d < head_size; d++)
    sum += load(q, d, q_type, q_zero_point) * load(k, d, k_type, k_zero_point);
  return inv_scale == 0.0f ? sum : (int)clamp(rint(sum * inv_scale), (float)low, (float)high);
}

// In the kernel: the integer score of a key, its bias, and how far it is from the largest score.
#define SCORE(key)                                                                               \
  score(q_row, q_type, q_zero_point, k + (size_t)(key)*k_stride, k_type, k_zero_point, head_size, \
        score_inv_scale, score_low, score_high)
#define BIAS(key) bias_at(added, row - begin, (key)-begin)
#define RELATIVE(s, key) \
  (bias ? fma(qk_scale, (float)(s), BIAS(key)) - largest_sum : qk_scale * ((s)-largest))

__kernel void attention_s8(ATTENTION_S8_PARAMETERS) {
  const int head = get_global_id(1), sequence = get_global_id(2);
  if (head >= heads) return;
  const int begin = seq_offsets[sequence], end = seq_offsets[sequence + 1];
  const int first = begin + (int)get_global_id(0) * block_rows;
  q += q_offset + head * head_size;
  k += k_offset + head / heads_per_key * head_size;
  v += v_offset + head / heads_per_key * head_size;
  const Bias added = BIAS_OF(head, begin);

  for (int row = first; row < min(first + block_rows, end); row++) {
    __global const uchar* q_row = q + (size_t)row * q_stride;
    const int first_key = first_in_window(begin, row, window);
    const int end_key = end_in_window(end, row, window);
    int largest = INT_MIN;
    float largest_sum = -INFINITY;  // with a bias
    for (int key = first_key; key < end_key; key++) {
      if (use_mask && !key_mask[key]) continue;
      const int s = SCORE(key);
      largest = max(largest, s);
      if (bias) largest_sum = fmax(largest_sum, fma(qk_scale, (float)s, BIAS(key)));
    }
    float total = unnormalized ? 1.0f : 0.0f;
    for (int key = first_key; key < end_key && !unnormalized; key++)
      if (!use_mask || key_mask[key]) total += exp(RELATIVE(SCORE(key), key));

    int sums[HEAD_MAX], p_sum = 0;
    for (int d = 0; d < head_size; d++) sums[d] = 0;
    for (int key = first_key; key < end_key; key++) {
      if (use_mask && !key_mask[key]) continue;
      const float e = exp(RELATIVE(SCORE(key), key));
      const int p = min((int)rint(e / total * p_inv_scale), p_max);
      p_sum += p;
      for (int d = 0; d < head_size; d++)
        sums[d] += p * load(v, (size_t)key * v_stride + d, v_type, v_zero_point);
    }

    const size_t target = ((size_t)row * heads + head) * head_size;
    const float scale = unnormalized ? pv_scale / max(p_sum, 1) : pv_scale;
    const float low = out_type == TYPE_U8 ? 0.0f : -128.0f, high = low + 255.0f;
    for (int d = 0; d < head_size; d++) {
      const float y = sums[d] * scale;
      if (out_type == TYPE_F32)
        ((__global float*)out)[target + d] = y;
      else
        out[target + d] = (uchar)(int)clamp(rint(y * out_inv_scale) + out_zero_point, low, high);
    }
  }
}
