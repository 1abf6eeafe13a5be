# SPDX-License-Identifier: Apache-2.0
"""The GEMMs of NVIDIA's devices, as PTX: every tile and every tail, every epilogue."""
import dataclasses
import itertools
import unittest

import toolchain
from checks import KernelTest
from gemm import (DOT4, F16, F32, F32_GROUP, F32_PORTABLE, MATRIX, MMA, S8, S32, U8, WGMMA, CaseS8, run_floats,
                  run_s8)

TILES = ((128, 128), (64, 128), (64, 64), (32, 64))


def around(*sizes):
    return [s + d for s in sizes for d in (-1, 0, 1) if s + d > 0]


def shapes(tile, depths):
    """One shape for each depth; sizes of M and N go round, with steps that have no divisor in common."""
    rows, columns = around(1, tile[0]) + [tile[0] // 2 + 3], around(1, tile[1]) + [4, tile[1] - 4]
    for i, depth in enumerate(depths):
        yield rows[i * 3 % len(rows)], columns[i * 2 % len(columns)], depth


class GemmS8(KernelTest):
    def expect(self, variant, case, parts=0):
        self.expect_near(run_s8(variant, case, parts=parts), *case.expected(),
                         f"{variant.program} {variant.tile} {case} {parts}")

    def test_tails_by_mma(self):
        # A strip is 32 or 64 bytes along K, the ring has 4 of them; a cell has 16 bytes.
        for tile in TILES:
            variant = MMA.with_tile(*tile)
            strip = 64 if tile[0] < 64 else 32
            depths = [1, 2, 15, 16, 17, *around(strip), *around(2 * strip), *around(4 * strip), 5 * strip + 16]
            for i, (m, n, k) in enumerate(shapes(tile, depths)):
                self.expect(variant, CaseS8(m, n, k, a_signed=i % 2))

    def test_tails_by_wgmma(self):
        # A strip is 32 or 64 bytes along K, the ring has 3 to 6 of them.
        for tile in ((128, 256), (128, 128), (64, 128), (64, 64)):
            variant = WGMMA.with_tile(*tile)
            strip, stages = (64 if tile[0] < 128 else 32), (4 if tile[1] > 128 or tile == (64, 128) else 6)
            depths = [1, 15, 16, 17, *around(strip), *around(2 * strip), *around((stages - 2) * strip),
                      *around(stages * strip), (2 * stages + 1) * strip + 16]
            for i, (m, n, k) in enumerate(shapes(tile, depths)):
                self.expect(variant, CaseS8(m, n, k, a_signed=i % 2))
        for cells, (m, n, k) in itertools.product((2, 4), ((65, 70, 96), (64, 64, 300))):
            variant = WGMMA.with_tile(64, 128)
            variant = dataclasses.replace(variant, defines=(*variant.defines, f"CELLS_K={cells}", "STAGES=3"))
            self.expect(variant, CaseS8(m, n, k, a_signed=0))

    def test_options_that_only_tuning_chooses(self):
        # engine/kernels/variants.cpp, tuned_options
        options = {MMA: ((128, 256), (128, 128, "STAGES=3"), (128, 128, "STAGES=5"), (128, 128, "SUBS_N=2"),
                         (64, 128, "CELLS_K=4", "STAGES=3"), (64, 128, "SUBS_N=2"), (64, 64, "CELLS_K=4"),
                         (64, 64, "SUBS_N=2")),
                   WGMMA: ((128, 128, "CELLS_K=4"), (64, 256), (64, 128, "CELLS_K=2"), (64, 64, "CELLS_K=2"))}
        for plain, tiles in options.items():
            for m, n, *defines in tiles:
                variant = plain.with_tile(m, n)
                variant = dataclasses.replace(variant, defines=(*variant.defines, *defines))
                for i, (rows, columns, k) in enumerate(shapes((m, n), [1, 17, *around(64), *around(128), 320, 450])):
                    self.expect(variant, CaseS8(rows, columns, k, a_signed=i % 2, out_type=(S32, S8)[i % 2]))

    def test_parts_of_k(self):
        # A strip of this tile is 64 bytes deep: parts of one or more, of unequal depth, and without any.
        variant = MMA.with_tile(32, 64)
        for i, (m, n, k) in enumerate(shapes((32, 64), [1, 16, *around(64), *around(128), 320, 450, 513])):
            for parts in (1, 2, 3, 7):
                self.expect(variant, CaseS8(m, n, k, a_signed=i % 2), parts)
        for out_type, activation in itertools.product((F32, U8, S8), (0, 1)):
            self.expect(variant, CaseS8(33, 67, 200, 0, out_type, activation), 3)
        self.expect(variant, CaseS8(34, 66, 200, 0, S8, 0, measured=True), 2)
        self.expect(variant, CaseS8(34, 68, 200, 1, F32, 0, weight_zeros=True), 2)

    def test_tails_by_dp4a(self):
        for tile in TILES:
            variant = DOT4.with_tile(*tile)
            depths = [1, 3, 4, 5, 15, 16, *around(32), 48, *around(64)]
            for i, (m, n, k) in enumerate(shapes(tile, depths)):
                self.expect(variant, CaseS8(m, n, k, a_signed=i % 2, out_type=(S32, S8)[i % 2]))

    def test_all_corners_of_a_tile(self):
        for variant in (MMA.with_tile(32, 64), DOT4.with_tile(32, 64)):
            for m, n, k in itertools.product((1, 31, 32, 33), (1, 63, 64, 65), (16, 33)):
                self.expect(variant, CaseS8(m, n, k, a_signed=m % 2))

    def test_tails_of_what_other_units_share(self):
        # gemm_matrix.clh serves the units of AMD and Intel; that of NVIDIA can be executed here.
        for i, (m, n, k) in enumerate(shapes((128, 128), [1, 15, 16, *around(32), *around(128), 160])):
            self.expect(MATRIX, CaseS8(m, n, k, a_signed=i % 2))

    def test_whole_words_are_stored(self):
        for variant in (MMA, WGMMA, DOT4.with_tile(32, 64)):
            others = dict(toolchain.programs)
            toolchain.programs.clear()
            self.expect(variant, CaseS8(33, 68, 32, out_type=S8))
            (program,) = toolchain.programs.values()
            toolchain.programs.update(others)
            bytewise = [i.text for i, ran in zip(program.instructions, program.executed)
                        if ran and i.text.startswith(("st.global.u8", "st.global.b8"))]
            self.assertEqual(bytewise, [])

    def test_several_groups_each_way(self):
        for variant in (MMA, MMA.with_tile(64, 64), DOT4.with_tile(64, 64), WGMMA, WGMMA.with_tile(64, 64)):
            self.expect(variant, CaseS8(150, 270, 96, out_type=S8))

    def test_epilogues(self):
        for variant in (MMA.with_tile(32, 64), DOT4.with_tile(32, 64), WGMMA, WGMMA.with_tile(64, 64)):
            for out_type, activation in itertools.product((F32, U8, S8), range(5)):
                for signed, bias in ((1, True), (0, False)):
                    self.expect(variant, CaseS8(33, 67 + bias, 40, signed, out_type, activation, bias))
            for out_type in (F32, S8, S32):
                self.expect(variant, CaseS8(34, 66, 17, 0, out_type, 0, measured=True))
                self.expect(variant, CaseS8(34, 66, 17, 1, out_type, 0, weight_zeros=True))
                self.expect(variant, CaseS8(7, 65, 48, 1, out_type, 0, measured=True, weight_zeros=True))


class GemmFloats(KernelTest):
    def expect(self, variant, *shape, **more):
        self.expect_near(*run_floats(variant, *shape, **more), f"{variant.program} {shape} {more}")

    def test_tails_by_mma_of_halves(self):
        depths = [1, 2, 7, 8, 9, *around(16), 20, *around(32), *around(64), 88]
        for m, n, k in shapes((128, 128), depths):
            self.expect(F16, m, n, k)

    def test_activations_by_mma_of_halves(self):
        for activation in range(5):
            self.expect(F16, 17, 70, 12, activation=activation, bias=activation % 2 == 0)

    def test_tails_in_f32(self):
        # A strip is 8 deep.
        for tile in TILES:
            variant = F32_GROUP.with_tile(*tile)
            depths = [1, 3, 4, *around(8), 12, *around(16), *around(24)]
            for i, (m, n, k) in enumerate(shapes(tile, depths)):
                self.expect(variant, m, n, k, activation=i % 5, bias=i % 3 > 0, b_half=i % 2 == 1)
        self.expect(F32_GROUP.with_tile(64, 64), 150, 270, 20)  # several groups each way

    def test_portable(self):
        for b_half in (False, True):
            for i, (m, n, k) in enumerate(itertools.product((1, 5, 6, 13), (1, 15, 16, 33), (1, 9))):
                self.expect(F32_PORTABLE, m, n, k, activation=i % 5, bias=i % 3 > 0, b_half=b_half)
