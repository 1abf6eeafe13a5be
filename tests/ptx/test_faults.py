# SPDX-License-Identifier: Apache-2.0
"""Faults planted in the kernels' sources, each of which has to be found: what the other tests would miss if the
interpreter were lenient."""
import unittest

import numpy as np

import attention
import rows
from checks import KernelTest
from errors import PtxError
from gemm import DOT4, F16, F32_GROUP, MMA, S8, WGMMA, CaseS8, run_floats, run_s8

MMA_FILE, UNIT, MATRIX = "gemm/gemm_s8_mma.cl", "units/mma.clh", "gemm/gemm_matrix.clh"
MATRIX_UNITS = "units/matrix.clh"
WGMMA_FILE, WARPGROUP, CELLS = "gemm/gemm_s8_wgmma.cl", "units/wgmma.clh", "gemm/gemm_s8_cells.clh"
ATTENTION, TILES = "attention/attention_s8_mma.cl", "attention/attention_s8_mma.clh"
LANE_KEYS = "attention/attention_mma.clh"
HALVES, HALF_TILES = "attention/attention_f16_mma.cl", "attention/attention_f16_mma.clh"
WAIT = "    COPY_WAIT(STAGES - 2);\n"
BARRIER = "    barrier(CLK_LOCAL_MEM_FENCE);\n"
NOT_DELIVERED = "load of shared bytes that cp.async has not delivered"


class Faults(KernelTest):
    def setUp(self):
        super().setUp()
        self.sound = {}

    def without_fault(self, run):
        """What the kernel gives, found once for all its faults."""
        if run not in self.sound:
            self.sound[run] = run(())
        return self.sound[run]

    def refused(self, message, run, file, old, new):
        """The kernel with the fault is stopped with the message; without it, it is not."""
        self.without_fault(run)
        with self.assertRaisesRegex(PtxError, message):
            run(((file, old, new),))
        type(self).launches += 2

    def different(self, run, file, old, new):
        """The kernel with the fault gives something else."""
        found, expected, bound = run(((file, old, new),))
        self.assertFalse((np.abs(found - expected) <= bound).all(), f"'{new}' for '{old}' changes nothing")
        self.expect_near(*self.without_fault(run))
        type(self).launches += 1

    @staticmethod
    def mma(case):
        return lambda edits: (run_s8(MMA, case, edits), *case.expected())

    def test_a_missing_wait(self):
        for k in (96, 160):
            run = self.mma(CaseS8(65, 66, k))
            self.refused(NOT_DELIVERED, run, MMA_FILE, WAIT, "")
            self.refused(NOT_DELIVERED, run, MMA_FILE, "COPY_WAIT(STAGES - 2)", "COPY_WAIT(STAGES - 1)")
        self.refused(NOT_DELIVERED, run, MMA_FILE, "    COPY_COMMIT();  // a group", "    // a group")
        self.refused(NOT_DELIVERED, lambda edits: run_floats(F16, 20, 30, 48, edits=edits), MATRIX, WAIT, "")

    def test_a_swapped_fragment(self):
        run = self.mma(CaseS8(40, 70, 64))
        self.different(run, UNIT, '"r"((a).s1), "r"((a).s2)', '"r"((a).s2), "r"((a).s1)')
        self.different(run, UNIT, '"r"((b).s0), "r"((b).s1)', '"r"((b).s1), "r"((b).s0)')
        self.different(run, UNIT, "((lane) % 4 * 2 + (i) % 2)", "((lane) % 4 + (i) % 2 * 4)")
        self.different(run, MATRIX_UNITS, "lane / 16 * UNIT_N", "lane / 8 % 2 * UNIT_N")
        self.different(lambda edits: run_floats(F16, 40, 70, 16, edits=edits), UNIT,
                       '"r"((a).s1), "r"((a).s2)', '"r"((a).s2), "r"((a).s1)')

    def test_a_missing_barrier(self):
        run = self.mma(CaseS8(65, 66, 160))
        self.refused("race: reads shared", run, MMA_FILE, WAIT + BARRIER, WAIT)
        self.refused("race: reads shared", run, MMA_FILE, WAIT + BARRIER, BARRIER + WAIT)
        self.refused("race: reads shared", run, MMA_FILE, BARRIER + "#pragma unroll 1", "#pragma unroll 1")
        self.refused("race: writes shared", run, MMA_FILE, BARRIER + "#pragma unroll\n", "#pragma unroll\n")
        case = CaseS8(33, 65, 80)
        self.refused("race: ", lambda edits: run_s8(DOT4.with_tile(32, 64), case, edits), "gemm/gemm_s8_dot4.cl",
                     BARRIER, "")
        self.refused("race: ", lambda edits: attention.run_f32(attention.Case((70,), heads=1), edits),
                     "attention/attention_f32_group.cl", "  barrier(CLK_LOCAL_MEM_FENCE);  // what was", "  // what was")
        for barrier in "what was there has been read", "the strips have been read":
            self.refused("race: ", lambda edits: attention.run_position_scores((70,), 20, 141, edits=edits),
                         "attention/position_scores_f32_group.cl", f"barrier(CLK_LOCAL_MEM_FENCE);  // {barrier}",
                         f"// {barrier}")
        self.refused("race: ", lambda edits: attention.run_s8(attention.Case((70,), heads=1), edits),
                     "attention/attention_s8_dot4.cl", "  barrier(CLK_LOCAL_MEM_FENCE);  // the tile", "  // the tile")
        self.refused("race: ", lambda edits: rows.softmax(2, 65, 0, edits=edits), "rows/row_group.clh",
                     "  shared[item] = x;                                                            \\\n"
                     "  barrier(CLK_LOCAL_MEM_FENCE);", "  shared[item] = x;")

    @staticmethod
    def wgmma(case, tile=(64, 64)):
        return lambda edits: (run_s8(WGMMA.with_tile(*tile), case, edits), *case.expected())

    def test_a_missing_wait_for_wgmma(self):
        for tile in ((64, 64), (128, 256)):
            run = self.wgmma(CaseS8(65, 66, 500), tile)
            in_use = "writes shared bytes that wgmma still reads"
            self.refused(in_use, run, WGMMA_FILE, "    WGMMA_WAIT(1);\n", "")
            self.refused(in_use, run, WGMMA_FILE, "WGMMA_WAIT(1)", "WGMMA_WAIT(2)")
            self.refused(in_use, run, WGMMA_FILE, "#define AHEAD (STAGES - 2)", "#define AHEAD (STAGES - 1)")
            self.refused("sums that wgmma has not delivered", run, WGMMA_FILE, "  WGMMA_WAIT_ALL(sums);\n", "")
            self.refused(in_use, run, WGMMA_FILE, "    WGMMA_COMMIT();\n", "")
            self.refused("read by wgmma of shared bytes that cp.async has not delivered", run, WGMMA_FILE,
                         "    COPY_WAIT(AHEAD - 1);\n", "")
            self.refused("read by wgmma of shared bytes that cp.async has not delivered", run, WGMMA_FILE,
                         "COPY_WAIT(AHEAD - 1)", "COPY_WAIT(AHEAD)")

    def test_a_missing_fence_of_wgmma(self):
        for k in (500, 512):  # copied by ordinary stores, and by cp.async
            run = self.wgmma(CaseS8(65, 66, k))
            self.refused("without fence.proxy.async", run, WGMMA_FILE, "    PROXY_FENCE();\n", "")
            self.refused("without fence.proxy.async", run, WGMMA_FILE, "    COPY_WAIT(AHEAD - 1);\n    PROXY_FENCE();\n",
                         "    PROXY_FENCE();\n    COPY_WAIT(AHEAD - 1);\n")
            self.refused("without wgmma.fence", run, WGMMA_FILE, "    WGMMA_FENCE();\n", "")
            self.refused("race: wgmma reads", run, WGMMA_FILE, "    PROXY_FENCE();\n" + BARRIER, "    PROXY_FENCE();\n")
            self.refused("race: writes shared", run, WGMMA_FILE, BARRIER + "    WGMMA_UNROLL\n    for (int i",
                         "    WGMMA_UNROLL\n    for (int i")
            self.refused("race: reads shared", run, WGMMA_FILE, BARRIER + "#pragma unroll 1", "#pragma unroll 1")

    def test_a_wrong_layout_of_wgmma(self):
        run, case = self.wgmma(CaseS8(40, 64, 64)), (65, 256, 64)
        self.refused("do not begin at a multiple", run, WARPGROUP, "CELLS_K == 4 ? 2 : 3", "CELLS_K == 4 ? 3 : 2")
        self.different(self.wgmma(CaseS8(*case), (128, 256)), WARPGROUP, "/ 8 % CELLS_K)", "/ 16 % CELLS_K)")
        self.different(run, WARPGROUP, "(item) % 4 * 2 + (i) % 2", "(3 - (item) % 4) * 2 + (i) % 2")
        self.different(run, WARPGROUP, "(i) / 2 % 2 * 8)", "8 - (i) / 2 % 2 * 8)")
        self.refused("do not begin at a multiple", run, WARPGROUP, "(ulong)(8 * CELLS_K) << 32",
                     "(ulong)(4 * CELLS_K) << 32")
        self.different(self.wgmma(CaseS8(40, 64, 64, a_signed=0)), WARPGROUP, '"u8.s8"', '"s8.s8"')

    def test_split_k(self):
        case, finish = CaseS8(33, 68, 450), "gemm/gemm_s8_reduce.cl"
        run = lambda edits: (  # noqa: E731
            run_s8(MMA.with_tile(32, 64), case, edits, parts=3), *case.expected())
        self.different(run, MMA_FILE, "begin = split * split_steps", "begin = split * split_steps - min(split, 1)")
        self.different(run, MMA_FILE, "steps = min(steps, begin + split_steps)",
                       "steps = min(steps, begin + split_steps + 1)")
        self.different(run, finish, "int split = 0; split < splits", "int split = 1; split < splits")
        self.refused("race|out of bounds.* of 'out'", run, finish, "if (column >= N || row >= M)", "if (row >= M)")
        self.refused("nobody has written|out of bounds.* of 'partials'", run, MMA_FILE,
                     "partials += (size_t)split * M * N;", "partials += (size_t)split * M * N + 4;")

    def test_split_k_in_a_norm(self):
        file = "rows/add_norm_split_k_group.cl"
        run = lambda edits: rows.add_norm_split_k(2, 68, 3, edits=edits)[0][1:]  # noqa: E731
        self.different(run, file, "int split = 0; split < splits", "int split = 1; split < splits")
        self.different(run, file, "a_signed ? 0 : 128", "a_signed ? 128 : 0")
        self.refused("nobody has written|out of bounds.* of 'partials'", run, file, "split < splits", "split <= splits")
        self.refused("misaligned|out of bounds",
                     lambda edits: rows.add_norm_split_k(2, 67, 3, edits=edits)[0][1:], file,
                     "aligned = hidden % 4 == 0;", "aligned = true;")

    def test_floats_of_work_groups(self):
        file = "gemm/gemm_f32_group.cl"
        run = lambda edits: run_floats(F32_GROUP.with_tile(32, 64), 33, 65, 20, edits=edits)  # noqa: E731
        self.refused("race: |nobody has written", run, file, BARRIER, "")
        self.different(run, file, "a_tile[half_index][a_k + 1][a_row] = next_a.s1;",
                       "a_tile[half_index][a_k + 1][a_row] = next_a.s2;")
        self.refused("nobody has written", run, file, "if (item < B_COPIES) *(", "if (item < B_COPIES - 1) *(")
        self.refused("out of bounds.* of 'a'", run, file, "min(row0 + a_row, M - 1)", "(row0 + a_row)")
        self.refused("out of bounds.* of 'b'", run, file, "copies_b && k1 + b_k < K", "copies_b && k1 + b_k <= K + 9")
        self.refused("out of bounds.* of 'out'", run, file, "if (row >= M) continue;", "")
        self.refused("misaligned", lambda edits: run_floats(F32_GROUP, 3, 5, 6, edits=edits), file,
                     "if (K % 4 == 0)", "if (K % 2 == 0)")

    def test_attention_by_matrix_units(self):
        run = lambda edits: attention.run_s8(  # noqa: E731
            attention.Case((70,), heads=1, quantized_scores=True, unnormalized=1, unit="mma"), edits)
        self.different(run, LANE_KEYS, "quad % 4 * 2 + KEYS_OF_QUAD", "quad % 4 * 4 + (int4)(0, 1, 2, 3)")
        self.different(run, MATRIX_UNITS, "b[1] = two.hi", "b[1] = two.lo")
        self.different(run, TILES, "scores[j] = (int4)(term - t.row[0]", "scores[j] = (int4)(term")
        self.different(run, ATTENTION, "{words[0][0], words[0][1], words[1][0]", "{words[0][0], words[1][0], words[0][1]")
        self.different(run, UNIT, "s32.u8.s8.s32", "s32.s8.s8.s32")
        self.refused("race: writes shared", run, ATTENTION, BARRIER.rstrip("\n") + "  // the tile", "  // the tile")
        step = ("#pragma unroll 1\n    for (int i = 0; i < KEYS && key0 + i < end; i += BLOCK) {\n"
                "      make_scores(scores, rows, k_tile + i, k_sums + i * PARTS, terms, exchange);\n      const int4")
        self.refused("race: reads shared", run, ATTENTION, BARRIER + step, step)
        self.refused("out of bounds.* of 'qkv'", run, TILES, "min(first + key, last)", "(first + key)")
        self.refused("out of bounds.* of 'out'", run, ATTENTION, "if (row >= end) continue;", "")
        odd = lambda edits: attention.run_s8(  # noqa: E731
            attention.Case((9,), head_size=33, unit="mma"), edits)
        self.refused("misaligned", odd, ATTENTION, "const bool pairs = head_size % 2 == 0;", "const bool pairs = true;")

    def test_biases_by_matrix_units(self):
        case = attention.Case((140,), heads=1, bias=True, window=70, unit="mma", rows=32)
        for run, file in (attention.run_s8, ATTENTION), (attention.run_f16, HALVES):
            at_lane = lambda edits: run(case, edits)  # noqa: E731, B023
            self.different(at_lane, file, "KEYS_OF_QUAD, end" if file == ATTENTION else "key, KEYS_OF_QUAD",
                           "(int4)(0, 1, 2, 3), end" if file == ATTENTION else "key, (int4)(0, 1, 2, 3)")
            self.different(at_lane, file, "tiles_of(begin, end, group_row, BIAS ? window : 0)",
                           "tiles_of(begin, end, group_row, BIAS ? 1 : 0)")
            self.different(at_lane, file, "+ ITEM % 4 * 2", "+ ITEM % 4")

    def test_attention_in_halves(self):
        def run(edits, case=None, change=None):
            return attention.run_f16(case or attention.Case((3, 70), heads=1, mask=True, unit="mma"), edits, change)
        self.different(run, MATRIX_UNITS, "lane / 16 * UNIT_N + lane / 8 % 2 * B_CELLS",
                       "lane / 8 % 2 * UNIT_N + lane / 16 * B_CELLS")
        self.different(run, HALF_TILES, "lane / 16 * PITCH + lane % 16",
                       "lane / 8 % 2 * PITCH + lane / 16 * 8 + lane % 8")
        self.different(run, HALF_TILES, "    values[1] = two.hi;", "    values[1] = two.lo;")
        self.different(run, UNIT, "x4.trans.shared", "x4.shared")
        self.different(run, UNIT, '"f"(high), "f"(low)', '"f"(low), "f"(high)')
        self.different(run, HALVES, "{words[h][0][0], words[h][1][0],", "{words[h][0][0], words[h][0][1],")
        self.different(run, LANE_KEYS, "key_mask[key.s3] ? -1 : 0", "-1")
        self.different(run, HALVES, "(UnitC)(shrink[0], shrink[0], shrink[1]", "(UnitC)(shrink[0], shrink[0], shrink[0]")
        self.different(run, HALVES, "total[r] *= shrink[r];", "")
        self.different(run, HALF_TILES, "  return fmax(x, of_lane_xor(x, 2, shown));", "  return x;")
        self.different(run, HALF_TILES, "  return x + of_lane_xor(x, 2, shown);", "  return x;")
        self.refused("race: writes shared", run, HALVES, BARRIER.rstrip("\n") + "  // the tile", "  // the tile")
        self.refused("race: reads shared", run, HALVES, BARRIER + "#pragma unroll 1", "#pragma unroll 1")
        self.refused("out of bounds.* of 'key_mask'", run, HALF_TILES, "return key < end && (", "return (")
        whole = lambda edits: run(edits, attention.Case((70,), heads=1, unit="mma"))  # noqa: E731
        self.refused("out of bounds.* of 'qkv'", whole, HALF_TILES, "return key < end && (", "return (")
        self.refused("out of bounds.* of 'qkv'", whole, HALVES, "low = q + (size_t)min(row0, end - 1)",
                     "low = q + (size_t)row0")
        self.refused("out of bounds.* of 'out'", run, HALVES, "if (row >= end) continue;", "")
        odd = lambda edits: run(edits, attention.Case((9,), head_size=33, unit="mma"))  # noqa: E731
        self.refused("misaligned", odd, HALVES, "const bool pairs = head_size % 2 == 0;", "const bool pairs = true;")
        self.refused("misaligned", odd, HALVES, "((k_stride | k_offset | head_size) & 3) == 0", "true")

        def poison(data, case):
            data[case.keys == 0, case.offsets[2]:] = np.nan
        self.different(lambda edits: run(edits, change=poison), HALF_TILES, "(!use_mask || key_mask[key])", "true")

    def test_a_barrier_that_not_all_meet(self):
        self.refused("race: reads shared|divergent barrier", self.mma(CaseS8(65, 66, 160)), MMA_FILE, WAIT + BARRIER,
                     WAIT + "    if (item < 128) barrier(CLK_LOCAL_MEM_FENCE);\n")

    def test_bounds(self):
        run = self.mma(CaseS8(65, 66, 64))
        self.refused("out of bounds.* of 'a'", run, CELLS, "min(o->row0 + row, o->M - 1)", "(o->row0 + row)")
        self.refused("out of bounds.* of 'b'", self.mma(CaseS8(65, 60, 64)), CELLS,
                     "g < groups && at / PANEL * PANEL < o->N", "g < groups")
        self.refused("out of bounds.* of 'out'", run, MMA_FILE, "if (row < M && column < N)", "if (column < N)")
        self.refused("out of bounds.* of 'x'", lambda edits: rows.rotary((1, 9), 1, 2, 4, edits), "rows/rotary.cl",
                     "min(first + rows_per_item, end - begin)", "first + rows_per_item")
        self.refused("out of bounds.* of 'x'", lambda edits: rows.rotary((1, 9), 1, 2, 1, edits, columns=True),
                     "rows/rotary_columns.cl", "if (place >= end - begin) return;", "")

    def test_alignment(self):
        self.refused("misaligned", self.mma(CaseS8(5, 66, 64, out_type=S8)), "gemm/epilogue4.clh", "if (N % 4 == 0)",
                     "if (true)")
        self.refused("misaligned", self.mma(CaseS8(5, 66, 40)), CELLS, "if (o->K % 16 == 0)", "if (o->K % 8 == 0)")

    def test_what_is_left_in_shared_memory(self):
        self.refused("nobody has written", lambda edits: run_s8(DOT4.with_tile(32, 64), CaseS8(33, 65, 80), edits),
                     "gemm/gemm_s8_dot4.cl", "for (int w = 0; w < B_WORDS; w++) b_tile",
                     "for (int w = 0; w < B_WORDS - 1; w++) b_tile")
