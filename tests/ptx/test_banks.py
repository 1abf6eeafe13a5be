# SPDX-License-Identifier: Apache-2.0
"""Conflicts between banks of shared memory, counted while the kernels run: loops along K are free of them."""
import unittest

import numpy as np

import attention
import banks
import toolchain
from checks import KernelTest
from gemm import DOT4, F32_GROUP, MMA, WGMMA, CaseS8, run_floats, run_s8


class Wavefronts(unittest.TestCase):
    def test_strides(self):
        lanes = np.arange(32)
        for stride, expected in ((0, 1), (1, 1), (2, 2), (3, 1), (8, 8), (32, 32), (33, 1)):
            self.assertEqual(banks.wavefronts(lanes * stride, 4, lanes), (expected, 1))
        for stride, expected in ((4, 4), (8, 8), (12, 4), (32, 32)):  # 16 bytes: a quarter of a warp at a time
            self.assertEqual(banks.wavefronts(lanes * stride, 16, lanes), (expected, 4))
        self.assertEqual(banks.wavefronts(np.arange(64), 4, np.arange(64)), (2, 2))  # two warps
        self.assertEqual(banks.wavefronts(np.array([0, 32]), 4, np.array([3, 40])), (2, 2))


class Kernels(KernelTest):
    def taken(self, run):
        """Kind of access -> wavefronts for each that is needed."""
        before = set(toolchain.programs)
        toolchain.counts_banks = True
        self.addCleanup(setattr, toolchain, "counts_banks", False)
        self.expect_near(*run())
        (made,) = set(toolchain.programs) - before
        return banks.by_kind(toolchain.programs[made])

    def taken_by_gemm(self, variant, case, edits=()):
        return self.taken(lambda: (run_s8(variant, case, edits), *case.expected()))

    def test_loops_along_k(self):
        for tile in ((128, 128), (64, 128), (64, 64), (32, 64)):
            taken = self.taken_by_gemm(MMA.with_tile(*tile), CaseS8(*tile, 256))
            self.assertEqual((taken["cp.async"], taken["ldmatrix"]), (1, 1), tile)
            # The sums on their way out lie at a pitch that serves their reads.
            self.assertLessEqual(max(taken.values()), 2, (tile, taken))
        for tile in ((128, 256), (128, 128), (64, 128), (64, 64)):
            taken = self.taken_by_gemm(WGMMA.with_tile(*tile), CaseS8(*tile, 256))
            self.assertEqual(set(taken.values()), {1}, (tile, taken))
        for tile in ((128, 128), (64, 64), (32, 64)):
            taken = self.taken_by_gemm(DOT4.with_tile(*tile), CaseS8(*tile, 64))
            self.assertLessEqual(max(v for k, v in taken.items() if k != "ld.shared"), 1, (tile, taken))

    def test_floats_of_work_groups(self):
        for tile in ((128, 128), (64, 64)):
            taken = self.taken(lambda: run_floats(F32_GROUP.with_tile(*tile), *tile, 32))  # noqa: B023
            self.assertEqual(set(taken.values()), {1}, (tile, taken))

    def test_attention_by_matrix_units(self):
        for rows, head_size in ((64, 64), (32, 64), (64, 32), (32, 128)):
            case = attention.Case((70,), heads=1, rows=rows, head_size=head_size, unit="mma")
            taken = self.taken(lambda: attention.run_s8(case))  # noqa: B023
            self.assertEqual(set(taken.values()), {1}, (rows, head_size, taken))

    def test_scores_of_positions(self):
        for of_keys in False, True:
            toolchain.programs.clear()
            taken = self.taken(lambda: attention.run_position_scores(  # noqa: B023
                (64,), 64, 127, by_distance=True, of_keys=of_keys))
            self.assertEqual({v for k, v in taken.items() if k != "st.shared"}, {1}, (of_keys, taken))
            self.assertLess(taken["st.shared"], 1.5, (of_keys, taken))

    def test_attention_in_halves(self):
        for rows, head_size in ((64, 64), (32, 64), (64, 32), (32, 128), (32, 256)):
            case = attention.Case((70,), heads=1, rows=rows, head_size=head_size, unit="mma")
            taken = self.taken(lambda: attention.run_f16(case))  # noqa: B023
            self.assertEqual(set(taken.values()), {1}, (rows, head_size, taken))

    def test_pads_are_needed(self):
        edits = (("gemm/gemm_s8_mma.cl", "#define PAD (8 / CELLS_K)", "#define PAD 0"),)
        self.assertGreater(self.taken_by_gemm(MMA, CaseS8(128, 128, 256), edits)["cp.async"], 1)
        edits = (("attention/attention_f16_mma.clh", "(HEAD_MAX > 32 ? 1 : 2)", "0"),)
        taken = self.taken(lambda: attention.run_f16(attention.Case((70,), heads=1, unit="mma"), edits))
        self.assertGreater(max(taken.values()), 1)
