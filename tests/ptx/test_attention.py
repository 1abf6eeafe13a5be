# SPDX-License-Identifier: Apache-2.0
"""Attention of NVIDIA's devices, as PTX: lengths around the tiles of 64 keys and 32 or 64 rows, heads of any size."""
import itertools
import unittest

import numpy as np

import attention
from attention import Case
from checks import KernelTest
from gemm import F32, S8, U8


class Attention(KernelTest):
    def expect(self, run, *lengths, **more):
        case = Case(lengths, **more)
        self.expect_near(*run(case), f"{run.__name__} {case}")

    def test_lengths_in_int8(self):
        for i, length in enumerate((1, 2, 31, 32, 33, 63, 64, 65, 129)):
            self.expect(attention.run_s8, length, rows=(64, 32)[i % 2], heads=1, out_type=(F32, U8, S8)[i % 3],
                        unnormalized=i // 2 % 2, quantized_scores=i % 5 == 3, mask=False)

    def test_several_sequences_in_int8(self):
        self.expect(attention.run_s8, 5, 0, 70, 1, mask=True, rows=32)
        self.expect(attention.run_s8, 3, 65, 64, mask=True, unnormalized=1, out_type=U8, types=(U8, U8, S8))

    def test_heads_in_int8(self):
        for i, head_size in enumerate((1, 4, 16, 31, 33, 65, 100, 128, 129, 256)):
            self.expect(attention.run_s8, 3, 40, head_size=head_size, heads=1 + i % 2,
                        types=((U8, S8)[i % 2], S8, U8), offset=(0, 16, 3)[i % 3],
                        unnormalized=i % 2, p_max=(255, 127)[i // 2 % 2])

    def test_the_plain_kernel_in_int8(self):
        self.expect(attention.run_s8, 5, 0, 17, head_size=32, mask=True, unit="ref")
        self.expect(attention.run_s8, 19, heads=1, head_size=33, unnormalized=1, out_type=S8, unit="ref")

    def test_scores_of_positions(self):
        for i, (head_size, count) in enumerate(((1, 1), (8, 31), (33, 32), (64, 70))):
            for of_keys in False, True:
                case = (5, 0, 17, 1), head_size, count, (F32, U8, S8)[(i + of_keys) % 3], of_keys, i % 2 == 0
                for variant in "ref", "group":
                    self.expect_near(*attention.run_position_scores(*case, variant=variant), (variant, case))

    def test_tiles_of_scores_of_positions(self):
        for i, length in enumerate((1, 63, 64, 65, 97, 129)):
            for of_keys in False, True:
                case = (length, 3), (64, 17, 4)[i % 3], 2 * length + 1, (F32, U8, S8)[i // 2], of_keys, i % 2 == 0
                self.expect_near(*attention.run_position_scores(*case, by_distance=True, offset=i % 2 * 16), case)

    def test_lengths_by_matrix_units(self):
        lengths = (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 97, 127, 128, 130, 200, 257)
        for i, (length, head_size) in enumerate(itertools.product(lengths, (32, 64))):
            signs = (U8, S8)[i % 2], (U8, S8)[i // 2 % 2], (U8, S8)[i // 3 % 2]
            self.expect(attention.run_s8, length, head_size=head_size, rows=(64, 32)[i // 4 % 2], heads=1,
                        out_type=(F32, U8, S8)[i % 3], unnormalized=i // 2 % 2, quantized_scores=i % 5 == 3,
                        types=signs, unit="mma")

    def test_more_keys_than_the_tiles_of_a_bert_by_matrix_units(self):
        self.expect(attention.run_s8, 512, heads=1, head_size=32, unit="mma")
        self.expect(attention.run_s8, 577, heads=1, head_size=32, unnormalized=1, mask=False, rows=32, unit="mma")

    def test_several_sequences_by_matrix_units(self):
        self.expect(attention.run_s8, 5, 0, 70, 1, mask=True, rows=32, unit="mma")
        self.expect(attention.run_s8, 64, 3, 65, 33, mask=True, unnormalized=1, out_type=U8, unit="mma")
        self.expect(attention.run_s8, 1, 130, 7, 32, 96, mask=True, head_size=32, quantized_scores=True, unit="mma")

    def test_emulated_matrix_units(self):
        self.expect(attention.run_s8, 33, heads=1, head_size=32, rows=32, quantized_scores=True, unit="emulated")
        self.expect(attention.run_s8, 70, heads=1, head_size=32, rows=32, types=(U8, U8, S8), unnormalized=1, unit="emulated")

    def test_heads_by_matrix_units(self):
        for i, head_size in enumerate((1, 2, 4, 16, 31, 33, 48, 65, 100, 128, 129, 256)):
            self.expect(attention.run_s8, 3, 40, head_size=head_size, heads=1 + i % 2,
                        types=((U8, S8)[i % 2], S8, U8), offset=(0, 16, 3)[i % 3], out_type=(F32, U8)[i // 2 % 2],
                        unnormalized=i % 2, p_max=(255, 127)[i // 2 % 2], unit="mma")

    def test_shared_key_heads(self):
        for run, units in (attention.run_s8, ("ref", "dot4", "mma")), (attention.run_f32, ("dot4",)), (attention.run_f16, ("mma",)):
            for unit in units:
                self.expect(run, 5, 33, heads=4, shared=2, head_size=32, rows=32, unit=unit)

    def test_biases_and_windows(self):
        for run in attention.run_s8, attention.run_f32:
            self.expect(run, 5, 70, 1, bias=True, rows=32)
            self.expect(run, 3, 66, heads=1, head_size=33, bias=True, mask=True)
            self.expect(run, 150, heads=1, head_size=32, window=20, rows=32)
            self.expect(run, 70, 3, heads=1, head_size=32, bias=True, window=1)
        self.expect(attention.run_s8, 20, heads=1, head_size=32, bias=True, unnormalized=1, quantized_scores=True)

    def test_biases_and_windows_by_matrix_units(self):
        for run in attention.run_s8, attention.run_f16:
            self.expect(run, 5, 70, 0, 1, bias=True, rows=32, unit="mma")
            self.expect(run, 3, 66, heads=1, head_size=33, bias=True, mask=True, rows=32, unit="mma")
            self.expect(run, 150, heads=1, head_size=32, window=20, rows=32, unit="mma")
            self.expect(run, 70, 3, heads=1, head_size=32, bias=True, window=1, rows=64, unit="mma")
            self.expect(run, 33, 257, heads=1, head_size=64, bias=True, window=100, rows=32, unit="mma")
            self.expect(run, 35, heads=1, head_size=32, bias=True, window=7, rows=32, unit="emulated")
        self.expect(attention.run_s8, 20, heads=1, head_size=32, bias=True, unnormalized=1, quantized_scores=True,
                    rows=32, unit="mma")

    def test_lengths_in_halves(self):
        lengths = (1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 96, 97, 127, 128, 130, 257)
        for i, (length, head_size) in enumerate(itertools.product(lengths, (32, 64))):
            self.expect(attention.run_f16, length, head_size=head_size, rows=(64, 32)[i // 2 % 2], heads=1, unit="mma")
        self.expect(attention.run_f16, 577, heads=1, head_size=32, unit="mma")

    def test_several_sequences_in_halves(self):
        self.expect(attention.run_f16, 5, 0, 70, 1, mask=True, rows=32, unit="mma")
        self.expect(attention.run_f16, 64, 3, 65, 33, mask=True, unit="mma")
        self.expect(attention.run_f16, 1, 130, 7, 32, 96, mask=True, head_size=32, unit="mma")

    def test_heads_in_halves(self):
        for i, head_size in enumerate((1, 2, 4, 6, 8, 16, 31, 33, 48, 65, 100, 128, 129, 256)):
            self.expect(attention.run_f16, 3, 40, head_size=head_size, heads=1 + i % 2, offset=(0, 16, 3, 2)[i % 4],
                        unit="mma")

    def test_random_shapes_in_halves(self):
        random = np.random.default_rng(8)
        for _ in range(12):
            head_size = int(random.choice((32, 64, 64, 128)))
            lengths = random.integers(1, 140, random.integers(1, 4))
            self.expect(attention.run_f16, *(int(n) for n in lengths), head_size=head_size,
                        heads=int(random.integers(1, 3)), mask=bool(random.integers(2)), unit="mma")

    def test_emulated_halves(self):
        self.expect(attention.run_f16, 33, heads=1, head_size=32, rows=32, unit="emulated")
        self.expect(attention.run_f16, 5, 70, heads=1, head_size=31, rows=32, mask=True, unit="emulated")

    def test_sharp_scores_in_halves(self):
        def sharpen(data, case):
            data[:, case.offsets[0]:case.offsets[2]] *= 6
        case = Case((130,), heads=1, unit="mma")
        found, expected, bound = attention.run_f16(case, change=sharpen)
        self.expect_near(found, expected, bound + 2e-4, "sharp")

    def test_masked_keys_may_hold_anything_in_halves(self):
        def poison(data, case):
            data[case.keys == 0, case.offsets[1]:] = np.nan
        self.expect_near(*attention.run_f16(Case((9, 70), heads=1, mask=True, unit="mma"), change=poison), "masked NaN")

    def test_lengths_in_floats(self):
        for i, length in enumerate((1, 31, 32, 33, 64, 65)):
            self.expect(attention.run_f32, length, rows=(64, 32)[i % 2], heads=1)

    def test_several_sequences_in_floats(self):
        self.expect(attention.run_f32, 5, 0, 70, 1, mask=True, rows=32)
        self.expect(attention.run_f32, 3, 66, mask=True)

    def test_heads_in_floats(self):
        for i, head_size in enumerate((1, 4, 31, 33, 65, 128, 256)):
            self.expect(attention.run_f32, 3, 33, head_size=head_size, heads=1 + i % 2, offset=(0, 4, 3)[i % 3])
