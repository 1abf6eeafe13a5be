// SPDX-License-Identifier: Apache-2.0
// Padded tokens to the packed form: packed[seq_offsets[b] + s] = padded[b][s].
//
//   padded [batch][seq]           packed [tokens]
//
//   | a0 | a1 |    |
//   | b0 | b1 | b2 |     --->     | a0 | a1 | b0 | b1 | b2 |     each a row of row_bytes
//                                 0         2              5     seq_offsets [batch + 1]
//
// No sequence is longer than seq.
//
// Grid: (ceil(batch * seq / rows_per_item)), any local size. Bounds: buffers begin at multiples of
// four bytes where row_bytes is one.
#include "persistent/place.clh"
#include "move/copy_bytes.clh"

KERNEL pack(__global const uchar* padded, __global uchar* packed, __global const int* seq_offsets,
            int batch, int seq, int row_bytes, int rows_per_item PLACE_PARAMETER) {
  const int first = PLACE.id.x * rows_per_item, last = min(first + rows_per_item, batch * seq);
  for (int row = first; row < last; row++) {
    const int b = row / seq, token = seq_offsets[b] + row % seq;
    if (token < seq_offsets[b + 1])
      copy_or_clear(padded + (size_t)row * row_bytes, packed + (size_t)token * row_bytes,
                    row_bytes);
  }
}

ALWAYS_MERGED(pack, (POINTER(0), POINTER(1), POINTER(2), INTEGER(3), INTEGER(4), INTEGER(5),
                     INTEGER(6), STEP_PLACE))
