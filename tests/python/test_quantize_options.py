# SPDX-License-Identifier: Apache-2.0
"""Files that `bertcl quantize` writes by its presets and by random options, run by ONNX Runtime."""
import random
import shutil
import unittest

import numpy as np
import onnx
from c_session import Session
from onnx import helper
from support import ROOT, Reference, bertcl, inspect, model_of, scratch, worst

import make_bert

PRESETS = ("default", "accurate", "fast", "ort-tensorrt", "ort-migraphx", "qdqbert", "migraphx-native", "qordered")
CHOICES = [
    ("--op-types MatMul", "--op-types MatMul,Add", "--op-types MatMul,Add,Softmax,Gelu"),
    ("", "--adds encoder", "--adds all"),
    ("", "--no-head"),
    ("", "", "--outputs MatMul"),
    ("", "", "--places linear,gelu", "--places scores,sum", "--places context,layer-norm"),
    ("", "", "--exclude *query*", "--exclude *attention/MatMul_1", "--disable-layer-module attention.value",
     "--disable-keyword query._weight"),
    ("--method minmax", "--method percentile"),
    ("", "--fuse-qkv"),
    ("", "--clip-gelu 2"),
    ("--weights i8", "--weights s8 --per-tensor", "--weights s8 --per-channel --axis MatMul=0",
     "--weights u8-symmetric --activations u8", "--weights u8 --per-tensor --activations u8"),
    ("", "", "--reduce-range", "--weight-bits 5", "--full-range"),
    ("--weights-qdq", "--weights-int8", "--weights-int8 --weight-scale mse"),
    ("--weights-plain", "--weights-transposed"),
    ("--shared-pairs", "--dedicated-pairs"),
    ("", "--all-readers"),
]
ACTIVATIONS = ("u8", "i8", "u8-symmetric", "s8-asymmetric")


class QuantizeOptions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch(cls)
        cls.model = cls.folder / "model.onnx"
        spec = make_bert.Spec.of_size("tiny", layer_norm="whole", vocabulary=30522)
        make_bert.save(make_bert.build(spec), cls.model)
        shutil.copy(ROOT / "models/minilm-l6-squad/vocab.txt", cls.folder)
        column = np.arange(24)[None]
        mask = column < np.array((24, 1, 17))[:, None]
        ids = np.random.default_rng(0).integers(0, 30522, mask.shape)
        cls.inputs = {"input_ids": ids, "attention_mask": mask.astype(np.int64),
                      "token_type_ids": ((column > 5) & mask).astype(np.int64)}
        cls.float = Reference(cls.model).run(cls.inputs)

    def check(self, *options):
        path = self.folder / "quantized.onnx"
        bertcl("quantize", self.model, "-o", path, "--force", "--data", ROOT / "data/calibration.json",
               "--samples", 4, "--max-seq-length", 64, *options)
        onnx.checker.check_model(path, full_check=True)
        expected = Reference(path).run(self.inputs)
        mask = self.inputs["attention_mask"]
        difference, extent = worst(expected, Session(path).run(self.inputs), mask)
        # A value next to a rounding tie may take the other step, and later ones with it.
        self.assertLess(difference, 0.04 * extent)
        self.assertGreater(worst(self.float, expected, mask)[0], 0, "was anything quantized?")
        if "MatMul=0" not in options:  # ONNX Runtime's fused MatMuls refuse scales along rows
            Reference(path, optimized=True).run(self.inputs)
        return inspect(path)

    def test_presets(self):
        for preset in PRESETS:
            with self.subTest(preset):
                report = self.check("--preset", preset)
                if preset != "qordered":
                    self.assertEqual(report["notes"], [])

    def test_layers_without_biases_and_weights_of_three_dimensions(self):
        """ONNX Runtime fuses such a MatMul with the quantization after it, and with no vector of zero points."""
        width, inner, random_values = 16, 32, np.random.default_rng(1).standard_normal
        weights = {"table": (30522, width), "gamma": (width,), "beta": (width,), "w1": (width, inner),
                   "w2": (inner, width), "w3": (1, width, 8)}
        nodes = [("Gather", "table input_ids", "x"), ("LayerNormalization", "x gamma beta", "h"),
                 ("MatMul", "h w1", "a"), ("Relu", "a", "r"), ("MatMul", "r w2", "c"), ("Add", "x c", "sum"),
                 ("LayerNormalization", "sum gamma beta", "z"), ("MatMul", "z w3", "y")]
        axes = ["batch", "seq"]
        source, path = self.folder / "no-bias.onnx", self.folder / "no-bias-int8.onnx"
        onnx.save(model_of([helper.make_node(op, operands.split(), [result]) for op, operands, result in nodes],
                           {"input_ids": (np.int64, axes)}, {"y": [*axes, 8]},
                           {name: random_values(shape).astype(np.float32) for name, shape in weights.items()}), source)
        texts = self.folder / "texts.txt"
        texts.write_text("a first text\nand another one\n")
        inputs = {"input_ids": self.inputs["input_ids"]}
        expected, extent = Reference(source).run(inputs)["y"], np.abs(Reference(source).run(inputs)["y"]).max()
        for preset in PRESETS:
            if preset in ("ort-tensorrt", "ort-migraphx"):
                continue  # their QuantizeLinear of weights needs zero points to make s8
            with self.subTest(preset):
                bertcl("quantize", source, "-o", path, "--force", "--task", "text", "--data", texts, "--preset", preset)
                for run in Reference(path, optimized=True).run, Session(path).run:
                    self.assertLess(np.abs(run(inputs)["y"] - expected).max(), 0.3 * extent)

    def test_random_options(self):
        for seed in range(16):
            chance = random.Random(seed)
            words = ["--activations", chance.choice(ACTIVATIONS)]
            for choice in CHOICES:
                words += chance.choice(choice).split()
            with self.subTest(" ".join(words)):
                self.check("--preset", chance.choice(PRESETS), *self.possible(words))

    @staticmethod
    def possible(words):
        """Weights in u8 go with activations in u8 only, and a choice of Adds with Adds."""
        if "--adds" in words and words[words.index("--op-types") + 1] == "MatMul":
            place = words.index("--adds")
            del words[place:place + 2]
        if words.count("--activations") == 2:
            return words[2:]
        return words
