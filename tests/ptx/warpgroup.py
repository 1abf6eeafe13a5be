# SPDX-License-Identifier: Apache-2.0
"""Instructions of a warpgroup, sm_90a: wgmma and its fences, with layouts as the PTX ISA draws them (chapters
"Asynchronous Warpgroup Level Matrix Shared Memory Layout", "Matrix Descriptor Format").

Products are made at the wait that covers them, and no earlier: until then the sums cannot be read, and what they read
in shared memory must not be written."""
import collections
import re

import numpy as np

from errors import PtxError
from operands import integer, reader, vector, writer

WARPGROUP = 128
LANE = np.arange(WARPGROUP)
TYPES_OF = {"s8": np.int8, "u8": np.uint8}
# Code in a descriptor -> bytes of a row, bits that the numbers of 8 rows change from bit 4 on.
SWIZZLES = {1: (128, 7), 2: (64, 3), 3: (32, 1)}


class InFlight:
    """In place of the values of a register that wgmma has yet to deliver."""

    def __init__(self, state):
        self._state = state

    def _refuse(self):
        instruction = self._state.instruction
        raise PtxError(f"use of sums that wgmma has not delivered: {instruction.text}", instruction.line)

    def __getattr__(self, name):
        self._refuse()

    def __array__(self, *_, **__):
        self._refuse()


class Sums:
    """What wgmma adds up in a tuple of registers, of all warpgroups."""

    def __init__(self, state, registers):
        self.state, self.registers = state, registers
        count = state.count // WARPGROUP
        self.values = np.zeros((count, WARPGROUP, len(registers)), np.int32)
        self.left = np.zeros(count, np.int64)  # products under way

    def begin(self, warpgroups):
        settled = self.left == 0
        if settled.any():
            held = np.stack([self.state.registers[r].view(np.int32).reshape(-1, WARPGROUP)[settled]
                             for r in self.registers], axis=-1)
            self.values[settled] = held
        self.left[warpgroups] += 1
        self._publish()

    def end(self, warpgroups, products):
        self.values[warpgroups] += products
        self.left[warpgroups] -= 1
        self._publish()

    def _publish(self):
        if (self.left > 0).all():
            columns = [InFlight(self.state)] * len(self.registers)
        else:
            shown = np.where((self.left > 0)[:, None, None], np.int32(0x5A5A5A5A), self.values)
            columns = shown.reshape(-1, len(self.registers)).T.copy().view(np.uint32)
        for register, column in zip(self.registers, columns):
            self.state.registers[register] = column


Product = collections.namedtuple("Product", "warpgroups groups sums rows kinds")


class Warpgroups:
    """What is under way in a batch."""

    def __init__(self, state):
        count = -(-state.count // WARPGROUP)
        self.products, self.sums = [], {}
        self.committed = np.zeros(count, np.int64)
        self.fenced = np.zeros(count, np.bool_)


def _warpgroups(state, what):
    return state.whole(what, WARPGROUP, "warpgroup")


def cells_of(descriptor, rows):
    """Addresses [rows][2] of the cells of 16 bytes that a descriptor names for 32 bytes along K of that many rows."""
    begin, between_cells, between_rows = (int(descriptor >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    swizzle = int(descriptor >> 62)
    row, cell = np.arange(rows)[:, None], np.arange(2)[None, :]
    if int(descriptor >> 49) & 0x1FFF:
        raise ValueError("a descriptor with a base offset, or with bits that mean nothing")
    if swizzle == 0:
        return begin + row // 8 * between_rows + row % 8 * 16 + cell * between_cells
    pitch, bits = SWIZZLES[swizzle]
    if begin % (8 * pitch) > pitch - 32 or between_rows % (8 * pitch):
        raise ValueError(f"rows of a matrix with swizzle {pitch} do not begin at a multiple of {8 * pitch}")
    straight = begin + row // 8 * between_rows + row % 8 * pitch + cell * 16
    return straight ^ (straight >> 7 & bits) << 4


def places(n):
    """Rows and columns [128][n / 2] of the sums of each lane."""
    i = np.arange(n // 2)
    rows = (LANE // 32 * 16 + LANE % 32 // 4)[:, None] + 8 * (i // 2 % 2)
    columns = 8 * (i // 4) + 2 * (LANE % 4)[:, None] + i % 2
    return rows, columns


def multiply(program, instruction):
    """wgmma.mma_async.sync.aligned.m64nNk32.s32.A.B {sums}, a, b, 1: operands in shared memory."""
    _, _, sync, aligned, shape, d_type, a_type, b_type = instruction.opcode
    n = int(re.fullmatch(r"m64n(\d+)k32", shape).group(1))
    names = vector(instruction.operands[0])
    if [sync, aligned, d_type] != ["sync", "aligned", "s32"] or n % 8 or n > 256 or len(names) != n // 2:
        raise KeyError(instruction.opcode)
    if integer(instruction.operands[3]) != 1:
        raise ValueError("sums that begin at 0")
    registers = tuple(program.register(name)[0] for name in names)
    for name in names:
        writer(program, name, "s32")  # 32 bits
    descriptors = [reader(program, name, "b64") for name in instruction.operands[1:3]]
    kinds = TYPES_OF[a_type], TYPES_OF[b_type]
    program.granule = min(program.granule, 16)

    def addresses(state, read, warpgroups, rows):
        found = read(state)
        found = np.full(state.count, found) if found.ndim == 0 else found
        found = found.reshape(-1, WARPGROUP)[warpgroups]
        if (found != found[:, :1]).any():
            raise PtxError("descriptors of a warpgroup differ", state.instruction.line)
        try:
            return np.stack([cells_of(d, rows) for d in found[:, 0]])
        except ValueError as error:
            raise PtxError(f"{error}: {state.instruction.text}", state.instruction.line) from error

    def run(state):
        warpgroups = _warpgroups(state, "wgmma")
        if not state.warpgroups.fenced[warpgroups].all():
            raise PtxError("wgmma without wgmma.fence before it", state.instruction.line)
        cells = np.concatenate([addresses(state, descriptors[0], warpgroups, 64),
                                addresses(state, descriptors[1], warpgroups, n)], axis=1)
        lanes = np.repeat(warpgroups * WARPGROUP, (64 + n) * 2)
        rows = state.shared.begin_reads(cells.reshape(-1).astype(np.uint64), 16, type(state.lines)(state, lanes))
        sums = state.warpgroups.sums.setdefault(registers, Sums(state, registers))
        others = [s for r, s in state.warpgroups.sums.items() if r != registers and set(r) & set(registers)]
        if any(s.left[warpgroups].any() for s in others):
            raise PtxError("sums of another shape are under way", state.instruction.line)
        sums.begin(warpgroups)
        state.warpgroups.products.append(
            Product(warpgroups, state.warpgroups.committed[warpgroups], sums, rows.reshape(len(warpgroups), -1), kinds))
    return run


def _deliver(state, warpgroups, last):
    """The products that these warpgroups have begun in groups before last[warpgroup]."""
    active = np.zeros(state.count // WARPGROUP, np.bool_)
    active[warpgroups] = True
    kept = []
    for product in state.warpgroups.products:
        due = active[product.warpgroups] & (product.groups < last[product.warpgroups])
        if due.any():
            chosen, rows = product.warpgroups[due], product.rows[due]
            lanes = np.repeat(chosen * WARPGROUP, rows.shape[1])
            read = state.shared.end_reads(rows.reshape(-1), 16, type(state.lines)(state, lanes))
            read = read.reshape(len(chosen), -1, 32)
            left, right = (part.view(of).astype(np.float32)  # exact: sums are below 2^24
                           for part, of in zip((read[:, :64], read[:, 64:]), product.kinds))
            made = (left @ right.transpose(0, 2, 1)).astype(np.int32)
            product.sums.end(chosen, made[:, *places(right.shape[1])])
        if not due.all():
            kept.append(product._replace(warpgroups=product.warpgroups[~due], groups=product.groups[~due],
                                         rows=product.rows[~due]))
    state.warpgroups.products = kept


def wgmma(program, instruction):
    if instruction.opcode[1] == "mma_async":
        return multiply(program, instruction)
    if instruction.opcode[2:] != ["sync", "aligned"]:
        raise KeyError(instruction.opcode)

    def fence(state):
        state.warpgroups.fenced[_warpgroups(state, "wgmma.fence")] = True

    def commit(state):
        state.warpgroups.committed[_warpgroups(state, "wgmma.commit_group")] += 1

    def wait(state):
        warpgroups = _warpgroups(state, "wgmma.wait_group")
        state.warpgroups.fenced[warpgroups] = False
        _deliver(state, warpgroups, state.warpgroups.committed - left)

    if instruction.opcode[1] == "wait_group":
        left = integer(instruction.operands[0])
    return {"fence": fence, "commit_group": commit, "wait_group": wait}[instruction.opcode[1]]


def fence(program, instruction):
    """fence.proxy.async.shared::cta: what the lanes have written can be read by wgmma."""
    if instruction.opcode[1:] != ["proxy", "async", "shared::cta"]:
        raise KeyError(instruction.opcode)
    return lambda state: state.shared.fence(state.lines)


HANDLERS = {"wgmma": wgmma, "fence": fence}
