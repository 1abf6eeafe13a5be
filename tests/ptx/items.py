# SPDX-License-Identifier: Apache-2.0
"""Launches of the kernels that make no use of work-groups: one work-item a group, as NVIDIA's devices get them."""
import dataclasses

import numpy as np

from machine import launch
from memory import GlobalMemory
from toolchain import program_of


@dataclasses.dataclass
class Out:
    """An output, all of which must be written; or an array that is there, and is changed."""
    shape: tuple
    dtype: type = np.float32
    start: np.ndarray = None


def changed(array):
    return Out(array.shape, array.dtype, array)


def run_items(program, entry, items, *arguments, align=1):
    """The outputs, in their order. Arrays are inputs, and lie where their elements, or `align`, just let them; None is
    a null pointer."""
    memory, given, outs = GlobalMemory(), [], []
    for i, argument in enumerate(arguments):
        if argument is None:
            given.append(np.uint64(0))
        elif isinstance(argument, Out):
            start = np.zeros(argument.shape, argument.dtype) if argument.start is None else argument.start
            given.append(memory.add(f"argument {i}", start, max(start.itemsize, align), True,
                                    argument.start is not None))
            outs.append((f"argument {i}", argument))
        elif isinstance(argument, np.ndarray):
            given.append(memory.add(f"argument {i}", argument, max(argument.itemsize, align)))
        else:
            given.append(np.float32(argument) if isinstance(argument, float) else np.int32(argument))
    items = items if isinstance(items, tuple) else (items,)
    launch(program_of(program, entry, ("DOT4=2",), 75), memory, items, (1, 1, 1), given)
    return [memory.get(name, out.dtype).reshape(out.shape) for name, out in outs]
