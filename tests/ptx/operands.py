# SPDX-License-Identifier: Apache-2.0
"""Operands of instructions, as functions of the state: readers that give an array of the lanes (or one value for
all), and writers."""
import re
import struct

import numpy as np

TYPES = {"pred": np.bool_, "b8": np.uint8, "u8": np.uint8, "s8": np.int8, "b16": np.uint16, "u16": np.uint16,
         "s16": np.int16, "f16": np.float16, "b32": np.uint32, "u32": np.uint32, "s32": np.int32,
         "f32": np.float32, "b64": np.uint64, "u64": np.uint64, "s64": np.int64, "f64": np.float64}
UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def integer(text):
    """The value of an integer operand, None if it is none."""
    return int(text, 0) if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)", text) else None


def reader(program, text, kind):
    """The operand as elements of type `kind`; a register may be wider, then its low bytes count."""
    if (text, kind) not in program.readers:
        program.readers[text, kind] = _reader(program, text, kind)
    return program.readers[text, kind]


def _reader(program, text, kind):
    want = np.dtype(TYPES[kind])
    if found := program.register(text):
        number, own = found
        if own is TYPES[kind]:
            return lambda state: state.registers[number]
        if np.dtype(own).itemsize == want.itemsize:
            return lambda state: state.registers[number].view(want)
        if np.dtype(own).itemsize < want.itemsize:
            raise ValueError(f"{text} is narrower than {kind}")
        narrow = UNSIGNED[want.itemsize]
        return lambda state: state.registers[number].astype(narrow).view(want)
    if text.startswith("%"):
        if want.itemsize != 4:
            raise ValueError(f"{text} as {kind}")
        if text.rsplit(".", 1)[0] not in ("%tid", "%ctaid", "%ntid", "%nctaid"):
            raise ValueError(f"unknown register {text}")
        return lambda state: state.special[text].view(want)
    if text.startswith("0f"):
        value = np.frombuffer(struct.pack("<I", int(text[2:], 16)), want)[0]
    elif text in program.symbols:  # constants get their places before a launch
        unsigned = UNSIGNED[want.itemsize]
        return lambda state: unsigned(program.symbols[text])
    elif want == np.bool_:
        value = np.bool_(integer(text) != 0)
    else:
        bits = integer(text) & ((1 << 8 * want.itemsize) - 1)
        value = UNSIGNED[want.itemsize](bits).view(want)
    return lambda state: value


def writer(program, text, kind):
    """Sets the register to values of type `kind`, extended by their sign if it is wider."""
    if (text, kind) not in program.writers:
        program.writers[text, kind] = _writer(program, text, kind)
    return program.writers[text, kind]


def _writer(program, text, kind):
    number, own = program.register(text)
    if own is TYPES[kind]:
        return lambda state, values: state.set(number, values)
    have, own = np.dtype(TYPES[kind]), np.dtype(own)
    if have.itemsize == own.itemsize:
        return lambda state, values: state.set(number, values.view(own))
    if have.itemsize > own.itemsize:
        raise ValueError(f"{text} is narrower than {kind}")
    wide = np.dtype(f"i{own.itemsize}") if have.kind == "i" else own
    unsigned = UNSIGNED[have.itemsize]
    if have.kind == "i":
        return lambda state, values: state.set(number, values.astype(wide).view(own))
    return lambda state, values: state.set(number, values.view(unsigned).astype(own))


def vector(text):
    """The elements of {a, b, ...}, or the operand alone."""
    return [part.strip() for part in text[1:-1].split(",")] if text.startswith("{") else [text]


def address(program, text):
    """(name or None, reader or None, offset) of [base + offset]."""
    base, _, offset = text[1:-1].partition("+")
    base = base.strip()
    offset = integer(offset.strip()) if offset else 0
    if program.register(base) or base in program.symbols:
        return None, reader(program, base, "b64"), offset
    return base, None, offset
