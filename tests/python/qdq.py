# SPDX-License-Identifier: Apache-2.0
"""What a Q/DQ model quantizes, and how: the same for two files that compute the same with other names."""
import collections

import numpy as np
import onnx
from onnx import numpy_helper

PAIR = "QuantizeLinear", "DequantizeLinear"
Quantized = collections.namedtuple("Quantized", "tensor scale zero_point type axis integers")


class Quantization:
    """By (first output of a node, number of its input) the Quantized that the node reads there:
    the float tensor behind Q -> DQ, or the name of the weight with its integers."""

    def __init__(self, model):
        graph = onnx.load(model).graph
        self._values = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self._producers = {name: node for node in graph.node for name in node.output}
        self.reads = {}
        for node in graph.node:
            if node.op_type in PAIR:
                continue
            for i, name in enumerate(node.input):
                producer = self._producers.get(name)
                if producer is not None and producer.op_type == "DequantizeLinear":
                    self.reads[self._place(node), i] = self._describe(producer)

    def _place(self, node):
        name = node.output[0]
        return name.removesuffix("_QuantizeLinear_Input")  # where an output is quantized

    def _value(self, name):
        node = self._producers.get(name)
        if node is None:
            return self._values[name]
        assert node.op_type == "Constant", f"{name}: made by {node.op_type}"
        return numpy_helper.to_array(node.attribute[0].t)

    def _describe(self, dequantize):
        scale = self._value(dequantize.input[1])
        zero = self._value(dequantize.input[2])
        axis = None
        if scale.size > 1 or scale.ndim:
            axis = next((a.i for a in dequantize.attribute if a.name == "axis"), 1)
        quantize = self._producers.get(dequantize.input[0])
        integers = None
        if quantize is None:  # a weight stored as integers
            integers = self._values[dequantize.input[0]]
            tensor = dequantize.input[0].removesuffix("_quantized")
            axis = axis % integers.ndim if axis is not None else None
        else:
            tensor = quantize.input[0].removesuffix("_QuantizeLinear_Input")
            for mine, other in zip(quantize.input[1:], dequantize.input[1:]):
                assert np.array_equal(self._value(mine), self._value(other)), f"{tensor}: Q is not DQ"
        return Quantized(tensor, scale, zero, str(zero.dtype), axis, integers)


def differences(expected, found):
    """Lines, none where both models quantize the same reads in the same way, bit for bit."""
    lines = [f"{place}: only in one of both" for place in expected.keys() ^ found.keys()]
    for place in expected.keys() & found.keys():
        for name, a, b in zip(Quantized._fields, expected[place], found[place]):
            if not _equal(a, b):
                lines.append(f"{place}: {name}: {a} and {b}")
    return sorted(lines)


def _equal(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b
