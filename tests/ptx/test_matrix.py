# SPDX-License-Identifier: Apache-2.0
"""mma.sync, ldmatrix and shfl.sync of the interpreter, against the formulas of the PTX ISA written out element by element, and
against kernels_cl/units/mma.clh emulated in plain OpenCL C."""
import unittest

import numpy as np

from errors import PtxError
from machine import launch
from memory import GlobalMemory
from snippets import run, words
from toolchain import program_of, require_tools


def place_s8(lane, operand, i):
    """Row and column of byte i of a lane (PTX ISA, "Matrix Fragments for mma.m16n8k32")."""
    group, thread = lane >> 2, lane % 4
    if operand == "a":
        return (group if i < 4 or 8 <= i < 12 else group + 8), thread * 4 + (i & 3) + (0 if i < 8 else 16)
    return thread * 4 + (i & 3) + (0 if i < 4 else 16), group


def place_f16(lane, operand, i):
    """The same of half i (PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type")."""
    group, thread = lane >> 2, lane % 4
    if operand == "a":
        return (group if i < 2 or 4 <= i < 6 else group + 8), thread * 2 + (i & 1) + (0 if i < 4 else 8)
    return thread * 2 + (i & 1) + (0 if i < 2 else 8), group


def place_c(lane, i):
    group, thread = lane >> 2, lane % 4
    return (group if i < 2 else group + 8), thread * 2 + (i & 1)


def fragments(matrix, lane_elements, operand, place):
    """[32][elements] of a matrix."""
    return np.array([[matrix[place(lane, operand, i)] for i in range(lane_elements)] for lane in range(32)],
                    matrix.dtype)


def multiply(instruction, a, b, c, place):
    """What the instruction makes of matrices, through its fragments."""
    per_word = 4 // a.itemsize
    a_words = np.ascontiguousarray(fragments(a, 4 * per_word, "a", place)).view(np.uint32)
    b_words = np.ascontiguousarray(fragments(b, 2 * per_word, "b", place)).view(np.uint32)
    c_words = np.array([[c[place_c(lane, i)] for i in range(4)] for lane in range(32)], c.dtype).view(np.uint32)
    loads = "".join(f"ld.global.b32 %r{10 + i}, [%rd4+{4 * i}];" for i in range(10))
    kind = "f" if c.dtype == np.float32 else "r"
    moves = "".join(f"mov.b32 %f{i}, %r{16 + i};" for i in range(4)) if kind == "f" else ""
    sums = ", ".join(f"%f{i}" if kind == "f" else f"%r{16 + i}" for i in range(4))
    found = run(f"""mul.wide.u32 %rd4, %r0, 40; add.s64 %rd4, %rd1, %rd4; {loads} {moves}
  {instruction} {{{sums}}}, {{%r10, %r11, %r12, %r13}}, {{%r14, %r15}}, {{{sums}}};
  st.global.v4.{'f32' if kind == 'f' else 'b32'} [%rd2], {{{sums}}};""",
                np.concatenate([a_words, b_words, c_words], axis=1), 4, c.dtype)
    made = np.zeros((16, 8), c.dtype)
    for lane in range(32):
        for i in range(4):
            made[place_c(lane, i)] = found[lane, i]
    return made


class Mma(unittest.TestCase):
    def test_bytes_of_all_signs(self):
        random = np.random.default_rng(1)
        for a_type in ("s8", "u8"):
            for b_type in ("s8", "u8"):
                of = {"s8": np.int8, "u8": np.uint8}
                a = random.integers(0, 256, (16, 32)).astype(np.uint8).view(of[a_type])
                b = random.integers(0, 256, (32, 8)).astype(np.uint8).view(of[b_type])
                c = random.integers(-2**31, 2**31, (16, 8)).astype(np.int32)
                found = multiply(f"mma.sync.aligned.m16n8k32.row.col.s32.{a_type}.{b_type}.s32", a, b, c, place_s8)
                exact = (a.astype(np.int64) @ b.astype(np.int64) + c).astype(np.int32)  # wraps
                np.testing.assert_array_equal(found, exact)

    def test_halves(self):
        random = np.random.default_rng(2)
        a, b = random.normal(0, 1, (16, 16)).astype(np.float16), random.normal(0, 1, (16, 8)).astype(np.float16)
        c = random.normal(0, 1, (16, 8)).astype(np.float32)
        found = multiply("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", a, b, c, place_f16)
        np.testing.assert_allclose(found, a.astype(np.float64) @ b.astype(np.float64) + c, rtol=2.0 ** -23, atol=1e-7)

    def test_part_of_a_warp_is_refused(self):
        with self.assertRaisesRegex(PtxError, "part of a warp"):
            run("""setp.lt.s32 %p1, %r0, 31; @!%p1 bra $skip;
  mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r4, %r5, %r6, %r7}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, """
                "{%r4, %r5, %r6, %r7};\n$skip:", words(np.zeros(1, np.int32)), 1)

    def test_against_the_emulation_of_the_kernels(self):
        require_tools()
        random = np.random.default_rng(3)
        for f16 in (0, 1):
            sums = np.float32 if f16 else np.int32
            values = random.integers(-4, 5, (24, 16)).astype(np.float16) if f16 else random.integers(
                -128, 128, (24, 32)).astype(np.int8)
            start = random.integers(-99, 99, (8, 16, 8)).astype(sums)
            made = []
            for emulated in (0, 1):
                program = program_of("probe_matrix", "probe_matrix",
                                     ("MATRIX_UNIT=1", f"MATRIX_F16={f16}", f"MATRIX_EMULATED={emulated}"))
                memory = GlobalMemory()
                launch(program, memory, (256,), (256,),
                       [memory.add("a", values[:16]), memory.add("b", values[16:]), memory.add("start", start),
                        memory.add("out", np.zeros_like(start), writable=True, filled=False)])
                made.append(memory.get("out", sums).reshape(start.shape))
            wide = values.astype(np.int64)
            np.testing.assert_array_equal(made[0], made[1])
            np.testing.assert_array_equal(made[0], start + (wide[:16] @ wide[16:].T).astype(sums))


class Ldmatrix(unittest.TestCase):
    def load(self, count, transposed):
        """(registers of each lane, the matrices): row r of matrix i lies at 16 * (8 i + r)."""
        trans = ".trans" if transposed else ""
        registers = ", ".join(f"%r{10 + i}" for i in range(count))
        stores = "".join(f"st.global.b32 [%rd2+{4 * i}], %r{10 + i};" for i in range(count))
        data = np.arange(32 * 8, dtype=np.uint16)
        found = run(f"""mov.u64 %rd5, space; mul.wide.u32 %rd6, %r0, 16; add.s64 %rd7, %rd5, %rd6;
  add.s64 %rd8, %rd1, %rd6; ld.global.v4.u32 {{%r20, %r21, %r22, %r23}}, [%rd8];
  st.shared.v4.u32 [%rd7], {{%r20, %r21, %r22, %r23}}; bar.sync 0;
  ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {{{registers}}}, [%rd7]; {stores}""", data, count)
        return np.ascontiguousarray(found).view(np.uint16).reshape(32, count, 2), data.reshape(4, 8, 8)

    def test_fragments(self):
        for count in (1, 2, 4):
            for transposed in (False, True):
                found, matrices = self.load(count, transposed)
                for lane in range(32):
                    for i in range(count):
                        for half in range(2):
                            row, column = lane // 4, lane % 4 * 2 + half
                            expected = matrices[i][(column, row) if transposed else (row, column)]
                            self.assertEqual(found[lane, i, half], expected)


class Shuffles(unittest.TestCase):
    def test_lanes_exchange_words(self):
        values = np.arange(64) * 3
        for mask in (1, 2, 16, 31):
            found = run(f"shfl.sync.bfly.b32 %r9, %r1, {mask}, 0x1f, 0xffffffff; st.global.b32 [%rd2], %r9;",
                        words(values.astype(np.int32), lanes=64), 1, lanes=64)
            np.testing.assert_array_equal(found[:, 0], values[np.arange(64) ^ mask])
        found = run("shfl.sync.bfly.b32 %r9, %r1, %r2, 31, -1; st.global.b32 [%rd2], %r9;",
                    words(values[:32].astype(np.int32), np.full(32, 2, np.int32)), 1)
        np.testing.assert_array_equal(found[:, 0], values[np.arange(32) ^ 2])

    def test_part_of_a_warp_is_refused(self):
        with self.assertRaisesRegex(PtxError, "part of a warp"):
            run("setp.lt.s32 %p1, %r0, 31; @!%p1 bra $skip; shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;\n$skip:",
                words(np.zeros(1, np.int32)), 1)
