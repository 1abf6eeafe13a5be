# SPDX-License-Identifier: Apache-2.0
"""Row kernels of NVIDIA's devices, prepacking and sums of rows, as PTX."""
import unittest

import numpy as np

import rows
from checks import KernelTest
from gemm import F32, S8, U8, prepacked
from rows import BF16, F16

SIZES = (1, 2, 3, 4, 5, 63, 64, 255, 256, 257, 768)


class Rows(KernelTest):
    def expect(self, results, label):
        for name, found, expected, bound in results:
            self.expect_near(found, expected, bound, f"{label} {name}")
        type(self).launches -= len(results) - 1

    def test_add_norm(self):
        for i, hidden in enumerate((*SIZES, 1024, 1025, 2052)):
            self.expect(rows.add_norm(3, hidden, residual_type=None if i % 4 == 3 else F32), hidden)
        for i, hidden in enumerate((64, 67)):
            for kinds in ((U8, S8, BF16, None, True, True), (S8, None, U8, S8, False, False),
                          (F32, U8, None, None, True, False), (F32, F32, BF16, S8, False, True)):
                self.expect(rows.add_norm(2, hidden, *kinds), (hidden, kinds))

    def test_add_norm_of_squares(self):
        for i, hidden in enumerate((1, 6, 64, 67, 255, 257, 1025)):
            self.expect(rows.add_norm(3, hidden, residual_type=(F32, None, U8)[i % 3], beta=i % 2, rms=True), hidden)
        for hidden in 64, 67:
            self.expect(rows.add_norm_split_k(3, hidden, 2, rms=True), hidden)

    def test_add_norm_of_parts(self):
        for i, hidden in enumerate((*SIZES, 1024, 1025, 2052)):
            self.expect(rows.add_norm_split_k(3, hidden, (1, 2, 5)[i % 3], (F32, U8, S8, None)[i % 4], a_signed=i % 2,
                                            bias=i % 5 > 0), hidden)

    def test_embed_norm(self):
        for i, hidden in enumerate((1, 6, 64, 255, 257)):
            results, error = rows.embed_norm(4, hidden, (F32, F16)[i % 2], positions=i % 3 > 0, types=i % 2 == 0,
                                             q_type=(S8, U8, BF16)[i % 3], bad_id=i == 3)
            self.expect(results, hidden)
            self.assertEqual(error, i == 3)

    def test_quantize_rows(self):
        for i, hidden in enumerate(SIZES):
            self.expect(rows.quantize_rows(3, hidden, (U8, S8)[i % 2]), hidden)

    def test_softmax(self):
        for i, size in enumerate((*SIZES, 1100)):
            self.expect(rows.softmax(3, size, logarithm=i % 2, in_place=i % 3 == 0), size)

    def test_rotary(self):
        for lengths, heads, size, rows_per_item in (((1,), 1, 2, 1), ((1, 5, 2), 2, 6, 1), ((3, 0, 9, 1, 7), 3, 8, 2),
                                                    ((33, 2, 40), 1, 64, 1)):
            for out_type in F32, U8, S8:
                for table_rows in 0, max(lengths) + out_type:
                    for columns in False, True:
                        self.expect_near(*rows.rotary(lengths, heads, size, rows_per_item, out_type=out_type,
                                                      table_rows=table_rows, columns=columns),
                                         (lengths, size, out_type, table_rows, columns))

    def test_pool(self):
        for i, (hidden, columns) in enumerate(((1, 1), (3, 2), (64, 64), (257, 255), (384, 384), (384, 128))):
            for kind in range(4):
                self.expect_near(*rows.pool((1, 5, 2), hidden, columns, kind, normalize=(i + kind) % 2 == 0,
                                            masked=i % 3 == 1), (hidden, columns, kind))


class Weights(KernelTest):
    def test_prepacking_of_bytes(self):
        for group in (4, 16):
            for k, parts in ((1, (1,)), (group, (64,)), (group + 1, (10, 70)), (2 * group - 1, (64, 1, 63))):
                packed, sums, w = rows.prepack_s8(k, parts, group)
                self.expect_near(packed, prepacked(w, group, np.int8), 0, (k, parts))
                self.expect_near(sums, w.sum(axis=0, dtype=np.int32), 0, (k, parts))
                type(self).launches += len(parts) - 2

    def test_prepacking_of_floats(self):
        for k, n in ((1, 1), (2, 64), (7, 70)):
            packed, w = rows.prepack_floats("prepack_pairs", k, n, 64, half=True)
            self.expect_near(packed, prepacked(w, 2, np.float16).ravel(), 0, (k, n))
            for half in (False, True):
                packed, w = rows.prepack_floats("prepack_f32", k, n, 16, half)
                panels = np.zeros((k, -(-n // 16) * 16), w.dtype)
                panels[:, :n] = w
                self.expect_near(packed, panels.reshape(k, -1, 16).transpose(1, 0, 2).ravel(), 0, (k, n, half))

    def test_row_sums(self):
        for i, (m, k) in enumerate(((1, 1), (2, 15), (5, 16), (4, 37))):
            self.expect_near(*rows.row_sums(m, k, (U8, S8)[i % 2], measured=i // 2), 0, (m, k))
