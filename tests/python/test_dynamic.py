# SPDX-License-Identifier: Apache-2.0
"""Models that are quantized dynamically, by ONNX Runtime or by bertcl: both runtimes on both quantizers' files."""
import functools
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
import questions
from c_session import Session
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from support import MODEL, SAMPLE, Reference, bertcl, bertcl_run, inspect, model_of, optimize, scratch

QUESTIONS = 10
EIGHT_BITS = {"i8": dict(weight_type=QuantType.QInt8),
              "i8 per column": dict(weight_type=QuantType.QInt8, per_channel=True),
              "u8": dict(weight_type=QuantType.QUInt8)}


def with_inner_outputs(source, target, count):
    """The model with the first `count` results of DynamicQuantizeLinear as its outputs."""
    model = onnx.load(source)
    names = [n.output[0] for n in model.graph.node if n.op_type == "DynamicQuantizeLinear"][:count]
    del model.graph.output[:]
    model.graph.output.extend(helper.make_tensor_value_info(n, TensorProto.UINT8, None)
                              for n in names)
    onnx.save(model, target)


OPTIONS = {"i8": ["--per-tensor"], "i8 per column": [], "u8": ["--weights", "u8", "--per-tensor"],
           "7 bits": ["--per-tensor", "--reduce-range"], "per token": ["--per-token"]}


def matmuls(path):
    """Weight, scale and zero point of each integer MatMul, by the name of its node."""
    graph = onnx.load(path).graph
    constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    readers = {name: n for n in graph.node for name in n.input}
    found = {}
    for node in graph.node:
        if node.op_type == "MatMulInteger":
            scales = {n.name: n for n in graph.node}[node.name + "_scales_mul"]
            found[node.name] = (constants[node.input[1]], constants[scales.input[1]],
                                constants[node.input[3]], readers[node.output[0]].op_type)
    return found


class DynamicallyQuantizedModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch(cls)
        # Cast and Transpose of weights folded: quantize_dynamic takes initializers only.
        optimize(MODEL, cls.folder / "folded.onnx", onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC)
        vocabulary = questions.Vocabulary(MODEL.parent / "vocab.txt")
        cls.examples = questions.load(SAMPLE, QUESTIONS, vocabulary, max_length=200)

    def quantized(self, name):
        path = self.folder / f"{name.replace(' ', '_')}.onnx"
        if not path.exists():
            quantize_dynamic(self.folder / "folded.onnx", path, **EIGHT_BITS[name])
        return path

    def written(self, name):
        """The same by bertcl."""
        path = self.folder / f"bertcl_{name.replace(' ', '_')}.onnx"
        if not path.exists():
            bertcl("quantize", MODEL, "-o", path, "--dynamic", *OPTIONS[name])
            onnx.checker.check_model(path, full_check=True)
        return path

    def files(self):
        for name in EIGHT_BITS:
            yield name, self.quantized(name)
        yield "bertcl, i8 per column", self.written("i8 per column")

    def test_weights_and_scales_are_those_of_quantize_dynamic(self):
        path = self.folder / "matmul.onnx"
        for name, theirs in (*EIGHT_BITS.items(), ("7 bits", dict(reduce_range=True))):
            quantize_dynamic(self.folder / "folded.onnx", path, op_types_to_quantize=["MatMul"],
                             **theirs)
            expected, found = matmuls(path), matmuls(self.written(name))
            self.assertEqual(expected.keys(), found.keys())
            self.assertEqual(len(found), 37)
            for node, (weight, scale, zero_point, reader) in expected.items():
                ours = found[node]
                np.testing.assert_array_equal(weight, ours[0], f"{name} {node}")
                np.testing.assert_array_equal(scale, ours[1], f"{name} {node}")
                np.testing.assert_array_equal(zero_point, ours[2], f"{name} {node}")
                self.assertEqual(reader, ours[3])
                self.assertEqual(weight.dtype, ours[0].dtype)
            reports = inspect(path), inspect(self.written(name))
            self.assertEqual(*(report["launches"] for report in reports))

    def test_bytes_of_the_first_layer(self):
        """Up to the second layer both do the same to the byte. (Later a value next to a rounding tie
        goes either way, and what follows is no longer the same to the last digit in any two
        implementations.)"""
        for name, model in self.files():
            part = self.folder / "part.onnx"
            with_inner_outputs(model, part, 4)
            session, reference, equal = Session(part), Reference(part), []
            for inputs, _ in questions.batches(self.examples[::3], 1):
                expected, found = reference.run(inputs), session.run(inputs)
                self.assertEqual(expected.keys(), found.keys())
                for key, values in expected.items():
                    equal.append(np.mean(values == found[key]))
            self.assertGreater(np.mean(equal), 0.9999, f"{name}: {equal}")

    def distance(self, reference, model, size, *options):
        """RMS difference of the logits relative to their range, and by how much bertcl's worst answer
        falls short of the best one in the reference's logits.

        Where rounding ties fall the other way, logits move by the noise of quantization, and of two
        answers that are about as good either may win: ONNX Runtime's own optimizations do the same."""
        reference, noise, span, short = Reference(reference), [], [], []
        run = functools.partial(bertcl_run, model) if options else Session(model).run
        for inputs, part in questions.batches(self.examples, size):
            expected, found = reference.run(inputs), run(inputs, *options)
            best, chosen = (questions.scores(expected, part, questions.answers(outputs, part))
                            for outputs in (expected, found))
            short.append(np.max(best - chosen))
            real = inputs["attention_mask"].astype(bool)
            for key, values in expected.items():
                noise.append((values - found[key])[real])
                span.append(np.ptp(values[real]))
        return np.sqrt(np.mean(np.concatenate(noise) ** 2)) / np.mean(span), np.max(short)

    def test_answers(self):
        """Without padding both see the same rows; each question is a batch of its own. With padding
        the rows that ONNX Runtime measures are those that --keep-padding computes."""
        for name, model in self.files():
            report = inspect(model, "--require", "int8")
            linears = [op for op in report["ops"] if op["op"] == "linear_q" and
                        op["variant"] != "rows"]
            self.assertEqual(len(linears), 25, name)  # 4 a layer (q, k, v are one), and the head
            for size, options in (1, []), (QUESTIONS, ["--keep-padding"]):
                noise, short = self.distance(model, model, size, *options)
                self.assertLess(noise, 0.013, name)
                self.assertLess(short, 0.5, name)

    def test_the_distance_tells_models_apart(self):
        noise, short = self.distance(self.quantized("i8"), MODEL, 1)
        self.assertGreater(noise, 0.02)
        self.assertGreater(short, 1.0)

    def test_a_scale_for_each_token(self):
        """One launch quantizes the rows of each linear's input. The scale of a token depends on
        nothing else in its batch: padding changes nothing."""
        model = self.written("per token")
        report = inspect(model, "--require", "int8")
        for op in "linear_q", "quantize_rows":
            self.assertEqual(sum(o["op"] == op for o in report["ops"]), 25, op)
        self.assertEqual(report["notes"], [])
        reference, optimized = Reference(model), Reference(model, optimized=True)
        same, peer = [], []
        for inputs, part in questions.batches(self.examples, QUESTIONS):
            expected = questions.answers(reference.run(inputs), part)
            same += [a == b for a, b in
                     zip(expected, questions.answers(bertcl_run(model, inputs), part))]
            peer += [a == b for a, b in
                     zip(expected, questions.answers(optimized.run(inputs), part))]
        self.assertGreaterEqual(np.mean(same), 0.9)
        self.assertGreaterEqual(np.mean(peer), 0.9)


class FusedAttention(unittest.TestCase):
    """Attention in one operator, which the quantizer expands: its file and the float one, in ONNX Runtime."""

    def test_masks(self):
        random, batch, rows, hidden, heads = np.random.default_rng(2), 3, 7, 24, 4
        starts = random.integers(0, 3, batch)
        ends = starts + random.integers(1, 5, batch)
        masks = {"none": None, "ends": ends, "ends and starts": np.concatenate([ends, starts]),
                 "keys": random.integers(0, 2, (batch, rows)),
                 "rows and keys": random.integers(0, 2, (batch, rows, rows))}
        x = random.normal(size=(batch, rows, hidden)).astype(np.float32)
        weight = random.normal(size=(hidden, 3 * hidden)).astype(np.float32) / 4
        bias = random.normal(size=3 * hidden).astype(np.float32)
        for name, mask in masks.items():
            for causal in 0, 1:
                with self.subTest(mask=name, causal=causal), tempfile.TemporaryDirectory() as folder:
                    inputs = {"x": x} if mask is None else {"x": x, "mask": mask.astype(np.int32)}
                    node = helper.make_node("Attention", ["x", "w", "b", "" if mask is None else "mask"], ["y"],
                                            domain="com.microsoft", num_heads=heads, unidirectional=causal)
                    source, made = (pathlib.Path(folder) / n for n in ("source.onnx", "int8.onnx"))
                    onnx.save(model_of([node], inputs, ["y"], {"w": weight, "b": bias}), source)
                    bertcl("quantize", source, "-o", made, "--dynamic", "--per-token", "--model-only")
                    ops = [n.op_type for n in onnx.load(made).graph.node]
                    self.assertEqual(ops.count("MatMulInteger"), 3)
                    self.assertNotIn("Attention", ops)
                    expected = Reference(source).run(inputs)["y"]
                    self.assertLess(np.abs(Session(source).run(inputs)["y"] - expected).max(), 1e-4)
                    for found in Reference(made).run(inputs)["y"], Session(made).run(inputs)["y"]:
                        error = np.abs(found - expected).max() / np.abs(expected).max()
                        self.assertLess(error, 0.02)
