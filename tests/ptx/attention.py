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
    bias: bool = False
    shared: int = 1  # heads of q for one of k and v
    window: int = 0  # not with a mask: every row attends itself
    # of int8:
    unit: str = "dot4"  # "mma", "emulated", or "ref": the plain kernel; of floats "mma", "emulated"
    types: tuple = (S8, S8, U8)
    zeros: tuple = (3, -5, 120)
    out_type: int = F32
    unnormalized: int = 0
    p_max: int = 255
    quantized_scores: bool = False

    def __post_init__(self):
        self.tokens, self.hidden = sum(self.lengths), self.heads * self.head_size
        self.stride = 3 * self.hidden + self.offset
        self.offsets = [self.offset + i * self.hidden for i in range(3)]
        self.random = np.random.default_rng((self.tokens, self.head_size, self.heads))
        self.keys = np.ones(self.tokens, np.uint8)
        if self.mask:
            self.keys = self.random.integers(0, 2, self.tokens).astype(np.uint8)
            self.keys[:self.lengths[0]] = 0  # no key at all
        longest = max(self.lengths)
        self.added = self.random.normal(0, 1, (self.heads, longest, longest)).astype(np.float32) if self.bias else None
        self.seq_offsets = np.cumsum([0, *self.lengths]).astype(np.int32)
        self.head_max = max(32, 1 << (self.head_size - 1).bit_length())
        if not self.rows:
            self.rows = 32 if self.head_size > 64 else 64
        # So that probabilities differ much.
        self.qk_scale = np.float32(0.05 if self.quantized_scores else 0.3 / (74 * np.sqrt(self.head_size)))
        self.score_inv_scale = np.float32(0.02 / np.sqrt(self.head_size) if self.quantized_scores else 0)
        self.out_inv_scale, self.out_zero = np.float32(60), 128 if self.out_type == U8 else -3
        self.pv_scale = np.float32(0.01 if self.unnormalized else 0.01 / 255)

    def softmaxes(self, qkv, scores_of):
        """For each head of each sequence (rows, columns of out, v, exponentials, their totals)."""
        for begin, end in zip(self.seq_offsets, self.seq_offsets[1:]):
            for head in range(self.heads):
                columns = slice(head * self.head_size, (head + 1) * self.head_size)
                first = head // self.shared * self.head_size
                q, k, v = (qkv[i][begin:end, at] for i, at in enumerate(
                    (columns, *2 * (slice(first, first + self.head_size),))))
                attended = self.keys[begin:end] != 0
                if not attended.any():
                    continue
                scores = self.with_bias(scores_of(q, k[attended]), head, np.flatnonzero(attended))
                exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
                yield slice(begin, end), columns, v[attended], exponentials, exponentials.sum(axis=1, keepdims=True)

    def with_bias(self, scores, head, keys):
        rows = np.arange(len(scores))[:, None]
        if self.bias:
            scores = scores + self.added[head][rows, keys]
        return np.where(abs(rows - keys) > self.window, -np.inf, scores) if self.window else scores

    def parts(self, data):
        return [data[:, o:o + self.hidden].astype(np.float64) for o in self.offsets]

    def grid(self):
        if self.unit == "ref":
            return (max(self.lengths), self.heads, len(self.lengths)), (1, 1, 1)
        items = 256 if self.unit == "dot4" else 2 * self.rows
        return (items * -(-max(self.lengths) // self.rows), self.heads, len(self.lengths)), (items, 1, 1)

    def program(self):
        if self.unit == "ref":
            return "attention_s8_ref", "attention_s8", (f"HEAD_MAX={self.head_max}",), 75
        defines = (f"HEAD_MAX={self.head_max}", f"ROWS={self.rows}", "DOT4=2")
        if self.unit in ("mma", "emulated"):
            defines += self.has_bias(), f"MATRIX_EMULATED={int(self.unit == 'emulated')}"
            return "attention_s8_mma", "attention_s8", defines, 80
        return "attention_s8_dot4", "attention_s8", (*defines, self.has_bias()), 75

    def place(self, memory, data):
        """(q, k, v with strides and offsets as the kernels take them)."""
        at, i32 = memory.add("qkv", data), np.int32
        return [(at, i32(self.stride), i32(o)) for o in self.offsets]

    def has_bias(self):
        return f"BIAS={int(self.bias or self.window > 0)}"

    def bias_arguments(self, memory):
        """The last ones: bias, its steps from row to row, key to key, head to head and of a token, window; heads
        of q for one of k and v."""
        at = memory.add("bias", self.added, 4) if self.bias else np.uint64(0)
        longest = max(self.lengths)
        return [at, *(np.int32(i) for i in (longest, 1, longest * longest, 0, self.window, self.shared))]

    def tail(self, memory):
        null = np.uint64(0)
        return [memory.add("seq_offsets", self.seq_offsets, 4),
                memory.add("key_mask", self.keys, 1) if self.mask else null,
                np.int32(self.mask), np.int32(self.heads), np.int32(self.head_size)]


def run_f32(case, edits=()):
    """(result, expected, bound of the difference), each [tokens][hidden]."""
    data = case.random.normal(0, 1, (case.tokens, case.stride)).astype(np.float32)
    defines = (f"HEAD_MAX={case.head_max}", f"ROWS={case.rows}", "DOT4=2", case.has_bias())
    program = program_of("attention_f32_group", "attention_f32", defines, 75, edits)
    memory = GlobalMemory()
    q, k, v = case.place(memory, data)
    out = memory.add("out", np.zeros((case.tokens, case.hidden), np.float32), writable=True, filled=False)
    scale = np.float32(1 / np.sqrt(case.head_size))
    launch(program, memory, *case.grid(),
           [*q, *k, *v, out, *case.tail(memory), scale, np.int32(case.rows), *case.bias_arguments(memory)])
    expected = np.zeros((case.tokens, case.hidden))
    for rows, columns, values, exponentials, totals in case.softmaxes(case.parts(data),
                                                                lambda q, k: q @ k.T * float(scale)):
        expected[rows, columns] = exponentials / totals @ values
    # Scores of sums of head_size terms, and exponentials by a polynomial of 3e-7.
    bound = np.full_like(expected, 3e-6)
    return memory.get("out", np.float32).reshape(expected.shape).astype(np.float64), expected, bound


def run_f16(case, edits=(), change=None):
    """(result, expected, bound of the difference) of attention_f16_mma; `change(data, case)`: other operands."""
    data = case.random.normal(0, 1, (case.tokens, case.stride)).astype(np.float32)
    if change:
        change(data, case)
    defines = (f"HEAD_MAX={case.head_max}", f"ROWS={case.rows}", case.has_bias(),
               f"MATRIX_EMULATED={int(case.unit == 'emulated')}")
    program = program_of("attention_f16_mma", "attention_f32", defines, 80, edits)
    memory = GlobalMemory()
    q, k, v = case.place(memory, data)
    out = memory.add("out", np.zeros((case.tokens, case.hidden), np.float32), writable=True, filled=False)
    scale = np.float32(1 / np.sqrt(case.head_size))
    launch(program, memory, *case.grid(),
           [*q, *k, *v, out, *case.tail(memory), scale, np.int32(case.rows), *case.bias_arguments(memory)])
    # What the kernel rounds: q times scale * log2(e), k and v.
    exponent = scale * np.float32(np.log2(np.e))
    parts = [data[:, o:o + case.hidden] for o in case.offsets]
    q, k, v = (x.astype(np.float16).astype(np.float64) for x in (parts[0] * exponent, parts[1], parts[2]))
    expected, bound = np.zeros(q.shape), np.full(q.shape, 1e-30)
    for rows, columns, values, exponentials, totals in case.softmaxes((q, k, v), lambda q, k: q @ k.T * np.log(2)):
        p, size = exponentials / totals, np.abs(values)
        expected[rows, columns] = p @ values
        # p is rounded to halves: by 2^-11 of it, below 2^-14 by 2^-25 of the largest exponential. Sums are rounded to
        # f32 once for 16 products, of head_size (scores below 16) and of keys; exponentials have an error of 3e-7.
        share = 2.0 ** -11 + 1e-6 * (4 + case.head_size / 16 + len(values) / 16)
        bound[rows, columns] = share * (p @ size) + 2.0 ** -25 / totals * size.sum(axis=0) + share * np.abs(p @ values)
    return memory.get("out", np.float32).reshape(expected.shape).astype(np.float64), expected, bound


def run_s8(case, edits=()):
    """(result, expected, bound): sums are exact and the result equals NumPy's to the bit, except where the power of a
    probability lies at the middle between two integers, nearer than an error of f32."""
    data = case.random.integers(0, 256, (case.tokens, case.stride)).astype(np.uint8)
    program = program_of(*case.program(), edits=edits)
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
        case.score_inv_scale, i32(low), i32(high), i32(1), *case.bias_arguments(memory)])

    qkv = [data[:, o:o + case.hidden].view(OUT[t]).astype(np.int64) - z
           for o, t, z in zip(case.offsets, case.types, case.zeros)]

    def scores_of(q, k):
        sums = q @ k.T
        if case.quantized_scores:
            sums = np.clip(np.rint(sums.astype(np.float32) * case.score_inv_scale), low, high)
        return sums * float(case.qk_scale)

    shape = case.tokens, case.hidden
    expected, near_tie = np.zeros(shape, np.float32), np.zeros(shape)
    for rows, columns, values, exponentials, totals in case.softmaxes(qkv, scores_of):
        exact = exponentials * float(p_inv_scale) / (1 if case.unnormalized else totals)
        p = np.minimum(np.rint(exact), case.p_max)
        near = np.abs(exact - np.floor(exact) - 0.5) < 1e-5 * np.maximum(exact, 1)
        p_sum = np.maximum(p.sum(axis=1, keepdims=True), 1).astype(np.float32)
        scale = case.pv_scale / p_sum if case.unnormalized else case.pv_scale
        y = (p @ values).astype(np.float32) * scale
        expected[rows, columns] = y
        near_tie[rows, columns] = near @ np.abs(values) * scale
        if case.unnormalized:
            near_tie[rows, columns] += near.sum(axis=1, keepdims=True) * np.abs(y) / p_sum
    bound = np.where(near_tie > 0, near_tie + np.abs(expected) * 1e-6, 0)
    if case.out_type != F32:
        limits = np.iinfo(out_of)
        expected = np.clip(np.rint(expected * case.out_inv_scale) + np.float32(case.out_zero), limits.min, limits.max)
        bound = np.where(near_tie > 0, near_tie * case.out_inv_scale + 1, 0)
    return memory.get("out", out_of).reshape(shape).astype(np.float64), expected.astype(np.float64), bound


def run_position_scores(lengths, head_size, count, x_type=F32, of_keys=False, adds=False, edits=(), variant="group",
                        by_distance=False, offset=3):
    """(result, expected, bound), each [heads][tokens][longest]: by key and place of the row."""
    random, memory, i32 = np.random.default_rng((len(lengths), head_size, count)), GlobalMemory(), np.int32
    heads, tokens, longest, zero = 2, sum(lengths), max(lengths), (0, 117, -3)[x_type]
    stride, seq, offsets = offset + heads * head_size, longest + 2, np.cumsum([0, *lengths])
    if x_type == F32:
        x = random.normal(0, 1, (tokens, stride)).astype(np.float32)
    else:
        x = random.integers(0, 256, (tokens, stride)).astype(np.uint8).view(OUT[x_type])
    table = random.normal(0, 1, (heads, head_size, count)).astype(np.float32)
    index = random.integers(-count, count, (seq, seq)).astype(i32)
    if by_distance:
        index = np.clip(np.arange(seq)[:, None] - np.arange(seq) + count // 2, 0, count - 1).astype(i32)
    addend = random.normal(0, 1, (heads, tokens, longest)).astype(np.float32)
    panels = np.pad(table, ((0, 0), (0, 0), (0, -count % 32))).reshape(heads, head_size, -1, 32).transpose(0, 2, 1, 3)
    # Places after the last row of a sequence stay as they were.
    out = memory.add("out", np.zeros(addend.shape, np.float32), writable=True)
    tiles = -(-longest // 64)
    grid = ((256 * tiles, heads * tiles, len(lengths)), (256, 1, 1)) if variant == "group" else (
        (longest, heads, len(lengths)), (1, 1, 1))
    launch(program_of(f"position_scores_f32_{variant}", "position_scores", (), 75, edits), memory, *grid,
           [memory.add("x", x), i32(stride), i32(offset), i32(x_type), i32(zero),
            memory.add("positions", np.ascontiguousarray(panels), 4), i32(0), i32(count), memory.add("index", index, 4),
            i32(seq), i32(of_keys), memory.add("addend", addend, 4) if adds else np.uint64(0), out, i32(longest),
            i32(tokens * longest), memory.add("seq_offsets", offsets.astype(i32), 4), i32(heads), i32(head_size),
            np.float32(0.25), i32(1), memory.add("error", np.zeros(1, i32), 4, writable=True)])
    products = np.einsum("thd,hdp->htp", (x[:, offset:].astype(np.float64) - zero).reshape(tokens, heads, head_size),
                         table.astype(np.float64))
    expected = np.zeros(addend.shape)
    for begin, length in zip(offsets, lengths):
        places = index[:length, :length] % count
        scores = np.take_along_axis(products[:, begin:begin + length], places[None], 2)  # [heads][from][to]
        expected[:, begin:begin + length, :length] = 0.25 * (scores if of_keys else scores.transpose(0, 2, 1))
        if adds:
            expected[:, begin:begin + length, :length] += addend[:, begin:begin + length, :length]
    bound = 1e-6 * (1 + np.abs(products).max()) * np.sqrt(head_size)
    return memory.get("out", np.float32).reshape(addend.shape).astype(np.float64), expected, bound
