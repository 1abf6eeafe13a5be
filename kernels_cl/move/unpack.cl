// SPDX-License-Identifier: Apache-2.0
// Packed tokens to the padded form: padded[b][s] = packed[seq_offsets[b] + s], rows of padding are
// 0. Rows may be split in two.
//
//   packed [tokens]        row_bytes | second_bytes        seq_offsets[batch + 1]: the first row of
//                              |             |             each sequence
//   padded [batch][seq]    row_bytes         |
//   second [batch][seq]                 second_bytes       null where second_bytes is 0
//
// A sequence longer than seq is cut.
//
// Grid: (ceil(batch * seq / rows_per_item)), any local size. Bounds: buffers begin at multiples of
// four bytes where row_bytes is one; second_bytes is one only with such a row_bytes.
#include "persistent/place.clh"
#include "move/copy_bytes.clh"

KERNEL unpack(__global const uchar* packed, __global uchar* padded, __global uchar* second,
              __global const int* seq_offsets, int batch, int seq, int row_bytes, int second_bytes,
              int rows_per_item PLACE_PARAMETER) {
  const int first = PLACE.id.x * rows_per_item, last = min(first + rows_per_item, batch * seq);
  for (int row = first; row < last; row++) {
    const int b = row / seq, token = seq_offsets[b] + row % seq;
    __global const uchar* from =
        token < seq_offsets[b + 1] ? packed + (size_t)token * (row_bytes + second_bytes) : 0;
    copy_or_clear(from, padded + (size_t)row * row_bytes, row_bytes);
    if (second_bytes != 0)
      copy_or_clear(from ? from + row_bytes : 0, second + (size_t)row * second_bytes, second_bytes);
  }
}

ALWAYS_MERGED(unpack, (POINTER(0), POINTER(1), POINTER(2), POINTER(3), INTEGER(4), INTEGER(5),
                       INTEGER(6), INTEGER(7), INTEGER(8), STEP_PLACE))
