# SPDX-License-Identifier: Apache-2.0
"""Instructions on registers alone: arithmetic, logic, comparison, conversion (PTX ISA, chapter 9.7).

Float arithmetic is that of IEEE 754 with round to nearest even and denormals, which .rn without .ftz means;
approximations (.approx, .full, .ftz) are unknown instructions: our kernels have none."""
import numpy as np

from operands import TYPES, UNSIGNED, integer, reader, vector, writer

FLOATS = ("f16", "f32", "f64")


def fma(a, b, c):
    """a * b + c in f32, rounded once. The product is exact in f64. Where the sum there lies between two f32 or
    is small, it is rounded to odd, which f32 cannot tell from the exact sum (Boldo and Melquiond, 2008)."""
    product, c = np.multiply(a, b, dtype=np.float64), np.asarray(c, np.float64)
    total = np.asarray(product + c)
    unsure = (total.view(np.int64) & 0x1FFFFFFF) == 0x10000000
    unsure |= np.abs(total) < np.float64(2.0 ** -126)
    if np.count_nonzero(unsure):
        back = total - product
        error = (product - (total - back)) + (c - back)
        odd = (error != 0) & np.isfinite(total) & (total.view(np.int64) & 1 == 0)
        total = np.where(odd, np.nextafter(total, np.where(error > 0, np.inf, -np.inf)), total)
    return total.astype(np.float32)


def divide(a, b, remainder):
    """Truncated quotient or remainder; by zero: garbage, as it is on hardware."""
    kind = np.result_type(a)
    zero = b == 0
    b = np.where(zero, kind.type(1), b)
    quotient = a // b
    if kind.kind == "i":
        quotient = quotient + ((quotient * b != a) & ((a < 0) != (b < 0)))
    result = a - quotient * b if remainder else quotient
    return np.where(zero, kind.type(-1) if kind.kind == "i" else np.iinfo(kind).max, result).astype(kind)


def high_half(a, b):
    kind = np.result_type(a)
    wide = np.int64 if kind.kind == "i" else np.uint64
    return (a.astype(wide) * b.astype(wide) >> wide(32)).astype(kind)


def clear_sign(x):
    unsigned = UNSIGNED[x.dtype.itemsize]
    return (x.view(unsigned) & unsigned(np.iinfo(unsigned).max >> 1)).view(x.dtype)


def unsigned(kind):
    """For what does not depend on the sign: registers are unsigned."""
    return f"u{kind[1:]}" if kind[0] == "s" else kind


# name and modifiers -> function; the type follows
INTEGER = {"add": np.add, "sub": np.subtract, "mul.lo": np.multiply, "mul.hi": high_half, "min": np.minimum,
           "max": np.maximum, "div": lambda a, b: divide(a, b, False), "rem": lambda a, b: divide(a, b, True),
           "mad.lo": lambda a, b, c: a * b + c, "neg": np.negative, "abs": np.abs,
           "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor, "not": np.invert}
WRAPPING = ("add", "sub", "mul.lo", "mad.lo")
FLOAT = {"add.rn": np.add, "sub.rn": np.subtract, "mul.rn": np.multiply, "div.rn": np.divide, "fma.rn": fma,
         "rcp.rn": lambda a: np.float32(1) / a, "sqrt.rn": np.sqrt, "min": np.fmin, "max": np.fmax,
         "min.NaN": np.minimum, "max.NaN": np.maximum, "neg": np.negative, "abs": clear_sign}


def simple(program, instruction):
    *name, kind = instruction.opcode
    if kind in FLOATS and kind != "f32":
        raise KeyError(kind)
    function = (FLOAT if kind in FLOATS else INTEGER)[".".join(name)]
    if kind in ("u64", "s64") and name == ["mul", "hi"]:
        raise KeyError("mul.hi of 64 bits")
    if ".".join(name) in WRAPPING:
        kind = unsigned(kind)
    write = writer(program, instruction.operands[0], kind)
    reads = [reader(program, o, kind) for o in instruction.operands[1:]]
    if len(reads) == 1:
        (a,) = reads
        return lambda state: write(state, function(a(state)))
    if len(reads) == 2:
        a, b = reads
        return lambda state: write(state, function(a(state), b(state)))
    a, b, c = reads
    return lambda state: write(state, function(a(state), b(state), c(state)))


def multiply(program, instruction):
    """mul and mad, also .wide: operands of half the width of the result."""
    if instruction.opcode[1] != "wide":
        return simple(program, instruction)
    kind = instruction.opcode[2]
    wide = f"{kind[0]}{2 * int(kind[1:])}"
    write = writer(program, instruction.operands[0], wide)
    a, b = (reader(program, o, kind) for o in instruction.operands[1:3])
    of = TYPES[wide]
    if instruction.opcode[0] == "mad":
        c = reader(program, instruction.operands[3], wide)
        return lambda state: write(state, a(state).astype(of) * b(state).astype(of) + c(state))
    return lambda state: write(state, a(state).astype(of) * b(state).astype(of))


def shift(program, instruction):
    """Amounts past the width give 0, or the sign (NumPy's shifts do the same)."""
    name, kind = instruction.opcode
    function = np.left_shift if name == "shl" else np.right_shift
    write = writer(program, instruction.operands[0], kind)
    a, amount = reader(program, instruction.operands[1], kind), reader(program, instruction.operands[2], "u32")
    of = TYPES[kind]
    fixed = integer(instruction.operands[2])
    if fixed is not None:
        fixed = of(min(fixed & 0xffffffff, 64))
        return lambda state: write(state, function(a(state), fixed))
    return lambda state: write(state, function(a(state), np.minimum(amount(state), np.uint32(64)).astype(of)))


COMPARISONS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
               "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal, "hi": np.greater,
               "hs": np.greater_equal}


def _float_comparison(name):
    """Ordered ones are false where an operand is NaN, those with u true."""
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "ne":
        return lambda a, b: (a < b) | (a > b)
    if name in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
        ordered = COMPARISONS[name[:2]]
        return lambda a, b: ordered(a, b) | np.isnan(a) | np.isnan(b)
    return COMPARISONS[name]


def compare(program, instruction):
    _, name, kind = instruction.opcode
    if kind in FLOATS:
        function = _float_comparison(name)
    else:
        function = COMPARISONS[name]
        kind = f"u{kind[1:]}" if name in ("lo", "ls", "hi", "hs") else kind
    write = writer(program, instruction.operands[0], "pred")
    a, b = (reader(program, o, kind) for o in instruction.operands[1:])
    return lambda state: write(state, function(a(state), b(state)))


def choose(program, instruction):
    kind = f"b{instruction.opcode[1][1:]}"  # only moved
    write = writer(program, instruction.operands[0], kind)
    a, b = (reader(program, o, kind) for o in instruction.operands[1:3])
    condition = reader(program, instruction.operands[3], "pred")
    return lambda state: write(state, np.where(condition(state), a(state), b(state)))


def move(program, instruction):
    """mov, also from and to the parts of a register."""
    kind = instruction.opcode[1]
    kind = kind if kind == "pred" else f"b{kind[1:]}"
    to, source = instruction.operands
    if source.startswith("{"):
        parts = [reader(program, p, f"b{int(kind[1:]) // len(vector(source))}") for p in vector(source)]
        write, bits, of = writer(program, to, kind), int(kind[1:]) // len(parts), TYPES[kind]

        def join(state):
            total = of(0)
            for i, part in enumerate(parts):
                total = total | part(state).astype(of) << of(bits * i)
            write(state, total)
        return join
    if to.startswith("{"):
        names = vector(to)
        bits = int(kind[1:]) // len(names)
        writes = [None if n == "_" else writer(program, n, f"b{bits}") for n in names]
        read, of, part = reader(program, source, kind), TYPES[kind], TYPES[f"b{bits}"]

        def split(state):
            whole = read(state)
            for i, write in enumerate(writes):
                if write:
                    write(state, (whole >> of(bits * i)).astype(part))
        return split
    write, read = writer(program, to, kind), reader(program, source, kind)
    return lambda state: write(state, read(state))


ROUND = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def convert_pair(program, instruction):
    """cvt.rn.f16x2.f32 d, a, b: halves, that of b in the lower bits."""
    if instruction.opcode[1:] != ["rn", "f16x2", "f32"]:
        raise KeyError(instruction.opcode)
    write = writer(program, instruction.operands[0], "b32")
    high, low = (reader(program, o, "f32") for o in instruction.operands[1:])

    def bits(x):
        return np.asarray(x).astype(np.float16).view(np.uint16).astype(np.uint32)
    return lambda state: write(state, bits(low(state)) | bits(high(state)) << np.uint32(16))


def convert(program, instruction):
    if "f16x2" in instruction.opcode:
        return convert_pair(program, instruction)
    *modifiers, to, source = instruction.opcode[1:]
    write, read = writer(program, instruction.operands[0], to), reader(program, instruction.operands[1], source)
    of = TYPES[to]
    if to in FLOATS and source in FLOATS:
        if modifiers and modifiers[0] in ROUND and to == source:
            function = ROUND[modifiers[0]]
        elif modifiers == (["rn"] if TYPES[to]().itemsize < TYPES[source]().itemsize else []):
            function = lambda x: x.astype(of)  # noqa: E731
        else:
            raise KeyError(".".join(modifiers))
    elif source in FLOATS:  # to the nearest integer of the range; NaN gives 0
        rounding, bounds = ROUND[modifiers[0]], np.iinfo(of)
        if len(modifiers) > 1:
            raise KeyError(modifiers[1])
        low, high = np.float64(bounds.min), np.float64(bounds.max)

        def function(x):
            x = np.nan_to_num(rounding(x.astype(np.float64)), nan=0.0, posinf=high, neginf=low)
            inside = (x > low) & (x < high)
            return np.where(inside, np.where(inside, x, 0).astype(of), np.where(x < 0, bounds.min, np.where(
                x > 0, bounds.max, 0)).astype(of))
    elif to in FLOATS:
        if modifiers != ["rn"]:
            raise KeyError(".".join(modifiers))
        function = lambda x: x.astype(of)  # noqa: E731
    else:
        if modifiers:
            raise KeyError(".".join(modifiers))
        function = lambda x: x.astype(of)  # noqa: E731
    return lambda state: write(state, np.asarray(function(read(state))))


def extract_bits(program, instruction):
    """bfe.u32, bfe.u64."""
    kind = instruction.opcode[1]
    of = {"u32": np.uint32, "u64": np.uint64}[kind]
    write = writer(program, instruction.operands[0], kind)
    a = reader(program, instruction.operands[1], kind)
    begin, count = (reader(program, o, "u32") for o in instruction.operands[2:])

    def run(state):
        length = np.minimum(count(state) & np.uint32(255), np.uint32(8 * of().itemsize)).astype(np.uint64)
        mask = ~(~np.uint64(0) << length) | -(length >> np.uint64(6))
        write(state, (a(state) >> (begin(state) & np.uint32(255)).astype(of)) & mask.astype(of))
    return run


def count_zeros(program, instruction):
    """clz.b32: the leading zeros."""
    if instruction.opcode[1] != "b32":
        raise KeyError(instruction.opcode[1])
    write, a = writer(program, instruction.operands[0], "u32"), reader(program, instruction.operands[1], "u32")
    return lambda state: write(state, np.asarray(32 - np.frexp(a(state).astype(np.float64))[1]).astype(np.uint32))


def dot_four(program, instruction):
    """dp4a: c + the dot product of four bytes, each side with a sign of its own; wraps."""
    signs = [{"s32": np.int8, "u32": np.uint8}[k] for k in instruction.opcode[1:]]
    out = "u32" if instruction.opcode[1:] == ["u32", "u32"] else "s32"
    write = writer(program, instruction.operands[0], out)
    a, b = (reader(program, o, "b32") for o in instruction.operands[1:3])
    c = reader(program, instruction.operands[3], out)

    def four(x, of):
        return np.ascontiguousarray(x).reshape(-1, 1).view(of).astype(np.int32)

    def run(state):
        sums = np.einsum("ij,ij->i", four(a(state), signs[0]), four(b(state), signs[1]))
        write(state, sums.view(TYPES[out]) + c(state))
    return run


HANDLERS = {name.split(".")[0]: simple for name in INTEGER | FLOAT}
HANDLERS |= {"mul": multiply, "mad": multiply, "shl": shift, "shr": shift, "setp": compare, "selp": choose,
             "mov": move, "cvt": convert, "bfe": extract_bits, "clz": count_zeros, "dp4a": dot_four}
