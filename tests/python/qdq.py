# SPDX-License-Identifier: Apache-2.0
"""What a Q/DQ model quantizes, and how: the same for two files that compute the same with other names."""
import collections

import numpy as np
import onnx
import onnx.reference
from onnx import numpy_helper

PAIR = "QuantizeLinear", "DequantizeLinear"
INPUT = "_QuantizeLinear_Input"  # of a result that is quantized for all its readers
Quantized = collections.namedtuple("Quantized", "tensor scale zero_point type axis constant")


def folded(model):
    """The model with weights as initializers, without the Cast or Transpose in front of them: bertcl
    sees through these, ONNX Runtime's quantizer takes what they give for an activation."""
    proto = onnx.load(model)
    graph = proto.graph
    values = {t.name: t for t in graph.initializer}
    for node in list(graph.node):
        if node.op_type in ("Cast", "Transpose") and node.input[0] in values:
            made = onnx.reference.ReferenceEvaluator(node).run(
                None, {node.input[0]: numpy_helper.to_array(values[node.input[0]])})[0]
            graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(made),
                                                             node.output[0]))
            graph.node.remove(node)
    read = {name for node in graph.node for name in node.input}
    kept = [t for t in graph.initializer if t.name in read]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return proto


class Quantization:
    """`reads`: by (first output of a node, number of its input), or (output of the model, "output"),
    the Quantized that is read there: a tensor after Q -> DQ, or a weight with its values as they are
    stored. `pairs`: the number of nodes of each of the two operators."""

    def __init__(self, model):
        graph = folded(model).graph
        self._values = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
        self._producers = {name: node for node in graph.node for name in node.output}
        self.pairs = collections.Counter(n.op_type for n in graph.node if n.op_type in PAIR)
        self.reads = {}
        for node in graph.node:
            if node.op_type not in PAIR:
                for i, name in enumerate(node.input):
                    self._add((node.output[0].removesuffix(INPUT), i), name)
        for value in graph.output:
            self._add((value.name, "output"), value.name)

    def _add(self, place, name):
        producer = self._producers.get(name)
        if producer is not None and producer.op_type == "DequantizeLinear":
            self.reads[place] = self._describe(producer)

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
        if quantize is None:  # a weight stored as integers
            constant = self._values[dequantize.input[0]]
            tensor = dequantize.input[0].removesuffix("_quantized")
        else:
            tensor = quantize.input[0].removesuffix(INPUT)
            constant = self._values.get(quantize.input[0])
            for mine, other in zip(quantize.input[1:], dequantize.input[1:]):
                assert np.array_equal(self._value(mine), self._value(other)), f"{tensor}: Q is not DQ"
        if axis is not None and constant is not None:
            axis %= constant.ndim
        return Quantized(tensor, scale, zero, str(zero.dtype), axis, constant)


def differences(expected, found):
    """Lines, none where both models quantize the same reads in the same way, bit for bit."""
    lines = []
    if expected.pairs != found.pairs:
        lines.append(f"{dict(expected.pairs)} and {dict(found.pairs)}")
    expected, found = expected.reads, found.reads
    lines += [f"{place}: only in one of both" for place in expected.keys() ^ found.keys()]
    for place in expected.keys() & found.keys():
        for name, a, b in zip(Quantized._fields, expected[place], found[place]):
            if not _equal(a, b):
                lines.append(f"{place}: {name}: {a} and {b}")
    return sorted(lines)


def _equal(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    return type(a) is type(b) and a == b
