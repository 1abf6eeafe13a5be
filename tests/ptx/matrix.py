# SPDX-License-Identifier: Apache-2.0
"""Instructions of a whole warp: mma.sync and ldmatrix, with fragments as the PTX ISA draws them (chapters
"Matrix Fragments for mma.m16n8k32", "mma.m16n8k16", and "ldmatrix"), and shfl.sync."""
import numpy as np

from operands import TYPES, address, reader, vector, writer

LANE = np.arange(32)
GROUP, IN_GROUP = LANE // 4, LANE % 4


def fragment_places(words):
    """Where the elements of a lane lie, `words` of them in a register of 32 bits (4 bytes or 2 halves):
    rows and columns [32][4 registers][words] of A, [32][2 registers][words] of B, [32][4] of C."""
    i, w = np.arange(4), np.arange(words)
    depth = 4 * words  # of half of K
    a_rows = np.broadcast_to((GROUP[:, None] + 8 * (i % 2))[:, :, None], (32, 4, words))
    a_columns = IN_GROUP[:, None, None] * words + w + (i // 2 * depth)[:, None]
    j = np.arange(2)
    b_rows = IN_GROUP[:, None, None] * words + w + (j * depth)[:, None]
    b_columns = np.broadcast_to(GROUP[:, None, None], (32, 2, words))
    c_rows = GROUP[:, None] + 8 * (i // 2)
    c_columns = 2 * IN_GROUP[:, None] + i % 2
    return (a_rows, a_columns), (b_rows, b_columns), (c_rows, c_columns)


SHAPES = {"m16n8k32": ("s32", {"s8": np.int8, "u8": np.uint8}, 4), "m16n8k16": ("f32", {"f16": np.float16}, 2)}


def multiply(program, instruction):
    """mma.sync.aligned.SHAPE.row.col.D.A.B.C {d}, {a}, {b}, {c}. Sums of s8 wrap; those of f16 are made in f64
    and rounded once, where hardware rounds in an order and at a width of its own."""
    _, sync, aligned, shape, row, column, d_type, a_type, b_type, c_type = instruction.opcode
    out, elements, words = SHAPES[shape]
    if [sync, aligned, row, column] != ["sync", "aligned", "row", "col"] or {d_type, c_type} != {out}:
        raise KeyError(instruction.opcode)
    a_of, b_of = elements[a_type], elements[b_type]
    to, a, b, c = (vector(o) for o in instruction.operands)
    writes = [writer(program, name, out) for name in to]
    reads = [[reader(program, name, kind) for name in names] for names, kind in ((a, "b32"), (b, "b32"), (c, out))]
    if [len(x) for x in (to, a, b, c)] != [4, 4, 2, 4]:
        raise ValueError("number of registers")
    a_place, b_place, c_place = fragment_places(words)
    wide, sums = (np.float32, np.int32) if out == "s32" else (np.float64, np.float32)

    def gather(state, registers, warps):
        """[warp][lane][register], as 32 bits or sums."""
        columns = [r(state) for r in registers]
        columns = [np.full(state.count, x) if x.ndim == 0 else x for x in columns]
        return np.stack([x.reshape(-1, 32).take(warps, axis=0) for x in columns], axis=-1)

    def run(state):
        warps = state.warps("mma.sync")
        bits_a, bits_b, start = (gather(state, r, warps) for r in reads)
        left = np.empty((len(warps), 16, 8 * words), wide)
        right = np.empty((len(warps), 8 * words, 8), wide)
        left[:, *a_place] = bits_a.view(a_of).reshape(-1, 32, 4, words)
        right[:, *b_place] = bits_b.view(b_of).reshape(-1, 32, 2, words)
        product = (left @ right)[:, *c_place]  # s8: below 2^22, exact in f32
        total = product.astype(np.int32) + start if out == "s32" else (product + start).astype(sums)
        for i, write in enumerate(writes):
            whole = np.zeros(state.count, TYPES[out])
            whole.reshape(-1, 32)[warps] = total[:, :, i]
            write(state, whole)
    return run


def load_matrices(program, instruction):
    """ldmatrix.sync.aligned.m8n8.xN{.trans}.shared.b16: lanes 8 i .. 8 i + 7 give the rows of matrix i."""
    parts = instruction.opcode[1:]
    transposed = "trans" in parts
    count = {"x1": 1, "x2": 2, "x4": 4}[parts[3]]
    if [p for p in parts if p != "trans"] != ["sync", "aligned", "m8n8", parts[3], "shared", "b16"]:
        raise KeyError(instruction.opcode)
    writes = [writer(program, name, "b32") for name in vector(instruction.operands[0])]
    _, base, offset = address(program, instruction.operands[1])
    if len(writes) != count:
        raise ValueError("number of registers")

    def run(state):
        warps = state.warps("ldmatrix")
        givers = (warps[:, None] * 32 + np.arange(8 * count)).ravel()
        lines = type(state.lines)(state, givers)
        found = base(state)
        found = np.full(state.count, found) if found.ndim == 0 else found
        rows = state.shared.read(found[givers] + np.uint64(offset), 16, lines)
        matrices = rows.view(np.uint16).reshape(len(warps), count, 8, 8)
        if transposed:
            matrices = matrices.transpose(0, 1, 3, 2)
        words = np.ascontiguousarray(matrices).view(np.uint32)  # [warp][matrix][row][word]
        for i, write in enumerate(writes):
            whole = np.zeros(state.count, np.uint32)
            whole.reshape(-1, 32)[warps] = words[:, i, GROUP, IN_GROUP]
            write(state, whole)
    return run


def exchange(program, instruction):
    """shfl.sync.bfly.b32 d, a, MASK, 31, -1: the word of lane ^ MASK, in whole warps."""
    if instruction.opcode[1:] != ["sync", "bfly", "b32"]:
        raise KeyError(instruction.opcode)
    write, read = writer(program, instruction.operands[0], "b32"), reader(program, instruction.operands[1], "b32")
    mask = reader(program, instruction.operands[2], "b32")
    if [int(o, 0) & 0xffffffff for o in instruction.operands[3:]] != [31, 0xffffffff]:
        raise ValueError("not all lanes")

    def run(state):
        warps = state.warps("shfl.sync")
        given, masks = (np.broadcast_to(r(state), state.count).reshape(-1, 32).take(warps, axis=0)
                        for r in (read, mask))
        whole = np.zeros(state.count, np.uint32)
        whole.reshape(-1, 32)[warps] = np.take_along_axis(given, (LANE ^ masks & 31).astype(np.intp), axis=1)
        write(state, whole)
    return run


HANDLERS = {"mma": multiply, "ldmatrix": load_matrices, "shfl": exchange}
