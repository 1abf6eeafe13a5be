# SPDX-License-Identifier: Apache-2.0
"""Kernels of rows and prepacking on the interpreter, and what they have to give, in f64."""
import numpy as np

from gemm import F32, OUT, S8, U8
from items import groups_of
from machine import launch
from memory import GlobalMemory
from toolchain import program_of

F16, BF16 = 3, 7  # lib/types.clh
NULL = np.uint64(0)


def row_program(name, entry, size, kept=True, edits=()):
    """(program, work-items of a row), as plan/row_kernels.cpp chooses them."""
    columns = size if kept else 1
    items = 64 if columns <= 1024 else 128 if columns <= 2048 else 256
    defines = (f"ITEMS={items}", f"VECTORS={-(-columns // (4 * items))}", "SUBGROUPS=0")
    return program_of(f"{name}_group", entry, defines, 75, edits), items


class Normed:
    """Results of a LayerNorm, or with rms of an RMSNorm: f32, and two of bytes."""

    def __init__(self, memory, random, rows, hidden, q_type, r_type, out=True, beta=True, rms=False):
        f32 = lambda low, high: random.uniform(low, high, hidden).astype(np.float32)  # noqa: E731
        self.memory, self.rows, self.hidden, self.out = memory, rows, hidden, out
        self.gamma, self.beta, self.eps = f32(0.5, 2), f32(-1, 1) * np.float32(beta), np.float32(1e-5)
        self.types = {"q": q_type, "r": r_type}
        self.inv = {n: f32(20, 60) for n in self.types}
        self.zero = {n: np.rint(f32(-20, 20)) + np.float32(128 if t == U8 else 0) for n, t in self.types.items()}
        self.has_beta, self.rms, self.keeps_sum = beta, rms, False

    def norm_arguments(self):
        add = self.memory.add
        return [add("gamma", self.gamma), add("beta", self.beta) if self.has_beta else NULL, self.eps]

    def sum_arguments(self, kept):
        """Of the kernels that also store what they normalize."""
        self.keeps_sum = kept
        return [np.int32(self.rms), self._result("sum", np.float32) if kept else NULL]

    def out_arguments(self):
        found = [self._result("out", np.float32) if self.out else NULL]
        for name, kind in self.types.items():
            if kind is None:
                found += [NULL, np.int32(0), NULL, NULL]
            elif kind == BF16:
                found += [self._result(name, np.uint16), np.int32(kind), NULL, NULL]
            else:
                found += [self._result(name, OUT[kind]), np.int32(kind),
                          self.memory.add(f"{name}_inv_scale", self.inv[name]),
                          self.memory.add(f"{name}_zero_point", self.zero[name])]
        return found

    def _result(self, name, dtype):
        return self.memory.add(name, np.zeros((self.rows, self.hidden), dtype), writable=True, filled=False)

    def compare(self, sums):
        """[(result, found, expected, bound)] for rows that were summed in f64."""
        centred = sums if self.rms else sums - sums.mean(axis=1, keepdims=True)
        variance = (centred ** 2).mean(axis=1, keepdims=True)
        y = centred / np.sqrt(variance + float(self.eps)) * self.gamma + self.beta
        error = 2e-6 * (1 + np.abs(y) + np.abs(sums).max(axis=1, keepdims=True) / np.sqrt(variance + float(self.eps)))
        found = []
        if self.keeps_sum:
            found.append(("sum", self._get("sum", np.float32), sums, 1e-6 * (1 + np.abs(sums))))
        if self.out:
            found.append(("out", self._get("out", np.float32), y, error))
        for name, kind in self.types.items():
            if kind == BF16:
                bits = self._get(name, np.uint16).astype(np.uint32) << 16
                found.append((name, bits.view(np.float32), y, error + np.abs(y) * 2.0 ** -8))
            elif kind is not None:
                limits = np.iinfo(OUT[kind])
                exact = np.clip(y * self.inv[name] + self.zero[name], limits.min, limits.max)
                found.append((name, self._get(name, OUT[kind]), exact, 0.5 + error * self.inv[name] + 1e-5))
        return found

    def _get(self, name, dtype):
        return self.memory.get(name, dtype).reshape(self.rows, self.hidden)


def _integers(random, memory, name, kind, rows, hidden):
    """(arguments, values) of an operand of add_norm."""
    if kind is None:
        return [NULL, np.int32(0), NULL, NULL], 0
    if kind == F32:
        x = random.normal(0, 2, (rows, hidden)).astype(np.float32)
        return [memory.add(name, x), np.int32(F32), NULL, NULL], x.astype(np.float64)
    x = random.integers(0, 256, (rows, hidden)).astype(np.uint8).view(OUT[kind])
    scale = random.uniform(0.01, 0.03, hidden).astype(np.float32)
    zero = random.integers(-5, 5, hidden).astype(np.float32) + (128 if kind == U8 else 0)
    return ([memory.add(name, x), np.int32(kind), memory.add(f"{name}_scale", scale),
             memory.add(f"{name}_zero_point", zero)], (x.astype(np.float64) - zero) * scale)


def add_norm(rows, hidden, x_type=F32, residual_type=F32, q_type=S8, r_type=U8, out=True, beta=True, rms=False,
             edits=()):
    random, memory = np.random.default_rng((rows, hidden)), GlobalMemory()
    x, x_values = _integers(random, memory, "x", x_type, rows, hidden)
    residual, residual_values = _integers(random, memory, "residual", residual_type, rows, hidden)
    normed = Normed(memory, random, rows, hidden, q_type, r_type, out, beta, rms)
    program, items = row_program("add_norm", "add_norm", hidden, edits=edits)
    launch(program, memory, (items * rows,), (items,),
           [*x, *residual, *normed.norm_arguments(), *normed.sum_arguments(rms), *normed.out_arguments(),
            np.int32(rows), np.int32(hidden), np.int32(1)])
    return normed.compare(x_values + residual_values)


def add_norm_split_k(rows, hidden, parts, residual_type=F32, a_signed=1, bias=True, rms=False, edits=()):
    """As add_norm, where x is left in the sums of `parts` parts."""
    random, memory, i32 = np.random.default_rng((rows, hidden, parts)), GlobalMemory(), np.int32
    partials = random.integers(-2 ** 20, 2 ** 20, (parts, rows, hidden)).astype(i32)
    column_sums, zero = random.integers(-5000, 5000, hidden).astype(i32), -3 if a_signed else 131
    scale = random.uniform(1e-6, 2e-6, hidden).astype(np.float32)
    offset = random.normal(0, 1, hidden).astype(np.float32)
    residual, residual_values = _integers(random, memory, "residual", residual_type, rows, hidden)
    normed = Normed(memory, random, rows, hidden, S8, U8, rms=rms)
    program, items = row_program("add_norm_split_k", "add_norm_split_k", hidden, edits=edits)
    launch(program, memory, (items * rows,), (items,),
           [memory.add("partials", partials), memory.add("column_sums", column_sums), memory.add("scale", scale),
            memory.add("bias", offset) if bias else NULL, i32(zero), i32(a_signed), i32(parts), *residual,
            *normed.norm_arguments(), *normed.sum_arguments(rms), *normed.out_arguments(), i32(rows), i32(hidden)])
    sums = partials.astype(np.int64).sum(axis=0) - (zero - (0 if a_signed else 128)) * column_sums.astype(np.int64)
    return normed.compare(sums * scale.astype(np.float64) + (offset if bias else 0) + residual_values)


def embed_norm(tokens, hidden, table_type=F32, positions=True, types=True, q_type=S8, bad_id=False):
    """As add_norm, and what `error` says."""
    random, memory, i32 = np.random.default_rng((tokens, hidden)), GlobalMemory(), np.int32
    of = np.float16 if table_type == F16 else np.float32
    tables = {n: random.normal(0, 1, (r, hidden)).astype(of) for n, r in (("word", 11), ("position", 7), ("type", 2))}
    ids = {n: random.integers(0, len(t), tokens).astype(i32) for n, t in tables.items()}
    if bad_id:
        ids["word"][0] = 11
    normed = Normed(memory, random, tokens, hidden, q_type, None)
    there = {"word": True, "position": positions, "type": types}
    error = memory.add("error", np.zeros(1, i32), 4, writable=True)
    id_arguments = [memory.add(f"{n}_ids", ids[n], 4) if there[n] else NULL for n in there]
    table_arguments = [a for n in there for a in (memory.add(n, tables[n]) if there[n] else NULL,
                                                  i32(len(tables[n])))]
    program, items = row_program("embed_norm", "embed_norm", hidden)
    launch(program, memory, (items * tokens,), (items,),
           [*id_arguments, *table_arguments, i32(table_type), *normed.norm_arguments(), *normed.out_arguments(),
            error, i32(tokens), i32(hidden), i32(1)])
    sums = sum(tables[n][np.minimum(ids[n], len(tables[n]) - 1)].astype(np.float64) for n in there if there[n])
    return normed.compare(sums), int(memory.get("error", i32)[0])


def quantize_rows(rows, hidden, y_type, edits=()):
    """[(result, found, expected, bound)]."""
    random, memory, i32 = np.random.default_rng((rows, hidden)), GlobalMemory(), np.int32
    x = random.normal(0, 3, (rows, hidden)).astype(np.float32)
    x[0] = 0
    least = np.float32(1e-6)
    program, items = row_program("quantize_rows", "quantize_rows", hidden, edits=edits)
    launch(program, memory, (items * rows,), (items,),
           [memory.add("x", x), memory.add("y", np.zeros_like(x, OUT[y_type]), writable=True, filled=False),
            i32(y_type), memory.add("scale", np.zeros(rows, np.float32), 4, writable=True, filled=False), least,
            i32(rows), i32(hidden), i32(1)])
    step = np.maximum(np.abs(x).max(axis=1), least) / np.float32(127)  # as the kernel: exact
    y = memory.get("y", OUT[y_type]).reshape(rows, hidden)
    exact = np.rint(x / step[:, None]).astype(np.float64) + (128 if y_type == U8 else 0)
    return [("scale", memory.get("scale", np.float32), step, 0), ("y", y, exact, 0)]


def pool(lengths, hidden, columns, kind, normalize=False, masked=False, edits=()):
    """(found, expected, bound); kind: its place in ops/operands.hpp."""
    random, memory, i32 = np.random.default_rng((len(lengths), hidden)), GlobalMemory(), np.int32
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(i32)
    x = random.normal(0, 2, (offsets[-1], hidden)).astype(np.float32)
    mask = np.arange(offsets[-1]) % 3 != 1 if masked else np.ones(offsets[-1], bool)
    program, items = row_program("pool", "pool", columns, edits=edits)
    launch(program, memory, (items * len(lengths),), (items,),
           [memory.add("x", x), memory.add("seq_offsets", offsets, 4),
            memory.add("key_mask", mask.astype(np.uint8), 1) if masked else NULL,
            memory.add("out", np.zeros((len(lengths), columns), np.float32), writable=True, filled=False),
            i32(kind), i32(hidden), i32(columns), i32(normalize), np.float32(1e-12), i32(len(lengths))])
    takes = (lambda rows: rows.mean(axis=0), lambda rows: rows.max(axis=0), lambda rows: rows[0], lambda rows: rows[-1])
    y = np.zeros((len(lengths), columns))
    for b, (begin, end) in enumerate(zip(offsets, offsets[1:])):
        if mask[begin:end].any():
            y[b] = takes[kind](x[begin:end][mask[begin:end], :columns].astype(np.float64))
    if normalize:
        y /= np.maximum(np.linalg.norm(y, axis=1, keepdims=True), 1e-12)
    return memory.get("out", np.float32).reshape(y.shape), y, 3e-6


def rotary(lengths, heads, head_size, rows_per_item, edits=(), out_type=0, table_rows=0, columns=False):
    """(found, expected, bound); of bytes (out_type 1: u8, 2: s8) with a scale and a zero point for each column; with tables
    of that many rows for each sequence; by rotary_columns.cl."""
    random, memory, i32 = np.random.default_rng((len(lengths), head_size)), GlobalMemory(), np.int32
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(i32)
    x = random.normal(0, 1, (offsets[-1], heads, head_size)).astype(np.float32)
    entries = len(lengths) * table_rows or max(lengths)
    tables = [random.normal(0, 1, (entries, head_size)).astype(np.float32) for _ in range(2)]
    items = max(lengths) * heads * -(-head_size // 8) if columns else -(-max(lengths) // rows_per_item)
    items, aligned = (items, 1, len(lengths)), 16 if columns else 4
    dtype = np.dtype((np.float32, np.uint8, np.int8)[out_type])
    inverse = random.uniform(20, 40, (heads, head_size)).astype(np.float32)
    zero = random.integers(-5, 6, (heads, head_size)).astype(np.float32)
    scales = [memory.add("inv_scale", inverse, aligned), memory.add("zero_point", zero, aligned)]
    launch(program_of("rotary_columns" if columns else "rotary", "rotary", (), 75, edits), memory, *groups_of(items),
           [memory.add("x", x, aligned),
            *(memory.add(name, table, aligned) for name, table in zip(("cosines", "sines"), tables)),
            memory.add("out", np.zeros(x.shape, dtype), 16 if columns else dtype.itemsize, writable=True, filled=False),
            i32(out_type), *(scales if out_type else (NULL, NULL)), memory.add("seq_offsets", offsets, 4), i32(heads),
            i32(head_size), i32(table_rows),
            i32(rows_per_item)])
    places = np.concatenate([np.arange(n) + i * table_rows for i, n in enumerate(lengths)])
    cosines, sines = (table.astype(np.float64)[places, None] for table in tables)
    low, high = np.split(x.astype(np.float64), 2, axis=2)
    exact = x * cosines + np.concatenate([-high, low], axis=2) * sines
    found = memory.get("out", dtype).reshape(x.shape)
    if out_type == 0:
        return found, exact, 2e-6
    limits = np.iinfo(dtype)
    return found.astype(np.float64), np.clip(exact * inverse + zero, limits.min, limits.max), 0.5 + 2e-4


def softmax(rows, size, logarithm, in_place=False, edits=()):
    random, memory, i32 = np.random.default_rng((rows, size)), GlobalMemory(), np.int32
    x = random.normal(0, 5, (rows, size)).astype(np.float32)
    program, items = row_program("softmax", "softmax_f32", size, kept=False, edits=edits)
    at = memory.add("x", x, writable=in_place)
    out = at if in_place else memory.add("out", np.zeros_like(x), writable=True, filled=False)
    launch(program, memory, (items * rows,), (items,), [at, out, i32(rows), i32(size), i32(logarithm), i32(1)])
    found = memory.get("x" if in_place else "out", np.float32).reshape(rows, size)
    shifted = x.astype(np.float64) - x.max(axis=1, keepdims=True)
    totals = np.exp(shifted).sum(axis=1, keepdims=True)
    exact = shifted - np.log(totals) if logarithm else np.exp(shifted) / totals
    return [("out", found, exact, 3e-6 * np.abs(exact) + (3e-6 if logarithm else 1e-38))]


def prepack_s8(K, parts, group):
    """(packed, sums of columns, the weights) of columns that come in several launches, 64 a panel."""
    memory, i32, N = GlobalMemory(), np.int32, sum(parts)
    w = np.random.default_rng((K, N)).integers(-128, 128, (K, N)).astype(np.int8)
    panels, groups = -(-N // 64), -(-K // group)
    packed = memory.add("packed", np.zeros((panels, groups, 64, group), np.int8), 16, writable=True, filled=False)
    column_sums = memory.add("column_sums", np.zeros(N, i32), 4, writable=True, filled=False)
    program, first = program_of("prepack_s8", "prepack_s8", ("ITEM_COLUMNS=1",), 75), 0
    for i, n in enumerate(parts):
        items = 64 * ((first + n - 1) // 64 - first // 64 + 1)
        launch(program, memory, (items + 64,), (64,), [
            memory.add(f"w{i}", w[:, first:first + n], 1), packed, column_sums, i32(n), i32(K), i32(64), i32(group),
            i32(first), i32(N)])
        first += n
    return memory.get("packed", np.int8).reshape(panels, groups, 64, group), memory.get("column_sums", i32), w


def prepack_floats(name, K, N, panel, half):
    """(packed, the weights in the type that is stored)."""
    memory, i32 = GlobalMemory(), np.int32
    w = np.random.default_rng((K, N)).normal(0, 1, (K, N)).astype(np.float32)
    of, panels = np.float16 if half else np.float32, -(-N // panel)
    rows = 2 * -(-K // 2) if name == "prepack_pairs" else K
    program = program_of(name, name, ("ITEM_COLUMNS=1", *(("B_HALF=1",) if half else ())), 75)
    packed = memory.add("packed", np.zeros(panels * rows * panel, of), 16, writable=True, filled=False)
    launch(program, memory, *groups_of((panels * panel,)),
           [memory.add("w", w, 4), packed, i32(N), i32(K), i32(panel), i32(0), i32(N)])
    return memory.get("packed", of), w.astype(of)


def row_sums(M, K, a_type, measured):
    memory, i32 = GlobalMemory(), np.int32
    a = np.random.default_rng((M, K)).integers(0, 256, (M, K)).astype(np.uint8).view(OUT[a_type])
    zero, per_item = -7 if a_type == S8 else 119, 2
    launch(program_of("row_sums", "row_sums", (), 75), memory, *groups_of((-(-M // per_item),)),
           [memory.add("a", a, 1), i32(a_type), i32(0 if measured else zero),
            memory.add("zero", np.array([zero], OUT[a_type]), 1) if measured else NULL,
            memory.add("sums", np.zeros(M, i32), 4, writable=True, filled=False), i32(M), i32(K), i32(per_item)])
    return memory.get("sums", i32), (a.astype(np.int64) - zero).sum(axis=1)
