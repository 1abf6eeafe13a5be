# SPDX-License-Identifier: Apache-2.0
"""Every spelling of a small BERT, in fp32 and quantized by ONNX Runtime, against ONNX Runtime."""
import collections
import re
import unittest
from pathlib import Path

import numpy as np
import onnx
from c_session import Session
from onnx import numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
from support import Batches, Reference, bertcl, bertcl_run, inspect, scratch, silence, worst

import make_bert

U8, S8 = QuantType.QUInt8, QuantType.QInt8
LENGTHS = (33, 1, 20)
SPELLINGS = [
    dict(opset=11, gelu="tanh", mask="-10000", shapes="constant"),
    dict(opset=11, mask_name="input_mask", types_name="segment_ids", integers="int32",
         outputs="output_start_logits"),
    dict(opset=12, mask="where"),
    dict(opset=13, mask="where-add", scale="operands"),
    dict(opset=17, layer_norm="whole"),
    dict(opset=18, mask="where", integers="int32"),
    dict(opset=20, layer_norm="whole", gelu="whole", scale="operands", shapes="constant"),
    dict(opset=23, gelu="tanh"),
]
# Launches of two fused layers between the embeddings and the head
FUSED = {"embed_norm": 1, "linear": 9, "attention": 2, "add_norm": 4, "unpack": 1}
FUSED_INT8 = {"embed_norm": 1, "linear_q": 9, "attention_q": 2, "add_norm": 4, "unpack": 1}


def batch(spec, lengths, seed=0):
    """A padded batch; token types change in the middle."""
    random = np.random.default_rng(seed)
    shape = len(lengths), max(lengths)
    column = np.arange(shape[1])[None]
    mask = column < np.array(lengths)[:, None]
    arrays = {"input_ids": random.integers(0, spec.vocabulary, shape),
              spec.mask_name: mask,
              spec.types_name: (column >= np.array(lengths)[:, None] // 2) & mask}
    return {name: array.astype(spec.integers) for name, array in arrays.items()}


def passes():
    """Names of the compiler's passes, a file each; without the one that cannot be left out."""
    sources = (Path(__file__).parents[2] / "engine/passes").glob("*/*.cpp")
    names = sorted(name for source in sources for name in re.findall(r"^Pass (\w+)\(", source.read_text(), re.M))
    assert "find_attention" in names
    return [name for name in names if name != "resolve_shapes"]


def operators(report):
    return dict(collections.Counter(op["op"] for op in report["ops"]))


class Spellings(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)

    def write(self, spec, name="model.onnx"):
        path = self.folder / name
        make_bert.save(make_bert.build(spec), path)
        return path

    def check(self, path, spec, bound, lengths=LENGTHS, *options):
        """Logits within `bound` of their range."""
        inputs = batch(spec, lengths)
        found = bertcl_run(path, inputs, *options) if options else Session(path).run(inputs)
        self.compare(Reference(path), found, inputs, spec, bound, f"{path.name} {options}")

    def check_lengths(self, path, spec, bound, *all_lengths):
        """The same of several batches, one after the other."""
        session, reference = Session(path), Reference(path)
        for lengths in all_lengths:
            with self.subTest(lengths=lengths):
                inputs = batch(spec, lengths)
                self.compare(reference, session.run(inputs), inputs, spec, bound, path.name)

    def compare(self, reference, found, inputs, spec, bound, told):
        difference, extent = worst(reference.run(inputs), found, inputs[spec.mask_name])
        self.assertGreater(extent, 1)
        self.assertLess(difference, bound * extent, f"{told}, range {extent}")

    def test_fp32(self):
        for spelling in SPELLINGS:
            with self.subTest(**spelling):
                spec = make_bert.Spec.of_size("tiny", **spelling)
                path = self.write(spec)
                self.check(path, spec, 1e-5)
                self.assertEqual(operators(inspect(path)), FUSED)

    def test_lengths(self):
        spec = make_bert.Spec.of_size("tiny")
        path = self.write(spec)
        self.check_lengths(path, spec, 1e-5, (1,), (7,), (64,), (512,), (1, 1, 1), (17, 64, 2, 33, 8))

    def test_without_any_one_pass(self):
        spec = make_bert.Spec.of_size("tiny", opset=13, gelu="tanh", mask="-10000")
        path = self.write(spec)
        for name in passes():
            with self.subTest(name):
                self.check(path, spec, 1e-5, LENGTHS, "--disable-passes", name)

    def test_every_length(self):
        spec = make_bert.Spec.of_size("tiny")
        path = self.write(spec)
        self.check_lengths(path, spec, 1e-5, *(tuple(range(first, min(first + 32, spec.positions + 1)))
                                               for first in range(1, spec.positions + 1, 32)))
        with self.assertRaisesRegex(AssertionError, "513 tokens.*position table ends at 512"):
            bertcl_run(path, batch(spec, (513,)))

    def test_segments_by_one_hot_rows(self):
        """As TensorFlow's BERT embeds them."""
        spec = make_bert.Spec()
        model = make_bert.build(spec)
        graph, table = model.graph, "bert.embeddings.token_type_embeddings.weight"
        at, gather = next((at, n) for at, n in enumerate(graph.node) if n.input[0] == table)
        rows = [onnx.helper.make_node("OneHot", [spec.types_name, "depth", "off_on"], ["rows"], axis=-1),
                onnx.helper.make_node("MatMul", ["rows", table], gather.output)]
        graph.node.remove(gather)
        for node in reversed(rows):
            graph.node.insert(at, node)
        graph.initializer.extend([numpy_helper.from_array(np.int64([2]), "depth"),
                                  numpy_helper.from_array(np.float32([0, 1]), "off_on")])
        path, texts, words = self.folder / "model.onnx", self.folder / "texts.txt", self.folder / "vocab.txt"
        onnx.save(model, path)
        words.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]",
                                    *(f"w{i}" for i in range(spec.vocabulary - 5))]))
        texts.write_text("w1 w2 w3 w7\nw30 w3\n")
        made, calibration = self.folder / "made.onnx", ["--task", "text", "--data", texts, "--vocab", words]
        for options in [*calibration, "--smooth", "off"], ["--dynamic", "--per-token"]:
            bertcl("quantize", path, "-o", made, "--model-only", "--force", *options)
            self.check(made, spec, 0.01)
        silence(self)  # advice on pre-processing
        quantize_dynamic(path, made, weight_type=S8)
        self.assertTrue(any("rows_quantized" in node.input for node in onnx.load(made).graph.node))
        self.check(made, spec, 0.01, (33,))  # padding would be a part of its scales for ONNX Runtime alone

    def test_other_weights_are_noticed(self):
        spec = make_bert.Spec.of_size("tiny")
        path, other = self.write(spec), self.write(make_bert.Spec.of_size("tiny", seed=1), "other.onnx")
        inputs = batch(spec, LENGTHS)
        difference, extent = worst(Reference(path).run(inputs), Session(other).run(inputs),
                                   inputs[spec.mask_name])
        self.assertGreater(difference, 0.1 * extent)


def samples(spec):
    """For calibration."""
    return Batches(batch(spec, (24,), seed) for seed in range(1, 9))


def pairs_of(graph):
    return [node for node in graph.node if node.op_type in ("QuantizeLinear", "DequantizeLinear")]


def constants_of(graph):
    return {t.name: numpy_helper.to_array(t) for t in graph.initializer}


def zero_points_left_out(graph):
    constants = constants_of(graph)
    for node in pairs_of(graph):
        zero = constants[node.input[2]]
        if not zero.any() and (node.op_type == "DequantizeLinear" or zero.dtype == np.uint8):
            del node.input[2]


def zero_points_by(graph, made):
    """`made`: the nodes that give the array `value` under `name`."""
    constants = constants_of(graph)
    nodes = []
    for name in sorted({node.input[2] for node in pairs_of(graph)}):
        nodes += made(name + ".made", constants[name])
    for node in pairs_of(graph):
        node.input[2] += ".made"
    for node in reversed(nodes):
        graph.node.insert(0, node)


def zero_points_by_constant(graph):
    zero_points_by(graph, lambda name, value: [
        onnx.helper.make_node("Constant", [], [name], value=numpy_helper.from_array(value))])


def zero_points_by_cast(graph):
    zero_points_by(graph, lambda name, value: [
        onnx.helper.make_node("Constant", [], [name + ".wide"],
                              value=numpy_helper.from_array(value.astype(np.float32))),
        onnx.helper.make_node("Cast", [name + ".wide"], [name],
                              to=onnx.helper.np_dtype_to_tensor_dtype(value.dtype))])


def domain_of_microsoft(graph):
    for node in pairs_of(graph):
        node.domain = "com.microsoft"


def integer_biases(graph):
    """Biases as int32 under DequantizeLinear without a zero point."""
    constants = constants_of(graph)
    matmuls = {node.output[0] for node in graph.node if node.op_type == "MatMul"}
    scale = np.float32(1e-5)
    graph.initializer.append(numpy_helper.from_array(scale, "bias_scale"))
    for node in [n for n in graph.node if n.op_type == "Add"]:
        sides = [name for name in node.input if name in constants and constants[name].ndim == 1]
        if not sides or not matmuls & set(node.input):
            continue
        name = sides[0]
        values = np.rint(constants[name] / scale).astype(np.int32)
        graph.initializer.append(numpy_helper.from_array(values, name + ".i32"))
        graph.node.insert(0, onnx.helper.make_node("DequantizeLinear", [name + ".i32", "bias_scale"],
                                                   [name + ".real"]))
        node.input[list(node.input).index(name)] = name + ".real"
    assert any(node.input[0].endswith(".i32") for node in graph.node), "no bias was rewritten"


def inputs_only(*kinds, **options):
    """Settings that quantize the inputs of these operators, not their outputs."""
    return dict(op_types_to_quantize=list(kinds),
                extra_options=dict(OpTypesToExcludeOutputQuantization=list(kinds), **options))


class Quantized(Spellings):
    """The Q/DQ forms that onnxruntime.quantization writes."""

    test_fp32 = test_lengths = test_every_length = test_other_weights_are_noticed = None
    MODERN = dict(opset=17, layer_norm="whole", mask="where")
    OLD = dict(opset=13, gelu="tanh", mask="-10000")

    @classmethod
    def setUpClass(cls):
        silence(cls)

    def quantize(self, spelling, excluded=None, **settings):
        spec = make_bert.Spec.of_size("tiny", **spelling)
        source, path = self.write(spec), self.folder / "quantized.onnx"
        settings = {"per_channel": True, "activation_type": U8, "weight_type": S8, **settings}
        if excluded:
            settings["nodes_to_exclude"] = excluded(make_bert.build(spec).graph)
        settings.setdefault("quant_format", QuantFormat.QDQ)
        quantize_static(source, path, samples(spec), **settings)
        return path, spec

    # A value next to a rounding tie may take the other step, and later ones with it.
    STEPS = 0.02

    def test_matmuls(self):
        for name, settings in {
                "u8": inputs_only("MatMul"),
                "u8, per tensor": dict(per_channel=False, **inputs_only("MatMul")),
                "s8 asymmetric": dict(activation_type=S8, **inputs_only("MatMul")),
                "s8 symmetric": dict(activation_type=S8,
                                     **inputs_only("MatMul", ActivationSymmetric=True)),
                "float weights after Q": inputs_only("MatMul", AddQDQPairToWeight=True),
                "own pairs": inputs_only("MatMul", DedicatedQDQPair=True),
                "u8 weights": dict(weight_type=U8, per_channel=False,
                                   **inputs_only("MatMul", WeightSymmetric=True)),
        }.items():
            for spelling in (self.MODERN, self.OLD):
                with self.subTest(name, **spelling):
                    path, spec = self.quantize(spelling, **settings)
                    self.check(path, spec, self.STEPS)
                    report = inspect(path, "--require", "int8")
                    self.assertEqual(operators(report), FUSED_INT8)
                    self.assertEqual(report["notes"], [])

    def rewritten(self, rewrite, **settings):
        """A quantized file whose graph `rewrite` has changed."""
        path, spec = self.quantize(self.MODERN, **{**inputs_only("MatMul"), **settings})
        model = onnx.load(path)
        rewrite(model.graph)
        model.opset_import.append(onnx.helper.make_opsetid("com.microsoft", 1))
        onnx.save(model, path)
        return path, spec

    def test_pairs_in_other_words(self):
        for rewrite in (zero_points_left_out, zero_points_by_constant, zero_points_by_cast, domain_of_microsoft,
                        integer_biases):
            with self.subTest(rewrite.__name__):
                path, spec = self.rewritten(rewrite)
                self.check(path, spec, self.STEPS)
                self.assertEqual(operators(inspect(path, "--require", "int8")), FUSED_INT8)

    def test_sixteen_bits_are_refused_by_name(self):
        for kind, name in ((QuantType.QUInt16, "u16"), (QuantType.QInt16, "i16")):
            path, _ = self.quantize(self.MODERN, activation_type=kind, **inputs_only("MatMul"))
            told = bertcl("inspect", path, expect=2).stderr
            self.assertRegex(told, f"QuantizeLinear '.*': no kernels for element type {name}")

    def test_without_any_one_pass(self):
        path, spec = self.quantize(self.MODERN, **inputs_only("MatMul"))
        for name in passes():
            with self.subTest(name):
                self.check(path, spec, self.STEPS, LENGTHS, "--disable-passes", name)

    def test_matmuls_and_residual_sums(self):
        def other_sums(graph):
            readers = collections.defaultdict(list)
            for node in graph.node:
                for name in node.input:
                    readers[name].append(node.op_type)
            return [node.name for node in graph.node
                    if node.op_type == "Add" and "LayerNormalization" not in readers[node.output[0]]
                    or "embeddings" in node.name]
        path, spec = self.quantize(
            self.MODERN, other_sums, activation_type=S8,
            **inputs_only("MatMul", "Add", ActivationSymmetric=True, AddQDQPairToWeight=True,
                          DedicatedQDQPair=True))
        self.check(path, spec, self.STEPS)
        self.assertEqual(operators(inspect(path, "--require", "int8")), FUSED_INT8)

    def test_quantized_outputs_too(self):
        """The quantizer's defaults: results of operators are quantized as well."""
        for name, settings in {"matmuls": dict(op_types_to_quantize=["MatMul"]),
                               "matmuls and sums": dict(op_types_to_quantize=["MatMul", "Add"]),
                               "everything": {}}.items():
            for spelling in (self.MODERN, self.OLD):
                with self.subTest(name, **spelling):
                    path, spec = self.quantize(spelling, **settings)
                    self.check(path, spec, self.STEPS)
                    report = inspect(path)
                    counts = operators(report)
                    self.assertEqual(counts["linear_q"], 13)
                    self.assertNotIn("linear", counts)
                    # Attention whose scores are quantized runs in integers; where the masked scores are
                    # quantized too its MatMuls run in float, and are named.
                    if counts.get("attention_q") != 2:
                        self.assertNotEqual(name, "matmuls")
                        self.assertTrue(any("attention" in note for note in report["notes"]))

    def test_qlinear_operators(self):
        """Every result is rounded to 8 bits, and a rounding tie that falls the other way shows in all after
        it: the mean counts."""
        for kinds in ["MatMul"], ["MatMul", "Add"]:
            for spelling in (self.MODERN, self.OLD):
                with self.subTest(kinds=kinds, **spelling):
                    path, spec = self.quantize(spelling, quant_format=QuantFormat.QOperator,
                                               op_types_to_quantize=kinds)
                    self.assertLessEqual({"QLinear" + kind for kind in kinds},
                                         {node.op_type for node in onnx.load(path).graph.node})
                    inputs = batch(spec, LENGTHS)
                    mask = inputs[spec.mask_name].astype(bool)
                    found, expected = Session(path).run(inputs), Reference(path).run(inputs)
                    for name, values in expected.items():
                        difference = (values - found[name])[mask]
                        self.assertLess(np.sqrt(np.mean(difference ** 2)), 0.01 * np.ptp(values[mask]), name)
                    counts = operators(inspect(path))
                    self.assertEqual(counts["linear_q"], 13)
                    self.assertNotIn("linear", counts)

    def test_weights_with_zero_points(self):
        path, spec = self.quantize(self.MODERN, weight_type=U8, per_channel=False,
                                   **inputs_only("MatMul", WeightSymmetric=False))
        self.check(path, spec, self.STEPS)
        report = inspect(path, "--require", "int8")
        linears = [op for op in report["ops"] if op["op"] == "linear_q" and
                    op["variant"] != "rows"]  # sums of rows for the zero points
        self.assertEqual(len(linears), 9)
