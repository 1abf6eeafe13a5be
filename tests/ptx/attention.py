# SPDX-License-Identifier: Apache-2.0
"""Attention on the interpreter, and what it has to give, in f64."""
import dataclasses

import numpy as np

from gemm import F32, OUT, S8, U8
from machine import launch
from memory import GlobalMemory
from toolchain import program_of


@dataclasses.dataclass
class Case:
    """Packed sequences. q, k and v lie side by side in one matrix, from column `offset` on."""
    lengths: tuple
    heads: int = 2
    head_size: int = 64
    mask: bool = False
    offset: int = 0
    rows: int = 0  # of a work-group; 0: as the plan chooses for long sequences
    # of int8:
    types: tuple = (S8, S8, U8)
    zeros: tuple = (3, -5, 120)
    out_type: int = F32
    unnormalized: int = 0
    p_max: int = 255
    quantized_scores: bool = False
    # of floats:
    half: bool = False

    def __post_init__(self):
        self.tokens, self.hidden = sum(self.lengths), self.heads * self.head_size
        self.stride = 3 * self.hidden + self.offset
        self.offsets = [self.offset + i * self.hidden for i in range(3)]
        self.random = np.random.default_rng((self.tokens, self.head_size, self.heads))
        self.keys = np.ones(self.tokens, np.uint8)
        if self.mask:
            self.keys = self.random.integers(0, 2, self.tokens).astype(np.uint8)
            self.keys[:self.lengths[0]] = 0  # no key at all
        self.seq_offsets = np.cumsum([0, *self.lengths]).astype(np.int32)
        self.head_max = max(32, 1 << (self.head_size - 1).bit_length())
        if not self.rows:
            self.rows = 32 if self.head_size > 64 else 64
        self.qk_scale = np.float32(0.3 / (74 * np.sqrt(self.head_size)))
        self.score_inv_scale = np.float32(0.02 / np.sqrt(self.head_size) if self.quantized_scores else 0)
        self.out_inv_scale, self.out_zero = np.float32(60), 128 if self.out_type == U8 else -3
        self.pv_scale = np.float32(0.01 if self.unnormalized else 0.01 / 255)

    def softmaxes(self, qkv, scores_of):
        """For each head of each sequence (rows, columns of out, v, powers, their totals)."""
        for begin, end in zip(self.seq_offsets, self.seq_offsets[1:]):
            for head in range(self.heads):
                columns = slice(head * self.head_size, (head + 1) * self.head_size)
                q, k, v = (qkv[i][begin:end, columns] for i in range(3))
                attended = self.keys[begin:end] != 0
                if not attended.any():
                    continue
                scores = scores_of(q, k[attended])
                powers = np.exp(scores - scores.max(axis=1, keepdims=True))
                yield slice(begin, end), columns, v[attended], powers, powers.sum(axis=1, keepdims=True)

    def parts(self, data):
        return [data[:, o:o + self.hidden].astype(np.float64) for o in self.offsets]

    def grid(self):
        return (256 * -(-max(self.lengths) // self.rows), self.heads, len(self.lengths)), (256, 1, 1)

    def place(self, memory, data):
        """(q, k, v with strides and offsets as the kernels take them)."""
        at, i32 = memory.add("qkv", data), np.int32
        return [(at, i32(self.stride), i32(o)) for o in self.offsets]

    def tail(self, memory):
        null = np.uint64(0)
        return [memory.add("seq_offsets", self.seq_offsets, 4),
                memory.add("key_mask", self.keys, 1) if self.mask else null,
                np.int32(self.mask), np.int32(self.heads), np.int32(self.head_size)]


def run_f32(case, edits=()):
    """(result, expected, bound of the difference), each [tokens][hidden]."""
    stored = np.float16 if case.half else np.float32
    data = case.random.normal(0, 1, (case.tokens, case.stride)).astype(stored)
    defines = (f"HEAD_MAX={case.head_max}", f"ROWS={case.rows}", "DOT4=2") + (("HALF=1",) if case.half else ())
    program = program_of("attention_f32_group", "attention_f32", defines, 75, edits)
    memory = GlobalMemory()
    q, k, v = case.place(memory, data)
    out = memory.add("out", np.zeros((case.tokens, case.hidden), stored), writable=True, filled=False)
    scale = np.float32(1 / np.sqrt(case.head_size))
    launch(program, memory, *case.grid(),
           [*q, *k, *v, out, *case.tail(memory), scale, np.int32(case.rows)])
    expected = np.zeros((case.tokens, case.hidden))
    for rows, columns, values, powers, totals in case.softmaxes(case.parts(data),
                                                                lambda q, k: q @ k.T * float(scale)):
        expected[rows, columns] = powers / totals @ values
    # Scores of sums of head_size terms, and powers by a polynomial of 3e-7.
    bound = 3e-6 + np.abs(expected) * (2.0 ** -11 if case.half else 0)
    return memory.get("out", stored).reshape(expected.shape).astype(np.float64), expected, bound


def run_s8(case, edits=()):
    """(result, expected before rounding to bytes, bound): sums are exact, so what differs is a probability whose
    exponential lies at the middle between two integers, nearer than an error of f32."""
    data = case.random.integers(0, 256, (case.tokens, case.stride)).astype(np.uint8)
    defines = (f"HEAD_MAX={case.head_max}", f"ROWS={case.rows}", "DOT4=2")
    program = program_of("attention_s8_dot4", "attention_s8", defines, 75, edits)
    memory, i32 = GlobalMemory(), np.int32
    operands = [i for part, kind, zero in zip(case.place(memory, data), case.types, case.zeros)
                for i in (*part, i32(kind), i32(zero))]
    out_of = OUT[case.out_type]
    out = memory.add("out", np.zeros((case.tokens, case.hidden), out_of), writable=True, filled=False)
    p_inv_scale = np.float32(255)
    low, high = -40, 60
    launch(program, memory, *case.grid(), [
        *operands, out, i32(case.out_type), case.out_inv_scale, i32(case.out_zero), *case.tail(memory),
        case.qk_scale, p_inv_scale, i32(case.p_max), i32(case.unnormalized), case.pv_scale,
        case.score_inv_scale, i32(low), i32(high), i32(case.rows)])

    qkv = [data[:, o:o + case.hidden].view(OUT[t]).astype(np.int64) - z
           for o, t, z in zip(case.offsets, case.types, case.zeros)]

    def scores_of(q, k):
        sums = q @ k.T
        if case.quantized_scores:
            sums = np.clip(np.rint(sums.astype(np.float32) * case.score_inv_scale), low, high)
        return sums * float(case.qk_scale)

    expected, bound = np.zeros((case.tokens, case.hidden)), np.zeros((case.tokens, case.hidden))
    for rows, columns, values, powers, totals in case.softmaxes(qkv, scores_of):
        exact = powers * float(p_inv_scale) / (1 if case.unnormalized else totals)
        p = np.minimum(np.rint(exact), case.p_max)
        near = np.abs(exact - np.floor(exact) - 0.5) < 1e-5 * np.maximum(exact, 1)
        scale = float(case.pv_scale) / (np.maximum(p.sum(axis=1, keepdims=True), 1) if case.unnormalized else 1)
        y = p @ values * scale
        expected[rows, columns] = y
        bound[rows, columns] = near @ np.abs(values) * scale + np.abs(y) * 1e-6
        if case.unnormalized:
            bound[rows, columns] += near.sum(axis=1, keepdims=True) * np.abs(y) / np.maximum(p.sum(
                axis=1, keepdims=True), 1)
    found = memory.get("out", out_of).reshape(expected.shape).astype(np.float64)
    if case.out_type != F32:
        bounds = np.iinfo(out_of)
        inv = float(case.out_inv_scale)
        expected = np.clip(expected * inv + case.out_zero, bounds.min, bounds.max)
        bound = bound * inv + 0.5 + 1e-4
    return found, expected, bound
