# SPDX-License-Identifier: Apache-2.0
"""The kernels of single operators, as PTX: elementwise, reductions, copies, matmuls."""
import itertools
import math
import unittest

import numpy as np

from checks import KernelTest
from gemm import F32, S8, S32, U8
from items import Out, changed, run_items

F16, S64, BOOL, BF16 = 3, 5, 6, 7  # lib/types.clh
CHUNK = 21  # elements of a work-item: vectors of 16 with a tail


def items_of(count, chunk=CHUNK):
    return -(-count // chunk)


def shape_words(dims, *strides):
    return np.array([*dims, *itertools.chain(*strides)] or [0], np.int32)


class Elements(KernelTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(5)

    def test_cast(self):
        x = np.array([0, 1, -1, 2.5, -3.5, 100.25, -128, 127], np.float64)

        def stored(values, kind):
            if kind == BF16:
                bits = values.astype(np.float32).view(np.uint32)
                return ((bits + 0x7fff + (bits >> 16 & 1)) >> 16).astype(np.uint16)
            of = {F32: np.float32, U8: np.uint8, S8: np.int8, F16: np.float16, S32: np.int32, S64: np.int64}
            return (values != 0).astype(np.uint8) if kind == BOOL else values.astype(np.int64).astype(
                of[kind]) if kind in (U8, S8) else values.astype(of[kind])

        def values_of(array, kind):
            return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64) if kind == BF16 else \
                array.astype(np.float64)

        for source, to in itertools.product((F32, U8, S8, F16, S32, S64, BOOL, BF16), repeat=2):
            data = stored(x, source)
            expected = stored(values_of(data, source), to)
            (found,) = run_items("cast", "cast", 3, data, source, Out(x.shape, expected.dtype), to, len(x), 3)
            self.expect_near(found, expected.astype(np.float64), 0, (source, to))

    def test_unary(self):
        x = self.random.uniform(-3, 3, 37).astype(np.float32)
        functions = [np.negative, np.abs, None, np.exp, None, np.vectorize(math.erf), np.tanh,
                     lambda v: 1 / (1 + np.exp(-v)), lambda v: np.maximum(v, 0),
                     lambda v: v / 2 * (1 + np.vectorize(math.erf)(v / math.sqrt(2))),
                     lambda v: v / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3))), lambda v: 1 / v,
                     np.floor, np.ceil, np.rint, np.sign, np.sin, np.cos]
        for op, function in enumerate(functions):
            data = np.abs(x) if function is None else x
            function = {2: np.sqrt, 4: np.log}[op] if function is None else function
            (found,) = run_items("elementwise_unary", "unary_f32", items_of(37), data, Out((37,)), op, 37, CHUNK)
            expected = function(data.astype(np.float64))
            self.expect_near(found, expected, 5e-7 * (np.abs(expected) + np.abs(data) / 2 + 0.1), op)
        whole = self.random.integers(-9, 9, 23)
        for entry, of in (("unary_i32", np.int32), ("unary_i64", np.int64)):
            for op, function in ((0, np.negative), (1, np.abs), (8, lambda v: np.maximum(v, 0)), (15, np.sign)):
                (found,) = run_items("elementwise_unary", entry, 2, whole.astype(of), Out((23,), of), op, 23, 12)
                self.expect_near(found, function(whole), 0, (entry, op))
        x[3] = np.nan
        (found,) = run_items("elementwise_unary", "unary_f32", items_of(37), x, Out((37,), np.uint8), 19, 37, CHUNK)
        self.expect_near(found, np.isnan(x), 0)
        (found,) = run_items("elementwise_unary", "unary_bool", 2, np.isnan(x).astype(np.uint8),
                             Out((37,), np.uint8), 18, 37, CHUNK)
        self.expect_near(found, ~np.isnan(x), 0)

    def test_binary(self):
        dims = (3, 35)
        a, row = (self.random.uniform(0.5, 3, s).astype(np.float32) for s in (dims, 35))
        for op, function in enumerate((np.add, np.subtract, np.multiply, np.divide, np.power, np.minimum, np.maximum,
                                       np.mod, np.fmod)):
            for b, strides in ((row, (0, 1)), (row[:1], (0, 0)), (a[::-1].copy(), (35, 1))):
                (found,) = run_items("elementwise_binary", "binary_f32", items_of(105), a, b, Out(dims), op,
                                     shape_words(dims, (35, 1), strides), 2, 105, CHUNK)
                exact = op in (0, 1, 2, 3, 5, 6)
                wide = np.float32 if exact else np.float64
                expected = function(a.astype(wide), b.astype(wide))
                self.expect_near(found, expected, 0 if exact else 4e-6 * (1 + np.abs(expected)), op)
        comparisons = {16: np.equal, 17: np.less, 18: np.greater, 19: np.less_equal, 20: np.greater_equal}
        logic = {24: np.bitwise_and, 25: np.bitwise_or, 26: np.bitwise_xor}
        plain = {0: np.add, 2: np.multiply, 3: lambda x, y: np.trunc(x / y), 5: np.minimum, 7: np.mod, 8: np.fmod}
        x, y = self.random.integers(-9, 9, 30), self.random.integers(1, 5, 30)
        for entry, of, functions in (("binary_i32", np.int32, plain | comparisons | logic),
                                     ("binary_i64", np.int64, plain | comparisons | logic),
                                     ("binary_bool", np.uint8, logic)):
            left, right = (v % 2 if of == np.uint8 else v for v in (x, y))
            for op, function in functions.items():
                out = Out((30,), np.uint8 if op in comparisons else of)
                (found,) = run_items("elementwise_binary", entry, 2, left.astype(of), right.astype(of), out, op,
                                     shape_words((30,), (1,), (1,)), 1, 30, 17)
                self.expect_near(found, function(left, right), 0, (entry, op))

    def test_quantize(self):
        for kind, of in ((U8, np.uint8), (S8, np.int8)):
            for axis, inner in ((1, 70), (35, 1), (7, 5)):
                x = self.random.normal(0, 3, 70).astype(np.float32)
                scales = self.random.uniform(0.01, 0.05, axis).astype(np.float32)
                zeros = self.random.integers(-3, 4, axis) + (128 if kind == U8 else 0)
                at = np.arange(70) // inner % axis
                zeros = zeros.astype(of) if inner != 5 else None
                zero = zeros[at].astype(np.int64) if zeros is not None else 0
                (q,) = run_items("quantize", "quantize", items_of(70), x, Out((70,), of), kind, scales, zeros, 70, axis,
                                 inner, CHUNK)
                limits = np.iinfo(of)
                self.expect_near(q, np.clip(np.rint(x / scales[at]) + zero, limits.min, limits.max), 0)
                (y,) = run_items("quantize", "dequantize", items_of(70), q, kind, Out((70,)), scales, zeros, 70, axis,
                                 inner, CHUNK)
                self.expect_near(y, (q.astype(np.float32) - zero) * scales[at], 1e-6)
        sums = self.random.integers(-9999, 9999, 70).astype(np.int32)
        (y,) = run_items("quantize", "dequantize", items_of(70), sums, S32, Out((70,)), scales, None, 70, 7, 5, CHUNK)
        self.expect_near(y, sums * scales[at].astype(np.float64), 1e-4)

    def test_dynamic_quantize(self):
        for count, groups in itertools.product((1, 37, 256 * 16 + 5), (False, True)):
            program, group = ("dynamic_quantize_group", (256, 1, 1)) if groups else ("dynamic_quantize", None)
            align, parts = (16, (256 * 256, 1, 1)) if groups else (1, 256)
            x = self.random.normal(1, 3, count).astype(np.float32)
            (ranges,) = run_items(program, "dynamic_range", parts, x, Out((2, 256)), count, align=align, group=group)
            low, high = min(x.min(), 0), max(x.max(), 0)
            self.expect_near([ranges[0].min(), ranges[1].max()], np.array([low, high]), 0)
            chunk = 16 if groups else 1600
            items = (256 * -(-count // (256 * chunk)), 1, 1) if groups else items_of(count, chunk)
            y, scale, zero = run_items(program, "dynamic_quantize", items, x, ranges, Out((count,), np.uint8), Out((1,)),
                                       Out((1,), np.uint8), count, chunk, align=align, group=group)
            step = np.float32(np.float32(high) - np.float32(low)) / np.float32(255)
            expected_zero = np.clip(np.rint(np.float32(0) - np.float32(low) / step), 0, 255)
            self.expect_near([scale[0], zero[0]], np.array([step, expected_zero], np.float64), 0)
            self.expect_near(y, np.clip(np.rint(x / step) + expected_zero, 0, 255), 0)

    def test_dot_products(self):
        a, b = (self.random.integers(0, 256, (16, 4)).astype(np.uint8) for _ in range(2))
        start = self.random.integers(-2**31, 2**31, 16).astype(np.int32)
        (found,) = run_items("probe_dot4", "probe_dot4", 16, a, b, start, Out((3, 16), np.int32), align=4)
        for i, (left, right) in enumerate(((np.int8, np.int8), (np.uint8, np.int8), (np.uint8, np.uint8))):
            sums = (a.view(left).astype(np.int64) * b.view(right)).sum(axis=1) + start
            self.expect_near(found[i], sums.astype(np.int32), 0, i)

    def test_range_and_where(self):
        for entry, of in (("range_i32", np.int32), ("range_i64", np.int64)):
            (found,) = run_items("range", entry, 3, np.array([5], of), np.array([-3], of), Out((8,), of), 8, 3)
            self.expect_near(found, 5 - 3 * np.arange(8), 0)
        condition = self.random.integers(0, 2, (3, 1)).astype(np.uint8)
        for size, of in ((1, np.uint8), (2, np.uint16), (4, np.uint32), (8, np.uint64)):
            a, b = self.random.integers(0, 99, (3, 5)).astype(of), self.random.integers(0, 99, 5).astype(of)
            (found,) = run_items("where", f"where_{size}", 4, condition, a, b, Out((3, 5), of),
                                 shape_words((3, 5), (1, 0), (5, 1), (0, 1)), 2, 15, 4)
            self.expect_near(found, np.where(condition, a, b).astype(np.float64), 0)

    def test_reductions(self):
        functions = [np.sum, np.mean, np.max, np.min, np.prod, lambda v, axis: np.sqrt((v ** 2).sum(axis=axis))]
        for outer, size, inner in ((3, 21, 1), (2, 5, 19), (1, 1, 1)):
            x = self.random.uniform(-1.5, 1.5, (outer, size, inner)).astype(np.float32)
            for op, function in enumerate(functions):
                expected = function(x.astype(np.float64), axis=1)
                (found,) = run_items("reduce", "reduce_f32", items_of(outer * inner, 17), x, Out((outer, inner)), op,
                                     outer, size, inner, 17)
                self.expect_near(found, expected, 1e-5, op)
            for last, (entry, of) in itertools.product((0, 1), (("argmax_f32", np.float32), ("argmax_i32", np.int32),
                                                                ("argmax_i64", np.int64))):
                whole = np.rint(x).astype(of)
                (found,) = run_items("reduce", entry, items_of(outer * inner, 2), whole,
                                     Out((outer, inner), np.int64), outer, size, inner, last, 2)
                place = size - 1 - whole[:, ::-1].argmax(axis=1) if last else whole.argmax(axis=1)
                self.expect_near(found, place, 0)
            for entry, of in (("reduce_i32", np.int32), ("reduce_i64", np.int64)):
                whole = self.random.integers(1, 4, (outer, size, inner)).astype(of)
                for op, function in enumerate(functions[:4]):
                    (found,) = run_items("reduce", entry, items_of(outer * inner, 2), whole, Out((outer, inner), of),
                                         op, outer, size, inner, 2)
                    self.expect_near(found, np.trunc(function(whole, axis=1)), 0)

    def test_cumulative_sums(self):
        for entry, of in (("cumsum_f32", np.float32), ("cumsum_i32", np.int32), ("cumsum_i64", np.int64)):
            x = self.random.integers(-5, 6, (2, 7, 3)).astype(of)
            for exclusive, reverse in itertools.product((0, 1), repeat=2):
                (found,) = run_items("cumsum", entry, 3, x, Out(x.shape, of), 2, 7, 3, exclusive, reverse, 2)
                y = x[:, ::-1] if reverse else x
                y = np.cumsum(y, axis=1) - (y if exclusive else 0)
                self.expect_near(found, y[:, ::-1] if reverse else y, 0)


class Moves(KernelTest):
    def setUp(self):
        super().setUp()
        self.random = np.random.default_rng(6)

    def test_copies(self):
        for size, of in ((1, np.uint8), (2, np.uint16), (4, np.uint32), (8, np.uint64)):
            x = self.random.integers(0, 99, (3, 40)).astype(of)
            (found,) = run_items("copy_strided", f"copy_strided_{size}", 5, x, Out((40, 3), of), 0, 0,
                                 shape_words((40, 3), (1, 40), (3, 1)), 2, 120, 27)
            self.expect_near(found, x.T.astype(np.float64), 0, "transpose")
            (found,) = run_items("copy_strided", f"copy_strided_{size}", 5, x, changed(np.zeros((3, 44), of)), 39, 2,
                                 shape_words((3, 40), (40, -1), (44, 1)), 2, 120, 27)
            self.expect_near(found[:, 2:42], x[:, ::-1].astype(np.float64), 0, "backwards, padded")
            self.assertFalse(found[:, :2].any() or found[:, 42:].any())
            (found,) = run_items("copy_strided", f"copy_strided_{size}", 5, x, Out((3, 40), of), 0, 0,
                                 shape_words((120,), (1,), (1,)), 1, 120, 27)
            self.expect_near(found, x.astype(np.float64), 0)
            (found,) = run_items("copy_strided", f"fill_strided_{size}", 2, x[:1, :1].copy(),
                                 changed(np.zeros((3, 4), of)), 1, shape_words((3, 2), (0, 0), (4, 1)), 2, 6, 4)
            expected = np.zeros((3, 4))
            expected[:, 1:3] = x[0, 0]
            self.expect_near(found, expected, 0)

    def test_gathers(self):
        for size, of, kind, index in ((1, np.uint8, S32, np.int32), (2, np.uint16, S64, np.int64),
                                      (4, np.uint32, S64, np.int64), (8, np.uint64, S32, np.int32)):
            data = self.random.integers(0, 99, (2, 5, 19)).astype(of)
            for bad in (0, 1):
                indices = np.array([0, -1, 4, 2 + 7 * bad], index)
                near = np.clip(np.where(indices < 0, indices + 5, indices), 0, 4)
                found, error = run_items("gather", f"gather_{size}", 3, data, indices, kind, Out((2, 4, 19), of), 2, 5,
                                         19, 4, changed(np.zeros(1, np.int32)), 3)
                self.expect_near(found, data[:, near].astype(np.float64), 0)
                self.assertEqual(error[0], bad)
            places = self.random.integers(-5, 5, (2, 3, 19)).astype(index)
            found, error = run_items("gather_elements", f"gather_elements_{size}", 6, data, places, kind,
                                     Out(places.shape, of), shape_words(places.shape, (95, 0, 1), (57, 19, 1)), 3, 5,
                                     19, changed(np.zeros(1, np.int32)), 114, 20)
            self.expect_near(found, np.take_along_axis(data, places % 5, axis=1).astype(np.float64), 0)
            tuples = np.stack([self.random.integers(-2, 2, 6), self.random.integers(-5, 5, 6)], axis=1).astype(index)
            found, error = run_items("gather_nd", f"gather_nd_{size}", 3, data, tuples, kind, Out((6, 19), of), 1, 6, 2,
                                     np.array([2, 5], np.int32), 19, changed(np.zeros(1, np.int32)), 2)
            self.expect_near(found, data[tuples[:, 0], tuples[:, 1]].astype(np.float64), 0)

    def test_packing_of_tokens(self):
        for width in (1, 16, 35):
            padded = self.random.integers(0, 256, (3, 4, width)).astype(np.uint8)
            lengths = [4, 0, 3]
            offsets = np.cumsum([0, *lengths]).astype(np.int32)
            expected = np.concatenate([padded[b, :n] for b, n in enumerate(lengths)])
            (packed,) = run_items("pack", "pack", 3, padded, Out((7, width), np.uint8), offsets, 3, 4, width, 5,
                                  align=4)
            self.expect_near(packed, expected, 0, width)
            (back,) = run_items("unpack", "unpack", 3, packed, Out(padded.shape, np.uint8), None, offsets, 3, 4, width,
                                0, 5, align=4)
            for b, n in enumerate(lengths):
                padded[b, n:] = 0
            self.expect_near(back, padded, 0, width)
            if width % 4 == 0:
                start, end = run_items("unpack", "unpack", 3, packed, Out((3, 4, 4), np.uint8),
                                       Out((3, 4, width - 4), np.uint8), offsets, 3, 4, 4, width - 4, 5, align=4)
                self.expect_near(np.concatenate([start, end], axis=2), padded, 0, width)


class Matmuls(KernelTest):
    def test_floats(self):
        random = np.random.default_rng(7)
        for m, n, k in ((1, 1, 1), (9, 33, 20), (3, 31, 260), (65, 66, 17)):
            a, b = (random.normal(0, 1, s).astype(np.float32) for s in ((2, m, k), (k, n)))
            for transposed in (False, True) if k < 256 else (True,):
                given = np.ascontiguousarray(b.T) if transposed else b
                for program, items, group in (("batched", (-(-n // 32), -(-m // 8), 2), (1, 1, 1)),
                                              ("group", (256 * -(-n // 64), -(-m // 64), 2), (256, 1, 1))):
                    (found,) = run_items(
                        f"matmul_f32_{program}", "matmul_f32_batched", items, a, k, 1, given,
                        *((1, k) if transposed else (n, 1)), Out((2, m, n)), m, n, k, 0.5,
                        shape_words((2,), (m * k,), (0,)), 1, 8, group=group)
                    wide = a.astype(np.float64), b.astype(np.float64)
                    size = np.abs(wide[0]) @ np.abs(wide[1])
                    self.expect_near(found, 0.5 * (wide[0] @ wide[1]), 2.0 ** -23 * (k + 2) * size, (m, n, k))

    def test_integers(self):
        random = np.random.default_rng(8)
        for i, (m, n, k) in enumerate(((1, 1, 1), (9, 33, 20), (2, 31, 258), (65, 66, 17))):
            a = random.integers(0, 256, (2, m, k)).astype(np.uint8)
            b = random.integers(-128, 128, (k, n)).astype(np.int8)
            a_zeros, b_zeros = random.integers(0, 256, m).astype(np.uint8), random.integers(-9, 9, n).astype(np.int8)
            step = i % 2
            for program, items, group in (("batched", (-(-n // 32), -(-m // 8), 2), (1, 1, 1)),
                                          ("group", (256 * -(-n // 64), -(-m // 64), 2), (256, 1, 1))):
                (found,) = run_items(
                    f"matmul_s32_{program}", "matmul_s32_batched", items, a, k, 1, U8, a_zeros, step, b, n, 1, S8,
                    b_zeros if step else None, step, Out((2, m, n), np.int32), m, n, k,
                    shape_words((2,), (m * k,), (0,)), 1, 8, group=group)
                left = a.astype(np.int64) - (a_zeros[:, None].astype(np.int64) if step else int(a_zeros[0]))
                self.expect_near(found, left @ (b.astype(np.int64) - (b_zeros if step else 0)), 0, (m, n, k))


class Observers(KernelTest):
    def test_ranges_and_histograms(self):
        x = np.random.default_rng(9).normal(0, 2, (4, 30)).astype(np.float32)
        (dense,) = run_items("observe", "observe_gather", (2, 2), x, changed(np.zeros(45, np.float32)), 3, 5, 60,
                             30, 10, 2, 2)
        self.expect_near(dense[5:], x[:, 3:13].ravel(), 0)
        (partials,) = run_items("observe", "observe_range", 3, x, Out((3, 4)), 7, 107, 40)
        (states,) = run_items("observe", "observe_merge", 1, partials, changed(np.zeros((2, 4), np.float32)), 3, 1, 0)
        used = x.ravel()[7:107]
        self.expect_near(states[1], np.array([used.min(), used.max(), np.abs(used).min(), 0]), 0)
        edges = np.linspace(0, 3, 11).astype(np.float32)
        (counts,) = run_items("observe", "observe_histogram", 3, x, edges, changed(np.ones(10, np.uint32)), 7, 107, 40,
                              10, 1, float(10 / 3))
        self.expect_near(counts, np.histogram(np.abs(used), edges)[0] + 1, 0)

    def test_channels(self):
        x = np.random.default_rng(10).normal(0, 2, (5, 19)).astype(np.float32)
        wide = x.astype(np.float64)
        before = np.ones((3, 19), np.float32)
        for keep in (0, 1):
            (state,) = run_items("observe_channels", "observe_channels", 2, x, changed(before), 5, 19, keep)
            seen = np.vstack([wide, np.ones((keep, 19))])
            self.expect_near(state, np.stack([seen.min(axis=0), seen.max(axis=0), (seen ** 2).sum(axis=0)]), 1e-5)
        (state,) = run_items("observe_channels", "observe_shift", 2, x, changed(before[:2].copy()), 5, 19, 0.05, 3,
                             -128.0, 127.0)
        step = np.float32(0.05)
        moved = (np.clip(np.rint(x / step) + 3, -128, 127) - 3) * float(step) - wide
        self.expect_near(state, np.stack([wide.sum(axis=0), moved.sum(axis=0)]) + 1, 1e-5)
        (gram,) = run_items("observe_channels", "observe_gram", (2, 3), x, changed(np.ones((19, 19), np.float32)),
                            5, 19)
        for row in range(19):  # below the diagonal tiles stay as they are
            self.expect_near(gram[row, row:], (wide.T @ wide)[row, row:] + 1, 1e-5, row)
        type(self).launches -= 18

    def test_nonfinite_values(self):
        x = np.zeros(70, np.float32)
        x[[37, 50]] = np.nan, np.inf
        (found,) = run_items("find_nonfinite", "find_nonfinite", 4, x, 1, 70, 0x7f800000,
                             changed(np.full(2, 99, np.int32)), 1, 19)
        self.expect_near(found, np.array([99, 37]), 0)
        (found,) = run_items("find_nonfinite", "find_nonfinite", 4, x.astype(np.float16), 0, 70, 0x7c01,
                             changed(np.full(2, 99, np.int32)), 0, 19)
        self.expect_near(found, np.array([37, 99]), 0)
