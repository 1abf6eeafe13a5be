# SPDX-License-Identifier: Apache-2.0
"""Instructions that touch memory: ld, st, atom, cvta, cp.async."""
import numpy as np

from memory import GLOBAL_BASE, LOCAL_BASE, SHARED_BASE
from operands import TYPES, address, integer, reader, vector, writer

SPACES = ("global", "shared", "local", "param", "const")


def _shape(instruction):
    """(space or None, elements, type); what remains must be a hint without meaning."""
    *parts, kind = instruction.opcode[1:]
    space, count = None, 1
    for part in parts:
        if part in SPACES:
            space = part
        elif part in ("v2", "v4"):
            count = int(part[1])
        elif part not in ("nc", "volatile"):
            raise KeyError(part)
    return space, count, kind


def _note_granule(program, space, size):
    """What shared memory has to tell apart."""
    if space in (None, "shared"):
        program.granule = min(program.granule, size)


def _memory(state, space, addresses, lines):
    """The memory of the lanes' addresses."""
    if space is None:
        low, high = addresses.min(), addresses.max()
        for name, base, end in (("shared", SHARED_BASE, LOCAL_BASE), ("local", LOCAL_BASE, GLOBAL_BASE)):
            if low >= base and high < end:
                return getattr(state, name)
        if low < GLOBAL_BASE and high >= SHARED_BASE:
            lines.fail("generic access to several spaces at once", np.ones(len(addresses), np.bool_))
    return {"shared": state.shared, "local": state.local}.get(space, state.memory)


def _at(state, base, offset, lines):
    """The addresses of the active lanes."""
    found = base(state)
    if found.ndim == 0:
        found = found.repeat(len(lines.lanes))
    elif state.mask is not None:
        found = found[lines.lanes]
    return found + np.uint64(offset % (1 << 64)) if offset else found


def load(program, instruction):
    space, count, kind = _shape(instruction)
    of, writes = TYPES[kind], [writer(program, name, kind) for name in vector(instruction.operands[0])]
    size = np.dtype(of).itemsize * count
    _note_granule(program, space, size)
    name, base, offset = address(program, instruction.operands[1])
    if len(writes) != count:
        raise ValueError("number of registers")
    if name is not None:
        if space != "param":
            raise KeyError(name)

        def load_parameter(state):
            data = state.parameters[name]
            values = np.ascontiguousarray(data[..., offset:offset + size]).view(of)
            for i, write in enumerate(writes):
                write(state, values[..., i].copy())
        return load_parameter

    def run(state):
        lines = state.lines
        addresses = _at(state, base, offset, lines)
        values = _memory(state, space, addresses, lines).read(addresses, size, lines).view(of)
        for i, write in enumerate(writes):
            if state.mask is None:
                write(state, values[:, i].copy())
            else:
                whole = np.zeros(state.count, of)
                whole[lines.lanes] = values[:, i]
                write(state, whole)
    return run


def store(program, instruction):
    space, count, kind = _shape(instruction)
    of, reads = TYPES[kind], [reader(program, name, kind) for name in vector(instruction.operands[1])]
    width = np.dtype(of).itemsize
    size = width * count
    _note_granule(program, space, size)
    name, base, offset = address(program, instruction.operands[0])
    if len(reads) != count:
        raise ValueError("number of registers")

    def gather(state, lanes):
        values = np.empty((len(lanes), count), of)
        for i, read in enumerate(reads):
            found = read(state)
            values[:, i] = found if found.ndim == 0 or state.mask is None else found[lanes]
        return values.view(np.uint8)

    if name is not None:
        if space != "param":
            raise KeyError(name)

        def store_parameter(state):
            lanes = state.lines.lanes
            state.parameters[name][lanes, offset:offset + size] = gather(state, lanes)
        return store_parameter

    def run(state):
        lines = state.lines
        addresses = _at(state, base, offset, lines)
        _memory(state, space, addresses, lines).write(addresses, gather(state, lines.lanes), lines)
    return run


def convert_address(program, instruction):
    """cvta: each space has its own window, so addresses stay as they are."""
    write = writer(program, instruction.operands[0], "u64")
    read = reader(program, instruction.operands[1], "u64")
    return lambda state: write(state, read(state))


def begin_copy(program, instruction):
    """cp.async.cg.shared.global [to], [from], 16 {, bytes}: what is not read of the 16 is 0."""
    if instruction.opcode[2:] != ["cg", "shared", "global"] or integer(instruction.operands[2]) != 16:
        raise KeyError("cp.async")
    (_, to, to_offset), (_, source, from_offset) = (address(program, o) for o in instruction.operands[:2])
    count = reader(program, instruction.operands[3], "u32") if len(instruction.operands) > 3 else None

    def run(state):
        lines = state.lines
        rows = state.shared.begin_copies(_at(state, to, to_offset, lines), 16, lines)
        addresses = _at(state, source, from_offset, lines)
        bytes_ = np.full(state.count, 16, np.uint32) if count is None else count(state)
        bytes_ = np.full(len(rows), bytes_) if bytes_.ndim == 0 else bytes_[lines.lanes]
        if (bad := addresses & np.uint64(15) != 0).any():
            lines.fail("misaligned source of cp.async", bad)
        if (bad := (bytes_ != 0) & (bytes_ != 16)).any():
            lines.fail("cp.async of a part of 16 bytes: not supported here", bad)
        if (wanted := bytes_ > 0).any():  # a bad address is an error here, though it is read at the wait
            state.memory.read(addresses[wanted], 16, type(lines)(state, lines.lanes[wanted]))
        state.copies.append((lines.lanes, rows, addresses, bytes_ > 0, state.committed[lines.lanes]))
    return run


def _deliver(state, last):
    """What the active lanes have begun in groups before last[lane]: at the wait, and no earlier."""
    kept = []
    active = np.zeros(state.count, np.bool_)
    active[state.lines.lanes] = True
    for lanes, rows, addresses, read, groups in state.copies:
        due = active[lanes] & (groups < last[lanes])
        if due.any():
            lines = type(state.lines)(state, lanes[due])
            values = np.zeros((len(lines.lanes), 16), np.uint8)
            if (wanted := read[due]).any():
                inner = type(state.lines)(state, lanes[due][wanted])
                values[wanted] = state.memory.read(addresses[due][wanted], 16, inner)
            state.shared.deliver(rows[due], values, lines)
        if not due.all():
            stay = ~due
            kept.append((lanes[stay], rows[stay], addresses[stay], read[stay], groups[stay]))
    state.copies = kept


def copy(program, instruction):
    if instruction.opcode[:2] != ["cp", "async"]:
        raise KeyError("cp")
    match instruction.opcode[2]:
        case "commit_group":
            def commit(state):
                state.committed[state.lines.lanes] += 1
            return commit
        case "wait_group":
            left = integer(instruction.operands[0])
            return lambda state: _deliver(state, state.committed - left)
        case "wait_all":
            return lambda state: _deliver(state, state.committed + 1)
    return begin_copy(program, instruction)


def atomic(program, instruction):
    """atom.global: lanes one after the other."""
    space, name, kind = instruction.opcode[1:]
    if space != "global":
        raise KeyError(space)
    function = {"add": np.add, "min": np.minimum, "max": np.maximum}[name]
    write, of = writer(program, instruction.operands[0], kind), TYPES[kind]
    _, base, offset = address(program, instruction.operands[1])
    value = reader(program, instruction.operands[2], kind)

    def run(state):
        lines = state.lines
        addresses, operand = _at(state, base, offset, lines), value(state)
        before = np.zeros(state.count, of)
        for lane, at in zip(lines.lanes, addresses):
            one = type(lines)(state, np.array([lane]))
            given = operand if operand.ndim == 0 else operand[lane]
            before[lane] = state.memory.exchange(np.array([at]), of, lambda old, x=given: function(old, x), one)
        write(state, before)
    return run


HANDLERS = {"ld": load, "st": store, "cvta": convert_address, "cp": copy, "atom": atomic}
