# SPDX-License-Identifier: Apache-2.0
"""GEMMs on the interpreter, and what they have to give."""
import dataclasses
import math

import numpy as np

from items import groups_of
from machine import launch
from memory import GlobalMemory
from scalar import fma
from toolchain import program_of

F32, U8, S8, S32 = 0, 1, 2, 4  # lib/types.clh
OUT = {F32: np.float32, U8: np.uint8, S8: np.int8, S32: np.int32}
PANEL = 64


@dataclasses.dataclass(frozen=True)
class Variant:
    """A row of engine/kernels/variants.cpp, as an NVIDIA device gets it."""
    program: str
    k_group: int
    defines: tuple
    tile: tuple = (128, 128)
    sm: int = 80
    known_epilogue: bool = False

    def with_tile(self, m, n):
        return dataclasses.replace(self, tile=(m, n), defines=self.defines + (f"TILE_M={m}", f"TILE_N={n}"))


MMA = Variant("gemm_s8_mma", 16, ("MATRIX_UNIT=1", "MATRIX_EMULATED=0", "COPY_ASYNC=2"), known_epilogue=True)
WGMMA = Variant("gemm_s8_wgmma", 16, ("MATRIX_EMULATED=0", "COPY_ASYNC=2"), tile=(128, 256), sm=90,
                known_epilogue=True)
MATRIX = Variant("gemm_s8_matrix", 4, ("MATRIX_UNIT=1", "MATRIX_EMULATED=0", "COPY_ASYNC=2"))
DOT4 = Variant("gemm_s8_dot4", 4, ("DOT4=2",), sm=75)
F32_PORTABLE = Variant("gemm_f32_portable", 1, (), tile=(6, 16), sm=75)
F32_GROUP = Variant("gemm_f32_group", 1, (), sm=75)
F16 = Variant("gemm_f16_matrix", 2, ("MATRIX_UNIT=1", "MATRIX_EMULATED=0", "COPY_ASYNC=2"))


def prepacked(w, group, dtype):
    """[ceil(N/64)][ceil(K/group)][64][group], zeros past N and K: prepack_s8.cl and prepack_pairs.cl."""
    k, n = w.shape
    panels, groups = -(-n // PANEL), -(-k // group)
    padded = np.zeros((groups * group, panels * PANEL), dtype)
    padded[:k, :n] = w
    return np.ascontiguousarray(padded.reshape(groups, group, panels, PANEL).transpose(2, 0, 3, 1))


def activated(x, activation):
    """activation.clh in f64."""
    x = x.astype(np.float64)
    if activation == 1:
        return x / 2 * (1 + _erf(x / np.sqrt(2)))
    if activation == 2:
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return (x, None, None, np.maximum(x, 0), np.tanh(x))[activation]


def _erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


@dataclasses.dataclass
class CaseS8:
    """Operands of gemm_s8: bytes of a, weights, and what the epilogue reads."""
    M: int
    N: int
    K: int
    a_signed: int = 1
    out_type: int = S32
    activation: int = 0
    bias: bool = True
    measured: bool = False  # x_scale, x_zero_point, row_scale
    weight_zeros: bool = False
    seed: int = 0

    def __post_init__(self):
        random = np.random.default_rng((self.seed, self.M, self.N, self.K))
        low, high = (-128, 128) if self.a_signed else (0, 256)
        self.a = random.integers(low, high, (self.M, self.K)).astype(np.int8 if self.a_signed else np.uint8)
        self.w = random.integers(-128, 128, (self.K, self.N)).astype(np.int8)
        self.zero = int(random.integers(low, high))
        f32 = lambda low, high, n: random.uniform(low, high, n).astype(np.float32)  # noqa: E731
        self.scale = f32(0.5, 2, self.N) * np.float32(1 / (74 * 74 * np.sqrt(self.K)))
        self.bias_values = f32(-1, 1, self.N)
        self.out_inv_scale = f32(20, 60, self.N)
        self.out_zero = random.integers(-20, 20, self.N).astype(np.float32) + (128 if self.out_type == U8 else 0)
        self.x_scale, self.row_scale = f32(0.5, 2, 1), f32(0.5, 2, self.M)
        self.w_zeros = random.integers(-20, 20, self.N).astype(np.int32)
        self.a_sums = (self.a.astype(np.int64) - self.zero).sum(axis=1).astype(np.int32)

    def sums(self):
        w = self.w.astype(np.int64) - (self.w_zeros if self.weight_zeros else 0)
        return ((self.a.astype(np.int64) - self.zero) @ w).astype(np.int32)

    def expected(self):
        """(result, bound of the difference). Without a transcendental activation the result is exact: the same
        operations in f32, in the order of epilogue4.clh."""
        sums = self.sums()
        if self.out_type == S32:
            return sums, 0
        factor = self.scale * self.x_scale * self.row_scale[:, None] if self.measured else self.scale
        bias = self.bias_values if self.bias else np.float32(0)
        exact = self.activation in (0, 3)
        if exact:
            x = fma(sums.astype(np.float32), np.broadcast_to(factor, sums.shape), bias)
            x = np.maximum(x, np.float32(0)) if self.activation else x
            error = 0
        else:
            x = activated(sums * factor.astype(np.float64) + bias, self.activation)
            error = 4e-6 * (1 + np.abs(x))
        if self.out_type == F32:
            return x, error
        limits = np.iinfo(OUT[self.out_type])
        if exact:
            return np.clip(np.rint(x * self.out_inv_scale) + self.out_zero, limits.min, limits.max), 0
        x = np.clip(x * self.out_inv_scale + self.out_zero, limits.min, limits.max)
        return x, 0.5 + error * self.out_inv_scale


def run_s8(variant, case, edits=(), b=None, parts=0):
    """The result of a launch, [M][N]; or of two, of which the first divides K into `parts`. Buffers begin where the
    kernel's contract allows, and no farther aligned."""
    defines = variant.defines
    known = (f"ACTIVATION={case.activation}", f"OUT_TYPE={case.out_type}") if variant.known_epilogue else ()
    memory = GlobalMemory()
    null = np.uint64(0)
    quantized = case.out_type in (U8, S8)
    out = np.zeros((case.M, case.N), OUT[case.out_type])
    b = prepacked(case.w, variant.k_group, np.int8) if b is None else b
    i32 = np.int32
    arguments = [
        memory.add("a", case.a), memory.add("b", b),
        memory.add("column_sums", case.w.sum(axis=0, dtype=i32), 4),
        memory.add("scale", case.scale, 4) if case.out_type != S32 else null,
        memory.add("bias", case.bias_values, 4) if case.bias else null,
        memory.add("out_inv_scale", case.out_inv_scale, 4) if quantized else null,
        memory.add("out_zero_point", case.out_zero, 4) if quantized else null,
        memory.add("out", out, writable=True, filled=False),
        i32(case.M), i32(case.N), i32(case.K), i32(0 if case.measured else case.zero), i32(case.a_signed),
        i32(case.bias), i32(case.activation), i32(case.out_type),
        memory.add("x_scale", case.x_scale, 4) if case.measured else null,
        memory.add("x_zero_point", np.array([case.zero], case.a.dtype), 1) if case.measured else null,
        memory.add("row_sums", case.a_sums, 4) if case.weight_zeros else null,
        memory.add("w_zero_point", case.w_zeros, 4) if case.weight_zeros else null,
        memory.add("row_scale", case.row_scale, 4) if case.measured else null]
    tiles = -(-case.M // variant.tile[0]), -(-case.N // variant.tile[1])
    groups = 256 * tiles[0], tiles[1]
    if not parts:
        program = program_of(variant.program, "gemm_s8", defines + known, variant.sm, edits)
        launch(program, memory, groups, (256, 1), arguments)
        return memory.get("out", OUT[case.out_type]).reshape(case.M, case.N)
    partials = memory.add("partials", np.zeros((parts, case.M, case.N), i32), 16, writable=True, filled=False)
    sums = program_of(variant.program, "gemm_s8_partial", defines + ("PARTIAL=1",), variant.sm,
                      tuple(e for e in edits if "gemm_s8_reduce" not in e[0]))
    launch(sums, memory, (*groups, parts), (256, 1, 1),
           [*arguments[:2], partials, *arguments[8:11], i32(case.a_signed), i32(parts)])
    finish = program_of("gemm_s8_reduce", "gemm_s8_reduce", known, 75, tuple(e for e in edits if "gemm_s8_reduce" in e[0]))
    launch(finish, memory, *groups_of((-(-case.N // 4), case.M)),
           [partials, *arguments[2:10], *arguments[11:], i32(parts)])
    return memory.get("out", OUT[case.out_type]).reshape(case.M, case.N)


def run_floats(variant, M, N, K, activation=0, bias=True, b_half=False, edits=()):
    """(result, expected, bound) of gemm_f32: by matrix units with operands rounded to f16, or in f32."""
    random = np.random.default_rng((M, N, K))
    f32 = lambda *shape: random.normal(0, 1, shape).astype(np.float32)  # noqa: E731
    a, w, bias_values = f32(M, K), f32(K, N), f32(N)
    matrix = variant.k_group == 2
    defines = variant.defines + (("B_HALF=1",) if b_half else ())
    program = program_of(variant.program, "gemm_f32", defines, variant.sm, edits)
    if matrix:
        packed = prepacked(w.astype(np.float16), 2, np.float16)
    elif variant.program == "gemm_f32_group":
        packed = prepacked(w, 1, np.float16 if b_half else np.float32)
    else:
        panels = -(-N // 16)
        padded = np.zeros((K, panels * 16), np.float16 if b_half else np.float32)
        padded[:, :N] = w
        packed = np.ascontiguousarray(padded.reshape(K, panels, 16).transpose(1, 0, 2))
    memory, i32 = GlobalMemory(), np.int32
    arguments = [memory.add("a", a), memory.add("b", packed),
                 memory.add("bias", bias_values, 4) if bias else np.uint64(0),
                 memory.add("out", np.zeros((M, N), np.float32), writable=True, filled=False),
                 i32(M), i32(N), i32(K), i32(bias), i32(activation)]
    tiles = -(-M // variant.tile[0]), -(-N // variant.tile[1])
    if variant is F32_PORTABLE:
        launch(program, memory, *groups_of(tiles), arguments)
    else:
        launch(program, memory, (256 * tiles[0], tiles[1]), (256, 1), arguments)
    if matrix:
        a, w = a.astype(np.float16), w.astype(np.float16)
    elif b_half:
        w = w.astype(np.float16)
    a, w = a.astype(np.float64), w.astype(np.float64)
    x = a @ w + (bias_values if bias else 0)
    expected = activated(x, activation)
    # Each of K additions rounds a sum no larger than that of the magnitudes; then the activation.
    size = np.abs(a) @ np.abs(w) + (np.abs(bias_values) if bias else 0)
    bound = 2.0 ** -23 * (K + 2) * size * 1.2 + 1e-6 * np.abs(expected) + 1e-7
    return memory.get("out", np.float32).reshape(M, N).astype(np.float64), expected, bound
