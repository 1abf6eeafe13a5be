# SPDX-License-Identifier: Apache-2.0
"""Runs an entry of a PTX module: all work-items of a batch of work-groups in lockstep, as one NumPy vector.

Lanes that branch apart wait for each other where their paths join (flow.py). A barrier opens for a work-group when
all of its work-items have come to it, and to the same one. Hardware may run warps in any order; what an order could
change is a race, which memory finds."""
import numpy as np

import matrix
import scalar
import transfers
import warpgroup
from errors import PtxError
from flow import block_order
from memory import LOCAL_BASE, SHARED_BASE, LocalMemory, SharedMemory
from parser import BYTES, expand

WARP = 32
BATCH = 2048  # lanes that run at once, at most; at least one work-group
STEPS = 2_000_000  # of a batch, before it counts as endless
REGISTERS = {1: np.bool_, 2: np.uint16, 4: np.uint32, 8: np.uint64}
HANDLERS = scalar.HANDLERS | transfers.HANDLERS | matrix.HANDLERS | warpgroup.HANDLERS


class Lines:
    """The lanes of an access, and where errors are."""

    def __init__(self, state, lanes):
        self.state, self.lanes = state, lanes
        self.groups, self.threads = state.lane_group[lanes], state.lane_thread[lanes]
        self.stamps = state.lane_stamp[lanes]

    def fail(self, message, bad):
        lane = int(np.flatnonzero(bad)[0])
        group = self.state.first_group + int(self.groups[lane])
        raise PtxError(f"{message}: {self.state.instruction.text} [group {group}]",
                       self.state.instruction.line, int(self.threads[lane]))


class State:
    """Registers and memory of a batch of work-groups."""

    def __init__(self, program, memory, global_size, local_size, first_group, groups):
        self.program, self.memory = program, memory
        self.threads, self.first_group = int(np.prod(local_size)), first_group
        self.count = lanes = groups * self.threads
        self.lane_group = np.repeat(np.arange(groups), self.threads)
        self.lane_thread = np.tile(np.arange(self.threads, dtype=np.int32), groups)
        self.lane_stamp = (np.arange(lanes) + first_group * self.threads + 1).astype(np.int32)
        self.shared = SharedMemory(groups, program.shared_bytes, self.threads, program.granule,
                                   program.wavefronts)
        self.local = LocalMemory(lanes, program.local_bytes)
        self.copies, self.committed = [], np.zeros(lanes, np.int64)
        self.warpgroups = warpgroup.Warpgroups(self)
        self.parameters = dict(program.arguments)
        for name, size in program.call_parameters.items():
            self.parameters[name] = np.full((lanes, size), 0xA5, np.uint8)
        garbage = {t: np.frombuffer(bytes([1 if t is np.bool_ else 0xA5]) * np.dtype(t).itemsize * lanes, t)
                   for t in REGISTERS.values()}
        self.registers = [garbage[t] for t in program.types]  # set() replaces, nothing writes into an array
        counts = [g // s for g, s in zip(global_size, local_size)]
        group = self.lane_group + first_group
        self.special = {}
        for axis, letter in enumerate("xyz"):
            below = int(np.prod(local_size[:axis])), int(np.prod(counts[:axis]))
            self.special[f"%tid.{letter}"] = (self.lane_thread // below[0] % local_size[axis]).astype(np.uint32)
            self.special[f"%ctaid.{letter}"] = (group // below[1] % counts[axis]).astype(np.uint32)
            self.special[f"%ntid.{letter}"] = np.full(lanes, local_size[axis], np.uint32)
            self.special[f"%nctaid.{letter}"] = np.full(lanes, counts[axis], np.uint32)
        self.mask = None  # of the current instruction; None: all lanes
        self.instruction = None
        self.all_lines = Lines(self, np.arange(lanes))
        self._lines, self._lines_mask = None, None

    @property
    def lines(self):
        """The lanes of the current instruction."""
        if self.mask is None:
            return self.all_lines
        if self._lines_mask is not self.mask:
            self._lines, self._lines_mask = Lines(self, np.flatnonzero(self.mask)), self.mask
        return self._lines

    def set(self, register, values):
        """The values, in the register's type, where the mask says so."""
        if self.mask is not None:
            kept = self.registers[register].copy()
            np.copyto(kept, values, where=self.mask)
            self.registers[register] = kept
        else:
            self.registers[register] = values if values.ndim else values.repeat(self.count)

    def whole(self, what, size, name):
        """Numbers of the runs of `size` lanes, called `name`, that execute `what`; each has to be complete."""
        if self.threads % size:
            raise PtxError(f"{what} in work-groups of {self.threads}", self.instruction.line)
        if self.mask is None:
            return np.arange(self.count // size)
        lanes = self.mask.reshape(-1, size)
        some, every = lanes.any(axis=1), lanes.all(axis=1)
        if (some != every).any():
            raise PtxError(f"{what} by a part of a {name}: {self.instruction.text}", self.instruction.line)
        return np.flatnonzero(every)

    def warps(self, what):
        return self.whole(what, WARP, "warp")


class Program:
    """An entry, translated to Python functions."""

    def __init__(self, module, entry):
        function = expand(module, entry)
        self.parameters, self._prefixes = function.parameters, function.registers
        self.types, self._found = [], {}
        self.readers, self.writers = {}, {}  # made by operands.py
        self.symbols, self.constants = dict.fromkeys(module.constants, 0), module.constants
        self.call_parameters = {}
        self.shared_bytes = self.local_bytes = 0
        for name, (space, size, align) in (module.shared | function.arrays).items():
            if space == "param":
                self.call_parameters[name] = size
                continue
            used = getattr(self, f"{space}_bytes")
            used = -(-used // align) * align
            self.symbols[name] = (SHARED_BASE if space == "shared" else LOCAL_BASE) + used
            setattr(self, f"{space}_bytes", used + size)
        self.arguments = {}
        self.instructions, self.labels = [], {}
        for item in function.body:
            if isinstance(item, str):
                self.labels[item] = len(self.instructions)
            else:
                self.instructions.append(item)
        self.executed = np.zeros(len(self.instructions), np.bool_)  # in any launch
        self.wavefronts = None  # of each line, [taken, least], where a test sets it to a defaultdict
        self.granule = 16  # bytes of the least access that may be one to shared memory
        self.code = [self._translate(i) for i in self.instructions]
        self.order = block_order(self.code)
        self.blocks = self._blocks()

    def register(self, name):
        """(number, type) of a register; None if it is none."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name):
        kind = self._prefixes.get(name) or (self._prefixes.get(name.rstrip("0123456789")) if "%" in name else None)
        if kind is None:
            return None
        self.types.append(REGISTERS[BYTES[kind]])
        return len(self.types) - 1, self.types[-1]

    def _blocks(self):
        """Begin of a block -> its instructions as (instruction, guard, negated, function), where it ends, and whether a
        branch, a return or a barrier stands there."""
        blocks = {}
        for start in self.order:
            end = start
            while end < len(self.code) and self.code[end][0] == "do" and (end == start or end not in self.order):
                end += 1
            jumps = end not in self.order or end == start
            body = zip(self.instructions[start:end], self.code[start:end])
            blocks[start] = [(instruction, *code[1:]) for instruction, code in body], end, jumps
        return blocks

    def bind(self, memory):
        """Places the constants in `memory`."""
        for name, (data, align) in self.constants.items():
            self.symbols[name] = int(memory.add(name, np.frombuffer(data, np.uint8), align))

    def _translate(self, instruction):
        guard = self.register(instruction.guard[0])[0] if instruction.guard else None
        negated = bool(instruction.guard and instruction.guard[1])
        kind = instruction.opcode[0]
        if kind == "bra":
            return ("bra", guard, negated, self.labels[instruction.operands[0]])
        if kind in ("ret", "exit"):
            return ("ret", guard, negated, None)
        if kind in ("bar", "barrier"):
            if instruction.guard or instruction.opcode[1:] != ["sync"] or instruction.operands != ["0"]:
                raise PtxError(f"unknown instruction '{instruction.text}'", instruction.line)
            return ("bar", None, False, None)
        if kind not in HANDLERS:
            raise PtxError(f"unknown instruction '{instruction.text}'", instruction.line)
        try:
            return ("do", guard, negated, HANDLERS[kind](self, instruction))
        except (KeyError, ValueError, IndexError, TypeError) as error:
            raise PtxError(f"unknown instruction '{instruction.text}' ({error!r})", instruction.line) from error


def launch(program, memory, global_size, local_size, arguments):
    """Runs the entry. Arguments are NumPy scalars; addresses as GlobalMemory.add gives them."""
    global_size, local_size = (tuple(s) + (1,) * (3 - len(s)) for s in (global_size, local_size))
    if len(arguments) != len(program.parameters):
        raise PtxError(f"{len(program.parameters)} arguments are expected, {len(arguments)} are given")
    for (name, size), value in zip(program.parameters, arguments):
        if value.nbytes != size:
            raise PtxError(f"parameter {name} has {size} bytes, its argument {value.nbytes}")
        program.arguments[name] = np.frombuffer(value.tobytes(), np.uint8)
    program.bind(memory)
    memory.begin_launch()
    groups = int(np.prod([g // s for g, s in zip(global_size, local_size)]))
    batch = max(1, BATCH // int(np.prod(local_size)))
    with np.errstate(all="ignore"):
        for first in range(0, groups, batch):
            _run(State(program, memory, global_size, local_size, first, min(batch, groups - first)))


def _run(state):
    program, registers = state.program, state.registers
    code, instructions, executed, order = program.code, program.instructions, program.executed, program.order
    waiting = {0: np.ones(state.count, np.bool_)}  # begin of a block -> lanes
    at_barrier = {}
    for _ in range(STEPS):
        if not waiting:
            break
        begin = min(waiting, key=order.__getitem__) if len(waiting) > 1 else next(iter(waiting))
        lanes = waiting.pop(begin)
        body, place, jumps = program.blocks[begin]
        executed[begin:place + jumps] = True
        state.mask = mask = None if np.count_nonzero(lanes) == state.count else lanes
        for state.instruction, guard, negated, what in body:
            if guard is None:
                what(state)
                continue
            chosen = ~registers[guard] if negated else registers[guard]
            state.mask = chosen if mask is None else lanes & chosen
            if active := np.count_nonzero(state.mask):
                if active == state.count:
                    state.mask = None
                what(state)
            state.mask = mask
        state.mask = None
        if not jumps:
            _join(waiting, place, lanes)
            continue
        kind, guard, negated, what = code[place]
        state.instruction = instructions[place]
        if kind == "bar":
            _arrive(state, place, lanes, at_barrier, waiting)
            continue
        chosen = lanes if guard is None else lanes & (~registers[guard] if negated else registers[guard])
        if kind == "bra":
            _join(waiting, what, chosen)
        if guard is not None:
            _join(waiting, place + 1, lanes & ~chosen)
    else:
        raise PtxError(f"no end after {STEPS} blocks", state.instruction.line)
    if state.warpgroups.products:
        raise PtxError("the kernel ends before products of wgmma that nobody has waited for")
    if at_barrier:
        place = min(at_barrier)
        thread = int(state.lane_thread[np.flatnonzero(at_barrier[place])[0]])
        raise PtxError("divergent barrier: a part of the work-group waits here, the rest elsewhere or for nothing",
                       instructions[place].line, thread)


def _join(waiting, place, lanes):
    """The lanes go on at `place`, with those that wait there."""
    if np.count_nonzero(lanes):
        waiting[place] = waiting[place] | lanes if place in waiting else lanes


def _arrive(state, place, lanes, at_barrier, waiting):
    lanes = lanes | at_barrier.pop(place) if place in at_barrier else lanes
    complete = lanes.reshape(-1, state.threads).all(axis=1)
    state.shared.intervals += complete
    passed = np.repeat(complete, state.threads)
    _join(waiting, place + 1, passed)
    if (rest := lanes & ~passed).any():
        at_barrier[place] = rest
