// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in f32 for CPUs with wide vectors: online softmax over blocks of keys.
//
//   out[row] = sum_key softmax_key(scale * q[row] . k[key]) * v[key]     within one head of one sequence
//
//   q, k, v  [tokens][stride]: head h of a row starts at column offset + h * head_size, so that one
//            [tokens][3 * hidden] product can be passed three times. Strides and offsets in elements.
//   out      [tokens][heads * head_size]
//   seq_offsets[batch + 1]  first row of each sequence; attention stays inside its sequence
//   key_mask[tokens]        1 = attend, 0 = not; read only where use_mask is not 0
//
// The lanes of a vector are query rows, so keys and values are read as they lie, one scalar for all
// lanes, and maximum and sum need no work across lanes:
//
//   scores[key][rows]  = k[key][d] * query[d][rows]    summed over d, KEY_TILE keys at a time
//   result[d][rows]    = v[key][d] * scores[key][rows] summed over the keys, HEAD_TILE columns at a time
//
// Keys are gathered into a list before they are used: a masked key is not there at all, and a padded
// sequence gives the bytes of a packed one. A row whose keys are all masked is 0.
//
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1.
// Bounds: head_size <= HEAD_MAX; block_rows best a multiple of 2 * LANES. No unsafe math options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 64  // keys whose scores are held at a time
#endif
#ifdef __AVX512F__
#define LANES 16  // rows in one vector
#define TILE 8    // keys or columns in one register tile: TILE * 2 sums
typedef float16 floatv;
typedef int16 intv;
#define as_floatv as_float16
#define as_intv as_int16
#else
#define LANES 8
#define TILE 4
typedef float8 floatv;
typedef int8 intv;
#define as_floatv as_float8
#define as_intv as_int8
#endif
#define ROWS (2 * LANES)  // rows held at a time: two vectors

// 2^x for x <= 0, relative error below 3e-7: 2^n * 2^f with n = round(x), |f| <= 1/2.
floatv exp2_negative(floatv x) {
  x = x > -126.0f ? x : (floatv)(-126.0f);
  const floatv shifted = x + 12582912.0f;  // 1.5 * 2^23: the sum ends at the units
  const floatv f = x - (shifted - 12582912.0f);
  floatv p = fma(f, (floatv)(1.3264727e-3f), (floatv)(9.6715130e-3f));
  p = fma(f, p, (floatv)(5.5507336e-2f));
  p = fma(f, p, (floatv)(2.4022242e-1f));
  p = fma(f, p, (floatv)(6.9314700e-1f));
  p = fma(f, p, (floatv)(1.0f));
  return as_floatv(as_intv(p) + (as_intv(shifted) << 23));
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void attention_f32(__global const float* q, int q_stride, int q_offset,
                            __global const float* k, int k_stride, int k_offset,
                            __global const float* v, int v_stride, int v_offset,
                            __global float* out, __global const int* seq_offsets,
                            __global const uchar* key_mask, int use_mask, int heads, int head_size,
                            float scale, int block_rows) {
  const int head = get_global_id(1), sequence = get_global_id(2);
  const int begin = seq_offsets[sequence], end = seq_offsets[sequence + 1];
  const int first = begin + (int)get_global_id(0) * block_rows;
  const int last = min(first + block_rows, end);
  q += q_offset + head * head_size;
  k += k_offset + head * head_size;
  v += v_offset + head * head_size;
  out += head * head_size;

  floatv query[HEAD_MAX * 2];      // [d][rows], times scale * log2(e)
  floatv result[HEAD_MAX * 2];     // [d][rows]
  floatv scores[BLOCK_KEYS * 2];   // [key][rows], then the powers of them
  int keys[BLOCK_KEYS + TILE];     // rows of the attended keys of this block

  for (int row = first; row < last; row += ROWS) {
    float* query_lane = (float*)query;
    for (int r = 0; r < ROWS; r++) {
      __global const float* source = q + (size_t)min(row + r, last - 1) * q_stride;
      for (int d = 0; d < head_size; d++) query_lane[d * ROWS + r] = source[d] * (scale * M_LOG2E_F);
    }
    for (int i = 0; i < head_size * 2; i++) result[i] = 0.0f;
    floatv largest0 = -FLT_MAX, largest1 = -FLT_MAX, total0 = 0.0f, total1 = 0.0f;

    for (int next = begin; next < end;) {
      int count = 0;
      for (; next < end && count < BLOCK_KEYS; next++)
        if (!use_mask || key_mask[next]) keys[count++] = next;
      if (count == 0) break;
      for (int t = 0; t < TILE; t++) keys[count + t] = keys[count - 1];  // whole tiles below

      floatv block0 = largest0, block1 = largest1;
      for (int j = 0; j < count; j += TILE) {
        floatv a0[TILE], a1[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) a0[t] = a1[t] = 0.0f;
        __global const float* key[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) key[t] = k + (size_t)keys[j + t] * k_stride;
        for (int d = 0; d < head_size; d++) {
          const floatv q0 = query[d * 2], q1 = query[d * 2 + 1];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const floatv x = key[t][d];
            a0[t] = fma(x, q0, a0[t]);
            a1[t] = fma(x, q1, a1[t]);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {  // a key repeated by the last tile leaves the maximum as it is
          block0 = a0[t] > block0 ? a0[t] : block0;
          block1 = a1[t] > block1 ? a1[t] : block1;
          if (j + t < BLOCK_KEYS) {
            scores[(j + t) * 2] = a0[t];
            scores[(j + t) * 2 + 1] = a1[t];
          }
        }
      }

      const floatv old0 = exp2_negative(largest0 - block0), old1 = exp2_negative(largest1 - block1);
      total0 *= old0;
      total1 *= old1;
      largest0 = block0;
      largest1 = block1;
      for (int j = 0; j < count; j++) {
        const floatv p0 = exp2_negative(scores[j * 2] - largest0);
        const floatv p1 = exp2_negative(scores[j * 2 + 1] - largest1);
        total0 += p0;
        total1 += p1;
        scores[j * 2] = p0;
        scores[j * 2 + 1] = p1;
      }

      int d = 0;
      for (; d + TILE <= head_size; d += TILE) {
        floatv a0[TILE], a1[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          a0[t] = result[(d + t) * 2] * old0;
          a1[t] = result[(d + t) * 2 + 1] * old1;
        }
        for (int j = 0; j < count; j++) {
          __global const float* value = v + (size_t)keys[j] * v_stride + d;
          const floatv p0 = scores[j * 2], p1 = scores[j * 2 + 1];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const floatv x = value[t];
            a0[t] = fma(x, p0, a0[t]);
            a1[t] = fma(x, p1, a1[t]);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          result[(d + t) * 2] = a0[t];
          result[(d + t) * 2 + 1] = a1[t];
        }
      }
      for (; d < head_size; d++) {
        floatv a0 = result[d * 2] * old0, a1 = result[d * 2 + 1] * old1;
        for (int j = 0; j < count; j++) {
          const floatv x = v[(size_t)keys[j] * v_stride + d];
          a0 = fma(x, scores[j * 2], a0);
          a1 = fma(x, scores[j * 2 + 1], a1);
        }
        result[d * 2] = a0;
        result[d * 2 + 1] = a1;
      }
    }

    floatv inverse[2];
    inverse[0] = total0 > 0.0f ? 1.0f / total0 : (floatv)(0.0f);
    inverse[1] = total1 > 0.0f ? 1.0f / total1 : (floatv)(0.0f);
    const float* result_lane = (const float*)result;
    for (int r = 0; r < min(ROWS, last - row); r++) {
      const float factor = ((const float*)inverse)[r];
      __global float* target = out + (size_t)(row + r) * heads * head_size;
      for (int d = 0; d < head_size; d++) target[d] = result_lane[d * ROWS + r] * factor;
    }
  }
}
