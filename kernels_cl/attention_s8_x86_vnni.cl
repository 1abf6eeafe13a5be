// SPDX-License-Identifier: Apache-2.0
// Attention of packed sequences in int8 for x86 with AVX-512 VNNI. Same arguments and same meaning as
// attention_s8_ref.cl; integer sums are exact.
// The lanes of a vector are 16 query rows; one dot instruction multiplies four bytes of each row by
// four bytes of one key, so that maximum, sum and quantization of the softmax need no work across lanes:
//   packed_q [d/4][rows][4]   s8, of this block of rows
//   packed_k [keys][d/4][4]   u8: keys as they lie, attended ones only, each sign-shifted if s8
//   scores   [keys][rows]     s32, then the powers (f32), then [keys/4][rows][4] u8 probabilities
//   packed_v [keys/4][d][4]   s8: the bytes of four keys side by side
//
// Zero points: with q' = q (s8) and k' = k (u8) after the sign shift, z = zero point of q',
//   sum (q - zq)(k - zk) = sum q' k' - z * sum k' + terms of the row alone, which softmax cancels.
// The maximum is taken among integers, so no rounding happens before the exponent.
// Up to BLOCK_KEYS keys every score is made once; with more, a first pass over the blocks finds maximum
// and sum, and a second makes the scores again.
//
// Grid: (ceil(longest sequence / block_rows), heads, batch), local size 1. Keys are packed once for all
// rows of a work-item: block_rows is best a multiple of 32, as large as leaves work for every core.
// Bounds: head_size <= HEAD_MAX. No unsafe math options.

#ifndef HEAD_MAX
#define HEAD_MAX 256  // largest head_size: size of the private arrays
#endif
#ifndef BLOCK_KEYS
#define BLOCK_KEYS 512  // keys held at a time, a multiple of 8
#endif
#define TILE 8   // keys or columns in one register tile: TILE * 2 sums
#define ROWS 32  // rows held at a time: two vectors
#define TYPE_F32 0
#define TYPE_U8 1
#define TYPE_S8 2

// acc += the four products of each lane: a unsigned bytes, b signed bytes.
#define VPDPBUSD(acc, a, b) __asm__("vpdpbusd %2, %1, %0" : "+v"(acc) : "v"(a), "v"(b))

// 2^x for x <= 0, relative error below 3e-7: 2^n * 2^f with n = round(x), |f| <= 1/2.
float16 exp2_negative(float16 x) {
  x = x > -126.0f ? x : (float16)(-126.0f);
  const float16 shifted = x + 12582912.0f;  // 1.5 * 2^23: the sum ends at the units
  const float16 f = x - (shifted - 12582912.0f);
  float16 p = fma(f, (float16)(1.3264727e-3f), (float16)(9.6715130e-3f));
  p = fma(f, p, (float16)(5.5507336e-2f));
  p = fma(f, p, (float16)(2.4022242e-1f));
  p = fma(f, p, (float16)(6.9314700e-1f));
  p = fma(f, p, (float16)(1.0f));
  return as_float16(as_int16(p) + (as_int16(shifted) << 23));
}

// round(x * factor) half to even, at most limit, for 0 <= x * factor < 2^22.
int16 quantize_probability(float16 x, float16 factor, int limit) {
  const int16 p = as_int16(x * factor + 12582912.0f) - 0x4b400000;
  return p < limit ? p : (int16)(limit);
}

__attribute__((reqd_work_group_size(1, 1, 1)))
__kernel void attention_s8(__global const uchar* q, int q_stride, int q_offset, int q_type,
                           int q_zero_point, __global const uchar* k, int k_stride, int k_offset,
                           int k_type, int k_zero_point, __global const uchar* v, int v_stride,
                           int v_offset, int v_type, int v_zero_point, __global uchar* out,
                           int out_type, float out_inv_scale, int out_zero_point,
                           __global const int* seq_offsets, __global const uchar* key_mask,
                           int use_mask, int heads, int head_size, float qk_scale, float p_inv_scale,
                           int p_max, float pv_scale, int block_rows) {
  const int head = get_global_id(1), sequence = get_global_id(2);
  const int begin = seq_offsets[sequence], end = seq_offsets[sequence + 1];
  const int first = begin + (int)get_global_id(0) * block_rows;
  const int last = min(first + block_rows, end);
  if (first >= last) return;
  q += q_offset + head * head_size;
  k += k_offset + head * head_size;
  v += v_offset + head * head_size;

  int16 packed_q[HEAD_MAX / 4 * 2];
  int packed_k[BLOCK_KEYS * (HEAD_MAX / 4)];
  int packed_v[BLOCK_KEYS / 4 * HEAD_MAX];
  int16 scores[BLOCK_KEYS * 2];
  int16 result[HEAD_MAX * 2];
  int shift[BLOCK_KEYS];  // z * sum of the bytes of each key
  int keys[BLOCK_KEYS];   // row of each attended key of the block

  const int groups = (head_size + 3) / 4;
  const uchar q_flip = q_type == TYPE_U8 ? 0x80 : 0;
  const uchar k_flip = k_type == TYPE_S8 ? 0x80 : 0;
  const uchar v_flip = v_type == TYPE_U8 ? 0x80 : 0;
  const int q_zero = q_zero_point - q_flip, v_zero = v_zero_point - v_flip;
  const float exponent = qk_scale * M_LOG2E_F;

  int attended = end - begin;
  if (use_mask) {
    attended = 0;
    for (int key = begin; key < end; key++) attended += key_mask[key] != 0;
  }
  const int blocks = (attended + BLOCK_KEYS - 1) / BLOCK_KEYS;
  const int steps = blocks > 1 ? 2 * blocks : blocks;
  int packed = -1, count = 0, next = begin;

  for (int row = first; row < last; row += ROWS) {
    uchar* q_lane = (uchar*)packed_q;
    for (int r = 0; r < ROWS; r++) {
      __global const uchar* source = q + (size_t)min(row + r, last - 1) * q_stride;
      for (int d = 0; d < head_size; d++)
        q_lane[((d >> 2) * ROWS + r) * 4 + (d & 3)] = source[d] ^ q_flip;
      for (int d = head_size; d < groups * 4; d++) q_lane[((d >> 2) * ROWS + r) * 4 + (d & 3)] = 0;
    }
    for (int i = 0; i < head_size * 2; i++) result[i] = 0;
    int16 largest0 = INT_MIN, largest1 = INT_MIN, p_sum0 = 0, p_sum1 = 0;
    float16 total0 = 0.0f, total1 = 0.0f;

    for (int step = 0; step < steps; step++) {
      const int block = step < blocks ? step : step - blocks;
      const int measure = step < blocks, finish = steps == blocks || !measure;
      if (packed != block) {
        if (block == 0) next = begin;
        for (count = 0; next < end && count < BLOCK_KEYS; next++)
          if (!use_mask || key_mask[next]) keys[count++] = next;
        uchar* k_byte = (uchar*)packed_k;
        for (int j = 0; j < count; j++) {
          __global const uchar* source = k + (size_t)keys[j] * k_stride;
          int sum = 0;
          for (int d = 0; d < head_size; d++) {
            k_byte[j * groups * 4 + d] = source[d] ^ k_flip;
            sum += source[d] ^ k_flip;
          }
          for (int d = head_size; d < groups * 4; d++) k_byte[j * groups * 4 + d] = 0;
          shift[j] = q_zero * sum;
        }
        uchar* v_byte = (uchar*)packed_v;
        for (int j = 0; j < ((count + 3) & ~3); j++) {
          __global const uchar* source = v + (size_t)keys[min(j, count - 1)] * v_stride;
          for (int d = 0; d < head_size; d++)
            v_byte[((j >> 2) * head_size + d) * 4 + (j & 3)] = source[d] ^ v_flip;
        }
        packed = block;
      }

      int16 block0 = INT_MIN, block1 = INT_MIN;
      for (int j = 0; j < count; j += TILE) {
        int16 a0[TILE], a1[TILE];
        const int* key[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          const int known = min(j + t, count - 1);  // the last tile repeats the last key
          key[t] = packed_k + known * groups;
          a0[t] = a1[t] = -shift[known];
        }
        for (int d = 0; d < groups; d++) {
          const int16 q0 = packed_q[d * 2], q1 = packed_q[d * 2 + 1];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const int16 x = key[t][d];
            VPDPBUSD(a0[t], x, q0);
            VPDPBUSD(a1[t], x, q1);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          block0 = a0[t] > block0 ? a0[t] : block0;
          block1 = a1[t] > block1 ? a1[t] : block1;
          scores[(j + t) * 2] = a0[t];
          scores[(j + t) * 2 + 1] = a1[t];
        }
      }
      if (measure) {
        block0 = largest0 > block0 ? largest0 : block0;
        block1 = largest1 > block1 ? largest1 : block1;
        total0 *= exp2_negative((convert_float16(largest0) - convert_float16(block0)) * exponent);
        total1 *= exp2_negative((convert_float16(largest1) - convert_float16(block1)) * exponent);
        largest0 = block0;
        largest1 = block1;
      }
      for (int j = 0; j < count; j++) {
        const float16 e0 = exp2_negative(convert_float16(scores[j * 2] - largest0) * exponent);
        const float16 e1 = exp2_negative(convert_float16(scores[j * 2 + 1] - largest1) * exponent);
        scores[j * 2] = as_int16(e0);
        scores[j * 2 + 1] = as_int16(e1);
        if (measure) {
          total0 += e0;
          total1 += e1;
        }
      }
      if (!finish) continue;

      for (int j = count; j < ((count + 3) & ~3); j++) scores[j * 2] = scores[j * 2 + 1] = 0;
      const float16 factor0 = p_inv_scale / total0, factor1 = p_inv_scale / total1;
      const int key_groups = (count + 3) / 4;
      for (int g = 0; g < key_groups; g++) {
        int16 p0 = 0, p1 = 0;
#pragma unroll
        for (int t = 0; t < 4; t++) {
          const int j = (g * 4 + t) * 2;
          p0 |= quantize_probability(as_float16(scores[j]), factor0, p_max) << (8 * t);
          p1 |= quantize_probability(as_float16(scores[j + 1]), factor1, p_max) << (8 * t);
        }
        const int16 ones = 0x01010101;
        VPDPBUSD(p_sum0, p0, ones);
        VPDPBUSD(p_sum1, p1, ones);
        scores[g * 2] = p0;
        scores[g * 2 + 1] = p1;
      }
      for (int d = 0; d < head_size; d += TILE) {
        int16 a0[TILE], a1[TILE];
#pragma unroll
        for (int t = 0; t < TILE; t++) a0[t] = a1[t] = 0;
        for (int g = 0; g < key_groups; g++) {
          const int* value = packed_v + g * head_size + d;
          const int16 p0 = scores[g * 2], p1 = scores[g * 2 + 1];
#pragma unroll
          for (int t = 0; t < TILE; t++) {
            const int16 x = value[t];
            VPDPBUSD(a0[t], p0, x);
            VPDPBUSD(a1[t], p1, x);
          }
        }
#pragma unroll
        for (int t = 0; t < TILE; t++) {
          if (d + t < head_size) {
            result[(d + t) * 2] += a0[t];
            result[(d + t) * 2 + 1] += a1[t];
          }
        }
      }
    }

    const int16 base0 = p_sum0 * v_zero, base1 = p_sum1 * v_zero;
    for (int d = 0; d < head_size; d++) {
      float16 y0 = convert_float16(result[d * 2] - base0) * pv_scale;
      float16 y1 = convert_float16(result[d * 2 + 1] - base1) * pv_scale;
      if (out_type != TYPE_F32) {
        const float low = (out_type == TYPE_U8 ? 0.0f : -128.0f) - out_zero_point;
        const float high = low + 255.0f;
        y0 *= out_inv_scale, y1 *= out_inv_scale;
        y0 = y0 > low ? (y0 < high ? y0 : (float16)(high)) : (float16)(low);
        y1 = y1 > low ? (y1 < high ? y1 : (float16)(high)) : (float16)(low);
        result[d * 2] = as_int16(y0 + 12582912.0f) + out_zero_point;  // the low byte is the answer
        result[d * 2 + 1] = as_int16(y1 + 12582912.0f) + out_zero_point;
      } else {
        result[d * 2] = as_int16(y0);
        result[d * 2 + 1] = as_int16(y1);
      }
    }
    const int* lane = (const int*)result;
    for (int r = 0; r < min(ROWS, last - row); r++) {
      const size_t target = ((size_t)(row + r) * heads + head) * head_size;
      if (out_type == TYPE_F32)
        for (int d = 0; d < head_size; d++) ((__global int*)out)[target + d] = lane[d * ROWS + r];
      else
        for (int d = 0; d < head_size; d++) out[target + d] = (uchar)lane[d * ROWS + r];
    }
  }
}
