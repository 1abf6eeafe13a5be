# SPDX-License-Identifier: Apache-2.0
"""Launches of kernels whose work-items are independent, in groups as NVIDIA's devices get them."""
import dataclasses

import numpy as np

from machine import launch
from memory import GlobalMemory
from toolchain import program_of


def groups_of(items):
    """(global size, local size): opencl::in_groups() for a preferred multiple of 32."""
    items, left, whole, local = (*items, 1, 1)[:3], 32, [], []
    for size in items[:2]:
        side = min(left, 1 << (size - 1).bit_length()) if np.prod(items) > 1 else 1
        whole.append(-(-size // side) * side)
        local.append(side)
        left //= side
    return (*whole, items[2]), (*local, 1)


@dataclasses.dataclass
class Out:
    """An output, all of which must be written; or an array that is there, and is changed."""
    shape: tuple
    dtype: type = np.float32
    start: np.ndarray = None


def changed(array):
    return Out(array.shape, array.dtype, array)


def run_items(program, entry, items, *arguments, align=1, group=None):
    """The outputs, in their order; `group`: a local size of the kernel's own. Arrays are inputs, and lie where their elements, or `align`, just let them; None is
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
    whole, local = (items, group) if group else groups_of(items)
    launch(program_of(program, entry, ("DOT4=2",), 75), memory, whole, local, given)
    return [memory.get(name, out.dtype).reshape(out.shape) for name, out in outs]
