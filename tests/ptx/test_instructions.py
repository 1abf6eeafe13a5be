# SPDX-License-Identifier: Apache-2.0
"""The interpreter's instructions one by one, with what the PTX ISA says of their edges."""
import unittest

import numpy as np

from errors import PtxError
from snippets import run, words

NAN, INF = np.float32("nan"), np.float32("inf")


def i32(*values):
    return np.array(values, np.int64).astype(np.int32)


def f32(*values):
    return np.array(values, np.float32)


class Instructions(unittest.TestCase):
    def expect(self, body, columns, expected, dtype=np.int32):
        """One output word for each value of the columns."""
        found = run(body + "st.global.b32 [%rd2], %r9;", words(*columns), 1, dtype)[:len(expected), 0]
        np.testing.assert_array_equal(found, np.array(expected, dtype))

    def test_integers(self):
        a, b = i32(7, -7, 7, -7, 2**31 - 1, -2**31), i32(2, 2, -2, -2, 2, -1)
        self.expect("add.s32 %r9, %r1, %r2;", (a, b), [9, -5, 5, -9, -2**31 + 1, 2**31 - 1])
        self.expect("div.s32 %r9, %r1, %r2;", (a[:4], b[:4]), [3, -3, -3, 3])
        self.expect("rem.s32 %r9, %r1, %r2;", (a[:4], b[:4]), [1, -1, 1, -1])
        self.expect("mul.hi.s32 %r9, %r1, %r2;", (a, b), [0, -1, -1, 0, 0, 0])
        self.expect("mul.hi.u32 %r9, %r1, %r2;", (i32(-1, -1), i32(-1, 2)), [2**32 - 2, 1], np.uint32)
        self.expect("mad.lo.s32 %r9, %r1, %r2, %r3;", (a, b, i32(1)), [15, -13, -13, 15, -1, -2**31 + 1])
        self.expect("min.s32 %r9, %r1, %r2;", (i32(-1, 5), i32(1, 4)), [-1, 4])
        self.expect("min.u32 %r9, %r1, %r2;", (i32(-1, 5), i32(1, 4)), [1, 4])
        self.expect("bfe.u32 %r9, %r1, %r2, 8;", (i32(0x12345678, 0x12345678), i32(8, 28)), [0x56, 1])
        self.expect("mov.b64 %rd5, {%r1, %r1}; bfe.u64 %rd6, %rd5, %r2, 12; cvt.u32.u64 %r9, %rd6;",
                    (i32(0x12345678, 0x12345678), i32(24, 56)), [0x812, 0x12])
        self.expect("clz.b32 %r9, %r1;", (i32(0, 1, -1, 0x00ffffff),), [32, 31, 0, 8])
        self.expect("abs.s32 %r9, %r1; not.b32 %r9, %r9;", (i32(-3),), [~3])

    def test_shifts_past_the_width(self):
        self.expect("shl.b32 %r9, %r1, %r2;", (i32(-1, -1, -1), i32(31, 32, 100)), [-2**31, 0, 0])
        self.expect("shr.s32 %r9, %r1, %r2;", (i32(-8, -8, 8), i32(1, 40, 40)), [-4, -1, 0])
        self.expect("shr.u32 %r9, %r1, %r2;", (i32(-8, -8), i32(28, 32)), [15, 0])

    def test_widening(self):
        body = "mul.wide.s32 %rd4, %r1, %r2; shr.u64 %rd5, %rd4, 32; cvt.u32.u64 %r9, %rd5;"
        self.expect(body, (i32(-2), i32(3)), [-1])
        self.expect(body.replace("s32", "u32"), (i32(-2), i32(3)), [2])
        self.expect("cvt.u16.u32 %rs1, %r1; mul.wide.u16 %r9, %rs1, 256;", (i32(0x1ffff),), [0xffff00])
        self.expect("cvt.u16.u32 %rs1, %r1; cvt.s32.s8 %r9, %rs1;", (i32(0x1280, 0x127f),), [-128, 127])
        self.expect("cvt.u16.u32 %rs1, %r1; cvt.s16.s8 %rs2, %rs1; cvt.u32.u16 %r9, %rs2;", (i32(0x80),), [0xff80])
        self.expect("cvt.s64.s32 %rd4, %r1; shr.s64 %rd4, %rd4, 40; cvt.u32.u64 %r9, %rd4;", (i32(-1),), [-1])

    def test_fma_rounds_once(self):
        # (1 + e)^2 - 1 - 2e = e^2 is lost where the product is rounded.
        e = 2.0 ** -13
        body = "mov.b32 %f1, %r1; mov.b32 %f2, %r2; mov.b32 %f3, %r3; fma.rn.f32 %f4, %f1, %f2, %f3; mov.b32 %r9, %f4;"
        self.expect(body, (f32(1 + e), f32(1 + e), f32(-1 - 2 * e)), [e * e], np.float32)
        # 1 + 2^-24 is the middle of two floats, and a sum of 2^-60 more in f64 as well.
        self.expect(body, (f32(2.0 ** -60, -2.0 ** -60, 0), f32(1), f32(0)), [2.0 ** -60, -2.0 ** -60, 0], np.float32)
        for tiny, expected in ((2.0 ** -40, 1 + 2.0 ** -23), (-2.0 ** -40, 1), (0.0, 1)):
            # a * b = 2^-24 + tiny with factors that f32 has: (1 + tiny * 2^24) * 2^-24
            factor = np.float32(1 + tiny * 2.0 ** 24)
            self.expect(body, (f32(factor), f32(2.0 ** -24), f32(1)), [expected], np.float32)
        random = np.random.default_rng(0)
        bits = random.integers(0, 2**32, (3, 3000), dtype=np.uint64).astype(np.uint32).view(np.float32)
        from fractions import Fraction
        from scalar import fma
        with np.errstate(all="ignore"):
            found = fma(*bits)
        for a, b, c, y in zip(*bits, found):
            if np.isfinite([a, b, c, y]).all():
                exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
                near = [np.nextafter(y, s * INF) for s in (-1, 1)]
                for other in near:
                    if np.isfinite(other):
                        self.assertLessEqual(abs(Fraction(float(y)) - exact), abs(Fraction(float(other)) - exact))

    def test_floats(self):
        load = "mov.b32 %f1, %r1; mov.b32 %f2, %r2;"
        end = " mov.b32 %r9, %f4;"
        both = (f32(NAN, 1, -1, NAN), f32(2, NAN, -3, NAN))
        self.expect(load + "max.f32 %f4, %f1, %f2;" + end, both, [2, 1, -1, NAN], np.float32)
        self.expect(load + "min.f32 %f4, %f1, %f2;" + end, both, [2, 1, -3, NAN], np.float32)
        self.expect(load + "max.NaN.f32 %f4, %f1, %f2;" + end, both, [NAN, NAN, -1, NAN], np.float32)
        self.expect(load + "abs.f32 %f4, %f1;" + end, (f32(-2, -INF, 0),), [2, INF, 0], np.float32)
        self.expect(load + "rcp.rn.f32 %f4, %f1;" + end, (f32(3, 0),), [1 / np.float32(3), INF], np.float32)
        self.expect(load + "cvt.rni.f32.f32 %f4, %f1;" + end, (f32(0.5, 1.5, -2.5, 2.7),), [0, 2, -2, 3], np.float32)
        self.expect(load + "cvt.rzi.f32.f32 %f4, %f1;" + end, (f32(-1.7, 1.7),), [-1, 1], np.float32)
        self.expect(load + "add.rn.f32 %f4, %f1, %f2;" + end, (f32(1e-45), f32(1e-45)), [3e-45], np.float32)
        self.expect(load + "add.rn.f32 %f4, %f1, 0f3F800000;" + end, (f32(2),), [3], np.float32)

    def test_float_to_integer_saturates(self):
        load = "mov.b32 %f1, %r1; "
        values = f32(-1.5, 2.5, 3e9, -3e9, NAN, INF, 1e30)
        self.expect(load + "cvt.rzi.s32.f32 %r9, %f1;", (values,), [-1, 2, 2**31 - 1, -2**31, 0, 2**31 - 1, 2**31 - 1])
        self.expect(load + "cvt.rni.s32.f32 %r9, %f1;", (values[:2],), [-2, 2])
        self.expect(load + "cvt.rzi.u32.f32 %r9, %f1;", (values,), [0, 2, 3000000000, 0, 0, 2**32 - 1, 2**32 - 1],
                    np.uint32)
        self.expect("cvt.rn.f32.s32 %f1, %r1; mov.b32 %r9, %f1;", (i32(2**24 + 1, -3),), [2**24, -3], np.float32)

    def test_halves(self):
        load = "mov.b32 %f1, %r1; cvt.rn.f16.f32 %rs1, %f1; "
        # 2049 and 2051 lie between two halves: to even
        self.expect(load + "cvt.f32.f16 %f2, %rs1; mov.b32 %r9, %f2;", (f32(2049, 2051, 70000, 6e-8),),
                    [2048, 2052, INF, 2.0 ** -24], np.float32)
        self.expect("mov.b32 %f1, %r1; mov.b32 %f2, %r2; cvt.rn.f16x2.f32 %r9, %f1, %f2;",
                    (f32(2049, 1, INF), f32(-2, 2.0 ** -24, 65520)), [0x6800c000, 0x3c000001, 0x7c007c00])
        self.expect("mov.b32 {%rs1, %rs2}, %r1; mov.b32 %r9, {%rs2, %rs1};", (i32(0x12345678),), [0x56781234])
        self.expect("mov.b32 {%rs1, _}, %r1; cvt.u32.u16 %r9, %rs1;", (i32(0x12345678),), [0x5678])

    def test_comparisons(self):
        def holds(comparison):
            return f"mov.b32 %f1, %r1; mov.b32 %f2, %r2; setp.{comparison} %p1, %f1, %f2; selp.u32 %r9, 1, 0, %p1;"
        both = (f32(1, NAN, 2), f32(2, 1, 2))
        for comparison, expected in {"lt": [1, 0, 0], "ltu": [1, 1, 0], "eq": [0, 0, 1], "equ": [0, 1, 1],
                                     "ne": [1, 0, 0], "neu": [1, 1, 0], "geu": [0, 1, 1], "num": [1, 0, 1],
                                     "nan": [0, 1, 0]}.items():
            with self.subTest(comparison):
                self.expect(holds(comparison + ".f32"), both, expected)
        self.expect("setp.lt.s32 %p1, %r1, %r2; selp.u32 %r9, 1, 0, %p1;", (i32(-1), i32(1)), [1])
        self.expect("setp.lt.u32 %p1, %r1, %r2; selp.u32 %r9, 1, 0, %p1;", (i32(-1), i32(1)), [0])
        self.expect("setp.lt.s32 %p1, %r1, 0; not.pred %p2, %p1; and.pred %p3, %p1, %p2; or.pred %p4, %p3, %p1;"
                    "selp.b32 %r9, %r1, 9, %p4;", (i32(-1, 1),), [-1, 9])

    def test_dot_products(self):
        a, b = i32(0x80ff7f01, -1), i32(0x80ff7f01, 0x01010101)
        self.expect("dp4a.s32.s32 %r9, %r1, %r2, %r3;", (a, b, i32(5)),
                    [128 * 128 + 1 + 127 * 127 + 1 + 5, -4 + 5])
        self.expect("dp4a.u32.s32 %r9, %r1, %r2, %r3;", (a, b, i32(5)),
                    [-128 * 128 - 255 + 127 * 127 + 1 + 5, 4 * 255 + 5])
        self.expect("dp4a.u32.u32 %r9, %r1, %r2, %r3;", (a, b, i32(5)),
                    [128 * 128 + 255 * 255 + 127 * 127 + 1 + 5, 4 * 255 + 5])
        self.expect("dp4a.s32.s32 %r9, %r1, %r2, %r3;", (i32(0x01010101), i32(0x01010101), i32(2**31 - 1)),
                    [-2**31 + 3])

    def test_guards_and_divergence(self):
        self.expect("setp.lt.s32 %p1, %r0, 3; mov.u32 %r9, 1; @%p1 mov.u32 %r9, 2; @!%p1 add.s32 %r9, %r9, 5;",
                    (i32(0),), [2] * 3 + [6] * 29)
        # Each lane loops as often as its number says, and all meet after it.
        self.expect("""mov.u32 %r9, 0; mov.u32 %r10, 0;
  $loop: setp.ge.u32 %p1, %r10, %r0; @%p1 bra $end; add.s32 %r9, %r9, %r10; add.s32 %r10, %r10, 1; bra.uni $loop;
  $end: bar.sync 0; add.s32 %r9, %r9, 100;""", (i32(0),), [100 + n * (n - 1) // 2 for n in range(32)])

    def test_lanes_meet_where_their_paths_join(self):
        # Odd lanes take a block at the end of the text, which jumps back before an instruction of the whole warp.
        found = run("""and.b32 %r10, %r0, 1; setp.ne.s32 %p1, %r10, 0; mov.u32 %r11, 1; @%p1 bra $late;
  $joined: mov.u64 %rd5, space; mul.wide.u32 %rd6, %r0, 16; add.s64 %rd7, %rd5, %rd6;
  st.shared.v4.u32 [%rd7], {%r11, %r11, %r11, %r11}; bar.sync 0;
  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%rd7]; st.global.b32 [%rd2], %r9; ret;
  $late: mov.u32 %r11, 2; bra.uni $joined;""", words(i32(0)), 1)
        np.testing.assert_array_equal(found[:, 0], np.arange(32) // 4 % 2 + 1)

    def test_calls(self):
        before = """
.func (.param .b32 func_retval0) twice(.param .b32 twice_param_0, .param .align 8 .b8 twice_param_1[8])
{
  .reg .pred %p<3>;
  .reg .b32 %r<9>;
  ld.param.u32 %r1, [twice_param_0];
  ld.param.v2.u32 {%r2, %r3}, [twice_param_1];
  setp.gt.s32 %p1, %r1, 1;
  @%p1 bra $L__BB0_2;
  st.param.b32 [func_retval0+0], %r2;
  ret;
$L__BB0_2:
  add.s32 %r4, %r3, %r1;
  st.param.b32 [func_retval0+0], %r4;
  ret;
}"""
        call = """{ .reg .b32 temp_param_reg;
  .param .b32 param0; st.param.b32 [param0+0], %rARG;
  .param .align 8 .b8 param1[8]; st.param.v2.b32 [param1+0], {%r2, %r3};
  .param .b32 retval0;
  call.uni (retval0),
  twice,
  (
  param0,
  param1
  );
  ld.param.b32 %rTO, [retval0+0]; }
"""
        body = (call.replace("ARG", "1").replace("TO", "10") + call.replace("ARG", "10").replace("TO", "11")
                + "st.global.v2.b32 [%rd2], {%r10, %r11};")
        found = run(body, words(i32(1, 2), i32(30), i32(40)), 2, np.int32, before=before)
        np.testing.assert_array_equal(found[:2], [[30, 70], [42, 82]])

    def test_local_and_constant_memory(self):
        before = ".weak .const .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 1, 0, 0};\n"
        body = """.local .align 8 .b8 depot[16];
  mov.u64 %rd4, depot; cvta.local.u64 %rd5, %rd4;
  st.local.u32 [%rd4+4], %r0;
  ld.u32 %r10, [%rd5+4];
  mov.u64 %rd6, table; ld.const.u32 %r11, [%rd6+4]; ld.const.u32 %r12, [table];
  add.s32 %r9, %r10, %r11; add.s32 %r9, %r9, %r12; st.global.b32 [%rd2], %r9;"""
        found = run(body, words(i32(0)), 1, np.int32, before=before)
        np.testing.assert_array_equal(found[:, 0], np.arange(32) + 258 + 1)

    def test_unknown_instructions_are_named(self):
        for text in ("ex2.approx.f32 %f1, %f2", "add.rn.ftz.f32 %f1, %f1, %f2", "cvt.rn.sat.f32.f32 %f1, %f2",
                     "shfl.sync.up.b32 %r1, %r2, 1, 31, -1", "shfl.sync.bfly.b32 %r1, %r2, 1, 31, 15",
                     "cvt.rz.f16x2.f32 %r1, %f1, %f2", "mul.hi.u64 %rd3, %rd1, %rd2",
                     "ld.global.cv.u32 %r1, [%rd1]", "bar.sync 1", "mov.u32 %r1, %laneid",
                     "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r1, %r2}, {%r3}, {%r4}, {%r1, %r2}"):
            with self.subTest(text), self.assertRaises(PtxError) as raised:
                run(text + ";", words(i32(0)), 1)
            self.assertIn("unknown instruction", str(raised.exception))
            self.assertIn(text, str(raised.exception))
