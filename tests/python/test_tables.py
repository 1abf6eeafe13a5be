# SPDX-License-Identifier: Apache-2.0
"""Scale tables between bertcl and ONNX Runtime's quantizer: from the same table both make the same
Q/DQ model; each reads the files of the other."""
import contextlib
import json
import logging
import unittest

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper
from onnxruntime.quantization import (CalibrationDataReader, CalibrationMethod, QuantType,
                                      quantize_static)
from onnxruntime.quantization.calibrate import TensorData, load_tensors_data
from onnxruntime.quantization.CalTableFlatBuffers.TrtTable import TrtTable
from onnxruntime.quantization.quant_utils import write_calibration_table
from qdq import Quantization, differences, folded
from support import ROOT, SHARED, bertcl, model_of, scratch, shallow_model

DEFAULT_MODEL = ROOT / "models" / "minilm-l6-squad" / "model.onnx"
INTEROP = SHARED / "interop" / "A_whole_model"
INTEROP_MODELS = [
    INTEROP / "onnxruntime-qnn" / "bert_toy_optimized.onnx",
    INTEROP / "onnxruntime-qnn" / "transform__computation_reduction__gathernd__e2e.onnx",
    INTEROP / "vespa" / "llm__random_encoder.onnx",
]
MIN_MAX, PERCENTILE, ENTROPY = (CalibrationMethod.MinMax, CalibrationMethod.Percentile,
                                CalibrationMethod.Entropy)


def types(activations, weights, per_channel, reduce_range=False):
    kinds = {"s8": QuantType.QInt8, "u8": QuantType.QUInt8}
    return {"activation_type": kinds[activations], "weight_type": kinds[weights],
            "per_channel": per_channel, "reduce_range": reduce_range}


INPUTS = {"OpTypesToExcludeOutputQuantization": ["MatMul"]}
# By name: method and arguments of quantize_static, its extra options, options of bertcl.
SETTINGS = {
    "onnxruntime's defaults": (
        MIN_MAX, types("s8", "s8", False), {},
        ["--activations", "s8-asymmetric", "--per-tensor", "--outputs", "MatMul"]),
    "u8, per channel": (MIN_MAX, types("u8", "s8", True), INPUTS, []),
    "u8, per tensor": (PERCENTILE, types("u8", "s8", False), INPUTS, ["--per-tensor"]),
    "u8 weights": (MIN_MAX, types("u8", "u8", False), INPUTS, ["--per-tensor", "--weights", "u8"]),
    "symmetric": (
        ENTROPY, types("s8", "s8", True), {**INPUTS, "ActivationSymmetric": True},
        ["--activations", "s8"]),
    "symmetric u8, outputs": (
        PERCENTILE, types("u8", "s8", True), {"ActivationSymmetric": True},
        ["--activations", "u8-symmetric", "--outputs", "MatMul"]),
    "reduced range": (
        MIN_MAX, types("u8", "s8", True, reduce_range=True), INPUTS, ["--reduce-range"]),
    "reduced range, per tensor": (
        MIN_MAX, types("u8", "u8", False, reduce_range=True), INPUTS,
        ["--per-tensor", "--weights", "u8", "--reduce-range"]),
    "smallest range": (
        MIN_MAX, types("u8", "s8", True), {**INPUTS, "MinimumRealRange": 2.5},
        ["--minimum-range", "2.5"]),
    "for TensorRT": (
        PERCENTILE, types("s8", "s8", True),
        {**INPUTS, "ActivationSymmetric": True, "AddQDQPairToWeight": True,
         "DedicatedQDQPair": True},
        ["--activations", "s8", "--weights-qdq", "--dedicated-pairs"]),
}


def setUpModule():
    logging.disable(logging.WARNING)  # ONNX Runtime's advice on pre-processing


def tearDownModule():
    logging.disable(logging.NOTSET)


class Inputs(CalibrationDataReader):
    """A few random batches of one sequence each, for whatever inputs the model has."""

    def __init__(self, model, count=3):
        graph = onnx.load(model, load_external_data=False).graph
        constants = {t.name for t in graph.initializer}
        self._inputs = [i for i in graph.input if i.name not in constants]
        self._count, self._random = count, np.random.default_rng(3)

    def get_next(self):
        if self._count == 0:
            return None
        self._count -= 1
        return {i.name: self._values(i) for i in self._inputs}

    def _values(self, value):
        kind = value.type.tensor_type
        sizes = 1, 7, 1  # batch, sequence, and the rank of indices
        shape = [d.dim_value or sizes[axis] for axis, d in enumerate(kind.shape.dim)]
        if kind.elem_type == TensorProto.FLOAT:
            return self._random.normal(size=shape).astype(np.float32)
        largest = 1 if "type" in value.name else 6
        values = np.ones(shape) if "mask" in value.name else self._random.integers(0, largest + 1, shape)
        return values.astype(onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type))


def of_few_words(path):
    """Leaves the model as many words as Inputs has: half of the file are words that no test looks up."""
    model = onnx.load(path)
    words = next(t for t in model.graph.initializer if t.name == "m.bert.embeddings.word_embeddings.weight_half")
    words.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(words)[:7], words.name))
    onnx.save(model, path)
    return path


class SameModel(unittest.TestCase):
    """quantize_static of ONNX Runtime and `bertcl quantize --read-table` with its calibration."""

    @classmethod
    def setUpClass(cls):
        cls.default_model = of_few_words(shallow_model(cls))  # its layers are alike

    def setUp(self):
        self.folder = scratch(self)

    def check(self, model, method, settings, extra, options):
        table, peer, mine = (self.folder / name for name in ("t.json", "peer.onnx", "mine.onnx"))
        source = self.folder / f"folded-{model.name}"
        if not source.exists():
            onnx.save(folded(model), source)
        table.unlink(missing_ok=True)
        with contextlib.redirect_stdout(None):  # the calibrator tells its steps
            quantize_static(source, peer, Inputs(source), op_types_to_quantize=["MatMul"],
                            calibrate_method=method, calibration_cache_path=table,
                            extra_options=extra, **settings)
        bertcl("quantize", model, "-o", mine, "--force", "--read-table", table, "--all-readers",
               *options)
        expected, found = Quantization(peer), Quantization(mine)
        self.assertTrue(any(read.constant is not None for read in found.reads.values()))
        self.assertGreaterEqual(len(found.reads), 4)
        self.assertEqual(differences(expected, found), [])

    def check_settings(self, model):
        for name, settings in SETTINGS.items():
            with self.subTest(model=model.name, settings=name):
                self.check(model, *settings)

    def test_default_model(self):
        self.check_settings(self.default_model)

    def test_overrides(self):
        """Of weights and activations, by JSON here and by a dictionary there."""
        graph = folded(self.default_model).graph
        constants = {t.name: t.dims for t in graph.initializer}
        matmuls = [n.input for n in graph.node if n.op_type == "MatMul" and n.input[1] in constants]
        weights = [weight for _, weight in matmuls]
        inputs = list(dict.fromkeys(x for x, _ in matmuls))
        columns = constants[weights[6]][1]
        overrides = {
            weights[0]: [{"axis": 1, "reduce_range": True}],
            weights[1]: [{"symmetric": False}],
            weights[2]: [{"quant_type": "QUInt8"}],
            weights[3]: [{"axis": 1, "quant_type": "QUInt8"}],
            weights[4]: [{"scale": 0.01, "zero_point": -3}],
            weights[5]: [{"axis": -1, "rmin": -0.5, "rmax": 0.25}] +
                        [{"rmin": -0.25, "rmax": 0.5}] * (constants[weights[5]][1] - 1),
            weights[6]: [{"axis": 1, "scale": 0.001 * (i + 1), "zero_point": 0}
                         for i in range(columns)],
            weights[7]: [{"rmax": 3.0}],
            inputs[0]: [{"rmin": -3.0, "rmax": 4.0}],
            inputs[1]: [{"quant_type": "QInt8", "symmetric": True}],
            inputs[2]: [{"scale": 0.05, "zero_point": 100}],
            inputs[3]: [{"symmetric": True, "rmax": 9.0}]}
        path = self.folder / "overrides.json"
        path.write_text(json.dumps(overrides))
        numbers = {"scale": np.float32, "rmin": np.float32, "rmax": np.float32,
                   "zero_point": np.int8}

        def native(key, value):
            if key == "quant_type":
                return QuantType[value]
            return np.array(value, numbers[key]) if key in numbers else value

        theirs = {name: [{k: native(k, v) for k, v in entry.items()} for entry in entries]
                  for name, entries in overrides.items()}
        self.check(self.default_model, MIN_MAX, types("u8", "s8", True),
                   {**INPUTS, "TensorQuantOverrides": theirs}, ["--overrides", path])

    @unittest.skipUnless(INTEROP.exists(), f"{INTEROP} is not there")
    def test_models_of_others(self):
        for model in INTEROP_MODELS:
            self.check_settings(model)


class Files(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch(cls)
        cls.model = cls.folder / "mine.onnx"
        cls.table = cls.folder / "mine.json"
        cls.report = cls.folder / "report.json"
        bertcl("quantize", DEFAULT_MODEL, "-o", cls.model, "--data", ROOT / "data" / "calibration.json",
               "--samples", 4, "--weight-rounding", "nearest", "--all-readers",
               "--write-table", cls.table, "--table-format", "onnxruntime", "--json", cls.report)
        cls.ranges = {t["tensor"]: (t["low"], t["high"])
                      for t in json.loads(cls.report.read_text())["tensors"]
                      if t["role"] == "activation"}

    def convert(self, table, format_name):
        made = self.folder / f"made.{format_name}"
        bertcl("quantize", DEFAULT_MODEL, "-o", self.folder / "x.onnx", "--force", "--read-table", table,
               "--write-table", made, "--table-format", format_name)
        return made

    def test_onnx_runtime_quantizes_by_our_json(self):
        table = load_tensors_data(self.table)
        self.assertEqual(table.keys(), self.ranges.keys())
        for tensor, data in table.items():
            self.assertEqual((data.lowest, data.highest), self.ranges[tensor])
        source = self.folder / "folded.onnx"
        onnx.save(folded(DEFAULT_MODEL), source)
        peer = self.folder / "peer.onnx"
        quantize_static(source, peer, None, op_types_to_quantize=["MatMul"],
                        calibration_cache_path=self.table, extra_options=INPUTS,
                        **types("u8", "s8", True))
        self.assertEqual(differences(Quantization(peer), Quantization(self.model)), [])

    def test_we_read_the_three_files_of_onnx_runtime(self):
        """Of ranges whose larger end is the upper one: of the others it stores the wrong end."""
        # As float32 holds them: the report has the shortest text of a double.
        upper = {t: (np.float32(min(low, 0)), np.float32(max(high, -low)))
                 for t, (low, high) in self.ranges.items()}
        data = {t: TensorData(lowest=low, highest=high) for t, (low, high) in upper.items()}
        write_calibration_table(data, str(self.folder))
        for name in "calibration.json", "calibration.cache", "calibration.flatbuffers":
            with self.subTest(name):
                made = load_tensors_data(self.convert(self.folder / name, "onnxruntime"))
                for tensor, (low, high) in upper.items():
                    expected = (low if name.endswith("json") else -high, high)
                    self.assertEqual((made[tensor].lowest, made[tensor].highest), expected, tensor)

    def test_our_magnitudes_are_read_by_others(self):
        largest = {t: float(np.float32(max(-low, high))) for t, (low, high) in self.ranges.items()}
        text = self.convert(self.table, "cache").read_text()
        self.assertEqual(text, "".join(f"{t} {largest[t]}\n" for t in sorted(largest)))
        table = TrtTable.GetRootAs(self.convert(self.table, "flatbuffers").read_bytes())
        entries = [table.Dict(i) for i in range(table.DictLength())]
        self.assertEqual({e.Key().decode(): e.Value().decode() for e in entries},
                         {t: str(value) for t, value in largest.items()})


class Comparison(unittest.TestCase):
    """What the comparison rests on finds differences of one bit."""

    def test_one_step_of_one_weight(self):
        folder = scratch(self)
        table = folder / "t.json"
        table.write_text(json.dumps({"x": [-1, 1]}))
        weight = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
        onnx.save(model_of([onnx.helper.make_node("MatMul", ["x", "w"], ["y"], name="matmul")],
                           {"x": (np.float32, ["n", 4])}, {"y": ["n", 3]}, {"w": weight}, opset=13), folder / "m.onnx")
        bertcl("quantize", folder / "m.onnx", "-o", folder / "q.onnx", "--read-table", table)
        expected = Quantization(folder / "q.onnx")
        self.assertEqual(differences(expected, expected), [])
        for name, change in ("w_quantized", np.int8(1)), ("x_scale", np.float32(1e-9)), ("x_zero_point", np.uint8(1)):
            damaged = onnx.load(folder / "q.onnx")
            tensor = next(t for t in damaged.graph.initializer if t.name == name)
            value = numpy_helper.to_array(tensor).copy()
            value.reshape(-1)[0] += change
            tensor.CopyFrom(numpy_helper.from_array(value, name))
            onnx.save(damaged, folder / "d.onnx")
            self.assertEqual(len(differences(expected, Quantization(folder / "d.onnx"))), 1, name)
