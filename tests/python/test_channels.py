# SPDX-License-Identifier: Apache-2.0
"""Factors and scales for each channel, as SmoothQuant and an int8 residual stream write them, run in
the same launches as one scale for each tensor."""
import collections
import unittest

import numpy as np
from c_session import Session
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from support import Reference, inspect, scratch, silence, worst
from test_spellings import FUSED_INT8, LENGTHS, batch, inputs_only, operators, samples

import make_bert

LAUNCHES_OF_A_LAYER = 7
ACTIVATIONS = ("LayerNormalization", "Gelu")


class Graph:
    """An ONNX model with its initializers by name, for edits."""

    def __init__(self, model):
        self.model, self.nodes = model, list(model.graph.node)
        self.constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}

    def readers(self, name):
        return [n for n in self.nodes if name in n.input]

    def made_by(self, *kinds):
        return [n.output[0] for n in self.nodes if n.op_type in kinds]

    def add(self, op, inputs, output, before, **attributes):
        self.nodes.insert(self.nodes.index(before), helper.make_node(op, inputs, [output], **attributes))
        return output

    def redirect(self, node, old, new):
        node.input[list(node.input).index(old)] = new

    def save(self, path):
        graph = self.model.graph
        del graph.node[:], graph.initializer[:]
        graph.node.extend(self.nodes)
        graph.initializer.extend(numpy_helper.from_array(v, k) for k, v in self.constants.items())
        make_bert.save(self.model, path)
        return path


def smoothed(model, random, factor_of_each_reader=False, half=False):
    """x -> MatMul(W) becomes x -> Mul m -> MatMul(W / m) for every LayerNormalization and Gelu."""
    graph = Graph(model)
    for x in graph.made_by(*ACTIVATIONS):
        matmuls = [n for n in graph.readers(x) if n.op_type == "MatMul"]
        shared = None
        for matmul in matmuls:
            weight = graph.constants[matmul.input[1]]
            if shared is None or factor_of_each_reader:
                name = f"{matmul.output[0]}.factor"
                if shared is None:
                    m = np.exp2(np.clip(random.standard_normal(len(weight)), -3, 3)).astype(np.float16)
                graph.constants[name] = m if half else m.astype(np.float32)
                if half:
                    name = graph.add("Cast", [name], name + ".float", matmul, to=TensorProto.FLOAT)
                shared = graph.add("Mul", [x, name], name + ".scaled", matmul)
            graph.constants[matmul.input[1]] = weight / m.astype(np.float32)[:, None]
            graph.redirect(matmul, x, shared)
    return graph


def with_scales_of_channels(graph):
    """Mul m -> Q(s) becomes Q(s / m, axis = last)."""
    muls = {n.output[0]: n for n in graph.nodes if n.op_type == "Mul"}
    for q in [n for n in graph.nodes if n.op_type == "QuantizeLinear" and n.input[0] in muls]:
        mul, (_, scale, zero) = muls[q.input[0]], q.input
        m = graph.constants[mul.input[1]]
        graph.constants[q.name + ".scale"] = graph.constants[scale] / m
        graph.constants[q.name + ".zero_point"] = np.full(m.shape, graph.constants[zero])
        del q.input[:]
        q.input.extend([mul.input[0], q.name + ".scale", q.name + ".zero_point"])
        q.attribute.append(helper.make_attribute("axis", 2))
    graph.nodes = [n for n in graph.nodes if n.op_type != "Mul" or graph.readers(n.output[0])]
    return graph


def with_int8_residuals(graph, ranges):
    """A pair with a scale for each channel on both operands of the sums in front of
    LayerNormalization. `ranges` gives the lowest and highest value of each channel."""
    made = {n.output[0]: n for n in graph.nodes}
    for norm in [n for n in graph.nodes if n.op_type == "LayerNormalization"]:
        total = made[norm.input[0]]
        if total.input[0] not in ranges or total.input[1] not in ranges:
            continue  # the embeddings
        for x in list(total.input):
            low, high = ranges[x]
            scale = ((high - low) / 255).astype(np.float32)
            zero = np.clip(np.rint(-128 - low / scale), -128, 127).astype(np.int8)
            name = f"{x}.{norm.name}"
            graph.constants[name + ".scale"], graph.constants[name + ".zero"] = scale, zero
            quantized = graph.add("QuantizeLinear", [x, name + ".scale", name + ".zero"], name + ".q",
                                  total, axis=-1)
            graph.redirect(total, x, graph.add("DequantizeLinear", [
                quantized, name + ".scale", name + ".zero"], name + ".dq", total, axis=2))
    return graph


def channel_ranges(model, path, spec):
    """Lowest and highest value of each channel of the operands of residual sums."""
    made = {n.output[0]: n for n in model.graph.node}
    names = [x for n in model.graph.node if n.op_type == "LayerNormalization"
             for x in made[n.input[0]].input if made[x].op_type in ("Add", *ACTIVATIONS)]
    model.graph.output.extend(helper.make_tensor_value_info(x, TensorProto.FLOAT, None) for x in names)
    make_bert.save(model, path)
    reference, found = Reference(path), collections.defaultdict(list)
    for seed in range(1, 5):
        run = reference.run(batch(spec, (24,), seed))
        for x in names:
            found[x].append(run[x].reshape(-1, run[x].shape[-1]))
    return {x: (np.minimum(v.min(0), 0), np.maximum(v.max(0), 0))
            for x, v in ((x, np.concatenate(v)) for x, v in found.items())}


class Channels(unittest.TestCase):
    STEPS = 0.02  # of the range of the logits; see test_spellings.py
    SPEC = make_bert.Spec.of_size("tiny", opset=20, layer_norm="whole", gelu="whole", mask="where")

    @classmethod
    def setUpClass(cls):
        silence(cls)

    def setUp(self):
        self.folder = scratch(self)

    def quantize(self, graph):
        source, path = graph.save(self.folder / "smoothed.onnx"), self.folder / "quantized.onnx"
        quantize_static(source, path, samples(self.SPEC), quant_format=QuantFormat.QDQ,
                        per_channel=True, activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8, **inputs_only("MatMul"))
        return Graph(make_bert.onnx.load(path))

    def smoothed(self, **options):
        return smoothed(make_bert.build(self.SPEC), np.random.default_rng(3), **options)

    def check(self, graph, name="model.onnx"):
        """As ONNX Runtime computes it, every MatMul in int8, no launch more than without factors."""
        path = graph.save(self.folder / name)
        inputs = batch(self.SPEC, LENGTHS)
        found = Session(path).run(inputs)
        difference, extent = worst(Reference(path).run(inputs), found, inputs[self.SPEC.mask_name])
        self.assertGreater(extent, 1)
        self.assertLess(difference, self.STEPS * extent)
        report = inspect(path, "--require", "int8")
        self.assertEqual(operators(report), FUSED_INT8)
        layers = sum(op["op"] in ("linear_q", "attention_q", "add_norm") for op in report["ops"]) - 1
        self.assertEqual(layers, LAUNCHES_OF_A_LAYER * self.SPEC.layers)
        return found

    def assert_equal(self, first, second):
        for name in first:
            np.testing.assert_array_equal(first[name], second[name])

    def test_factors_and_scales_of_channels_are_one_thing(self):
        graph = self.quantize(self.smoothed())
        self.assertTrue(any(n.op_type == "Mul" for n in graph.nodes))
        self.assert_equal(self.check(graph),
                          self.check(with_scales_of_channels(graph), "scales.onnx"))

    def test_a_factor_of_each_reader(self):
        self.check(self.quantize(self.smoothed(factor_of_each_reader=True)))

    def test_factors_in_half(self):
        self.check(self.quantize(self.smoothed(half=True)))

    def test_int8_residuals(self):
        for with_factors in (False, True):
            with self.subTest(with_factors=with_factors):
                source = (self.smoothed() if with_factors else Graph(make_bert.build(self.SPEC)))
                path = source.save(self.folder / "float.onnx")
                ranges = channel_ranges(make_bert.onnx.load(path), self.folder / "seen.onnx", self.SPEC)
                self.check(with_int8_residuals(self.quantize(source), ranges))

    def test_negative_factors_stay_apart(self):
        graph = self.quantize(self.smoothed())
        for name in [k for k in graph.constants if k.endswith(".factor")]:
            graph.constants[name] = -graph.constants[name]
        path = graph.save(self.folder / "negative.onnx")
        self.assertIn("Mul", operators(inspect(path)))
        inputs = batch(self.SPEC, LENGTHS)
        difference, extent = worst(Reference(path).run(inputs), Session(path).run(inputs),
                                   inputs[self.SPEC.mask_name])
        self.assertLess(difference, self.STEPS * extent)
