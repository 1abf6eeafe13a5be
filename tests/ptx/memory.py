# SPDX-License-Identifier: Apache-2.0
"""Memory that refuses what hardware would only do wrong: accesses out of bounds or misaligned, reads of what
nobody wrote, races between barriers, reads of bytes that cp.async has not delivered, writes of bytes that wgmma reads.

Addresses are 64-bit; each space has a window of its own, so that generic addresses need no conversion."""
import numpy as np

import banks
from errors import PtxError
from operands import UNSIGNED

SHARED_BASE = 0x10000
LOCAL_BASE = 0x4000_0000
GLOBAL_BASE = 0x2_0000_0000
GUARD = 4096  # bytes that nobody owns before, between and after buffers

ALLOCATED, WRITABLE, WRITTEN = 1, 2, 4


def rows_of(addresses, base, size, limit, what, lines):
    """Numbers of the units of `size` bytes (a power of two) at the addresses, checked for alignment and the window."""
    offsets = addresses - np.uint64(base)
    if np.bitwise_or.reduce(offsets) & np.uint64(size - 1):
        bad = (offsets & np.uint64(size - 1)) != 0
        lines.fail(f"misaligned {what} of {size} bytes at {addresses[bad][0]:#x}", bad)
    if np.maximum.reduce(offsets) > np.uint64(limit - size):
        bad = offsets > np.uint64(limit - size)
        lines.fail(f"{what} of {size} bytes out of bounds, at {addresses[bad][0]:#x}", bad)
    return (offsets >> np.uint64(size.bit_length() - 1)).view(np.int64)


def some(array):
    """As array.any(), which takes twice as long."""
    return np.count_nonzero(array) > 0


def units_of(array, size):
    """Bytes in rows of `size`, of words as wide as can be: quicker to move."""
    return array.view(UNSIGNED[min(size, 8)]).reshape(-1, max(size // 8, 1))


def bytes_at(array, rows, size):
    """The rows of `size` bytes. (take() is several times as fast as indexing.)"""
    return units_of(array, size).take(rows, axis=0).view(np.uint8)


class GlobalMemory:
    """Buffers with guards between them. `align` is what the kernel may count on, and no more: bases are odd
    multiples of it."""

    def __init__(self, capacity=1 << 20):
        self._bytes = np.full(capacity, 0xA5, np.uint8)
        self._flags = np.zeros(capacity, np.uint8)
        self._writers = np.zeros(capacity, np.int32)  # lane + 1 of this launch, 0: none
        self._end, self.buffers = GUARD, {}

    def add(self, name, array, align=16, writable=False, filled=True):
        """A copy of the array; `filled` false: its bytes count as not written. Gives the address."""
        data = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
        begin = -(-self._end // 256) * 256 + align
        end = begin + len(data)
        while end + GUARD > len(self._bytes):
            self._bytes = np.concatenate([self._bytes, np.full_like(self._bytes, 0xA5)])
            self._flags = np.concatenate([self._flags, np.zeros_like(self._flags)])
            self._writers = np.concatenate([self._writers, np.zeros_like(self._writers)])
        self._bytes[begin:end] = data
        self._flags[begin:end] = ALLOCATED | writable * WRITABLE | filled * WRITTEN
        self._end = end + GUARD
        self.buffers[name] = (begin, end)
        return np.uint64(GLOBAL_BASE + begin)

    def get(self, name, dtype):
        """The elements of a buffer, all of which must have been written."""
        begin, end = self.buffers[name]
        if missing := np.count_nonzero(self._flags[begin:end] & WRITTEN == 0):
            raise PtxError(f"{missing} of {end - begin} bytes of '{name}' were not written")
        return np.frombuffer(self._bytes[begin:end].tobytes(), dtype)

    def written(self, name):
        """Which bytes of a buffer have been written."""
        begin, end = self.buffers[name]
        return self._flags[begin:end] & WRITTEN != 0

    def begin_launch(self):
        self._writers[:self._end] = 0

    def _rows(self, addresses, size, what, flags, lines):
        rows = rows_of(addresses, GLOBAL_BASE, size, len(self._bytes), what, lines)
        units = bytes_at(self._flags, rows, size)
        if np.bitwise_and.reduce(units, axis=None) & flags == flags:
            return rows
        found = np.bitwise_and.reduce(units, axis=1)
        for flag, message in ((ALLOCATED, "out of bounds"), (WRITABLE, "to read-only memory"),
                              (WRITTEN, "of bytes that nobody has written")):
            if flags & flag and (bad := found & flag == 0).any():
                address = int(addresses[bad][0])
                lines.fail(f"{what} of {size} bytes {message}, at {self._named(address)}", bad)
        return rows

    def _named(self, address):
        """An address by the buffer nearest to it."""
        at = address - GLOBAL_BASE
        if not self.buffers:
            return hex(address)
        name, (begin, end) = min(self.buffers.items(), key=lambda b: max(b[1][0] - at, at - b[1][1] + 1))
        return f"byte {at - begin} of '{name}' of {end - begin} bytes"

    def read(self, addresses, size, lines):
        rows = self._rows(addresses, size, "global load", ALLOCATED | WRITTEN, lines)
        writers = self._writers.reshape(-1, size).take(rows, axis=0)
        if some(writers) and some(bad := (writers != 0) & (writers != lines.stamps[:, None])):
            lines.fail("race: reads global bytes that another work-item wrote in this launch", bad.any(axis=1))
        return bytes_at(self._bytes, rows, size)

    def write(self, addresses, values, lines):
        size = values.shape[1]
        rows = self._rows(addresses, size, "global store", ALLOCATED | WRITABLE, lines)
        data, writers = units_of(self._bytes, size), self._writers.reshape(-1, size)
        before, changed = writers.take(rows, axis=0), np.False_
        if some(before):
            taken = (before != 0) & (before != lines.stamps[:, None])
            changed = taken & (bytes_at(self._bytes, rows, size) != values)
        data[rows], writers[rows] = units_of(values, size), lines.stamps[:, None]
        changed = changed | (bytes_at(self._bytes, rows, size) != values)  # equal values may meet
        if some(changed):
            lines.fail("race: two work-items write the same global byte", changed.any(axis=1))
        flags = units_of(self._flags, size)
        flags[rows] = flags.take(rows, axis=0) | units_of(np.full(size, WRITTEN, np.uint8), size)

    def exchange(self, address, dtype, function, lines):
        """The element at an address becomes function(element); gives what it was."""
        size = np.dtype(dtype).itemsize
        rows = self._rows(address, size, "atomic", ALLOCATED | WRITABLE | WRITTEN, lines)
        elements = self._bytes.view(dtype)
        before = elements[rows[0]]
        elements[rows[0]] = function(before)
        return before


class SharedMemory:
    """The shared memory of all work-groups of a batch, `size` bytes each.

    A byte knows who wrote it last and in which interval between barriers, and who read it: a stamp is
    interval * threads + thread + 1. An access by another work-item of the same interval is a race if one of
    the two writes. All this is known for units of `granule` bytes, the least that the kernel accesses."""

    def __init__(self, groups, size, threads, granule, wavefronts=None):
        self.size = size = -(-max(size, 1) // 128) * 128
        self.threads, self.granule = threads, granule
        self._bytes = np.full(groups * size, 0xA5, np.uint8)
        units = groups * size // granule
        self._writers, self._readers, self._others = (np.zeros(units, np.int32) for _ in range(3))
        self._pending = np.zeros(units, np.bool_)  # by cp.async
        self._hidden = np.zeros(units, np.bool_)  # from wgmma, until the work-item that wrote them has a fence
        self._in_use = np.zeros(units, np.int32)  # by products of wgmma under way
        self.intervals = np.zeros(groups, np.int32)
        self._wavefronts = wavefronts

    def rows(self, addresses, size, what, lines):
        rows = rows_of(addresses, SHARED_BASE, size, self.size, what, lines)
        if self._wavefronts is not None:
            taken, least = banks.wavefronts(rows * size // 4, size, lines.lanes)
            self._wavefronts[lines.state.instruction.line] += np.array([taken, least])
        return rows + lines.groups * (self.size // size)

    def _units(self, array, size):
        return array.reshape(-1, size // self.granule)

    def _stamps(self, lines):
        first = self.intervals[lines.groups] * self.threads + 1
        return first[:, None], (first + lines.threads)[:, None]

    def _refuse_pending(self, rows, size, what, lines):
        if some(bad := self._units(self._pending, size).take(rows, axis=0)):
            lines.fail(f"{what} of shared bytes that cp.async has not delivered", bad.any(axis=1))

    def read(self, addresses, size, lines):
        rows = self.rows(addresses, size, "shared load", lines)
        self._refuse_pending(rows, size, "load", lines)
        first, own = self._stamps(lines)
        written = self._units(self._writers, size).take(rows, axis=0)
        if np.count_nonzero(written) < written.size:
            lines.fail("load of shared bytes that nobody has written", (written == 0).any(axis=1))
        if some(late := written >= first) and some(bad := late & (written != own)):
            lines.fail("race: reads shared bytes that another work-item wrote since the last barrier",
                       bad.any(axis=1))
        readers, others = self._units(self._readers, size), self._units(self._others, size)
        before = readers.take(rows, axis=0)
        readers[rows] = own
        # Of those that read at once, one is left.
        shared = (before >= first) & (before != own) | (readers.take(rows, axis=0) != own)
        if some(shared):
            at = np.nonzero(shared)
            others[rows[at[0]], at[1]] = first[at[0], 0]
        return bytes_at(self._bytes, rows, size)

    def begin_reads(self, addresses, size, lines):
        """What wgmma reads from now on, for a work-item of each warpgroup."""
        rows = rows_of(addresses, SHARED_BASE, size, self.size, "read by wgmma", lines)
        rows += lines.groups * (self.size // size)
        self._refuse_pending(rows, size, "read by wgmma", lines)
        first, _ = self._stamps(lines)
        written = self._units(self._writers, size).take(rows, axis=0)
        for bad, message in ((written == 0, "wgmma reads shared bytes that nobody has written"),
                             (written >= first, "race: wgmma reads shared bytes written since the last barrier"),
                             (self._units(self._hidden, size).take(rows, axis=0),
                              "wgmma reads shared bytes written without fence.proxy.async after it")):
            if some(bad):
                lines.fail(message, bad.any(axis=1))
        np.add.at(self._units(self._in_use, size), rows, 1)
        return rows

    def end_reads(self, rows, size, lines):
        """The bytes, as they are when wgmma is waited for. Other warps of the warpgroup may still wait."""
        np.subtract.at(self._units(self._in_use, size), rows, 1)
        first, _ = self._stamps(lines)
        self._units(self._others, size)[rows] = first
        return bytes_at(self._bytes, rows, size)

    def fence(self, lines):
        """What these work-items have written, wgmma may read after the next barrier."""
        writers = (self._writers - 1) % self.threads + np.repeat(
            np.arange(len(self.intervals)) * self.threads, len(self._writers) // len(self.intervals))
        fenced = np.zeros(len(self.intervals) * self.threads, np.bool_)
        fenced[lines.lanes] = True
        self._hidden &= ~fenced[writers]

    def _claim(self, rows, size, lines):
        """The rows are written by these lanes in this interval."""
        first, own = self._stamps(lines)
        if some(used := self._units(self._in_use, size).take(rows, axis=0)):
            lines.fail("writes shared bytes that wgmma still reads", used.any(axis=1))
        self._units(self._hidden, size)[rows] = True
        writers, readers = self._units(self._writers, size), self._units(self._readers, size)
        before = writers.take(rows, axis=0)
        if some(late := before >= first) and some(bad := late & (before != own)):
            lines.fail("race: writes shared bytes that another work-item wrote since the last barrier",
                       bad.any(axis=1))
        read = readers.take(rows, axis=0)
        bad = ((read >= first) & (read != own)) | (self._units(self._others, size).take(rows, axis=0) >= first)
        if some(bad):
            lines.fail("race: writes shared bytes that another work-item read since the last barrier",
                       bad.any(axis=1))
        writers[rows] = own
        if some(bad := writers.take(rows, axis=0) != own):
            lines.fail("race: two work-items write the same shared byte at once", bad.any(axis=1))

    def write(self, addresses, values, lines):
        size = values.shape[1]
        rows = self.rows(addresses, size, "shared store", lines)
        self._refuse_pending(rows, size, "store", lines)
        self._claim(rows, size, lines)
        units_of(self._bytes, size)[rows] = units_of(values, size)

    def begin_copies(self, addresses, size, lines):
        """The destinations of cp.async, from now on pending."""
        rows = self.rows(addresses, size, "cp.async", lines)
        self._refuse_pending(rows, size, "cp.async", lines)
        self._claim(rows, size, lines)
        self._units(self._pending, size)[rows] = True
        return rows

    def deliver(self, rows, values, lines):
        size = values.shape[1]
        self._claim(rows, size, lines)
        units_of(self._bytes, size)[rows] = units_of(values, size)
        self._units(self._pending, size)[rows] = False


class LocalMemory:
    """Private memory of each lane; holds garbage at first."""

    def __init__(self, lanes, size):
        self.size = size = -(-max(size, 1) // 128) * 128
        self._bytes = np.full(lanes * size, 0xA5, np.uint8)

    def read(self, addresses, size, lines):
        rows = rows_of(addresses, LOCAL_BASE, size, self.size, "local load", lines)
        return bytes_at(self._bytes, rows + lines.lanes * (self.size // size), size)

    def write(self, addresses, values, lines):
        size = values.shape[1]
        rows = rows_of(addresses, LOCAL_BASE, size, self.size, "local store", lines)
        units_of(self._bytes, size)[rows + lines.lanes * (self.size // size)] = units_of(values, size)
