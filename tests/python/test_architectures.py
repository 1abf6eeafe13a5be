# SPDX-License-Identifier: Apache-2.0
"""Encoders of other architectures than BERT, as both exporters of torch write them, against ONNX Runtime: results,
numbers of launches, and MatMuls in int8, with scales of each run and with calibrated ones; and as they are trained."""
import contextlib
import functools
import io
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
from c_session import Session
from support import Reference, bertcl, bertcl_run, inspect, needs, scratch, silence

needs("torch", "transformers", "onnxscript")

import torch
from architecture_models import ARCHITECTURES, FURTHER, Architecture, calibration

import onnx_module
import qat

ABSOLUTE = 5e-5  # of results of LayerNorm
# Gated parts with large values: against float64 ONNX Runtime is off by 1.4e-4, bertcl by 3.2e-5.
BOUNDS = {"jina-v2": 3e-4}
# Launches in fp32, by the classic exporter and by the one that captures the program.
LAUNCHES = {
    "distilbert": (16, 16), "electra": (17, 17), "albert": (17, 17), "roberta": (31, 33), "xlm-roberta": (31, 33),
    "mpnet": (48, 50), "modernbert": (49, 49), "nomic-bert": (36, 36), "gte": (36, 36), "eurobert": (33, 33),
    "jina-v2": (28, 28), "deberta-v2": (54, 52),
}
FURTHER_LAUNCHES = {"qwen3": {False: 44, True: 44}, "gemma3": {True: 51}, "mistral": {False: 36, True: 36}}
NORM_FIRST = "modernbert", "eurobert"
REFUSED = {"deberta": "is data-dependent"}


def in_torch(module, inputs):
    return module({name: torch.from_numpy(array) for name, array in inputs.items()})


@functools.cache
def exported(name, captured):
    """An architecture and its file: an export takes seconds, and several tests need the same one."""
    model = Architecture(name)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "model.onnx"
        model.export(path, captured)
        return model, path.read_bytes()


class Architectures(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        silence(self)

    def export(self, name, captured):
        path = self.folder / "model.onnx"
        model, content = exported(name, captured)
        path.write_bytes(content)
        return model, path

    def check(self, model, path, bound):
        session, reference = Session(path), Reference(path)
        for count, longest in (1, 7), (3, 24):
            inputs = model.batch(count, longest)
            found, expected = session.run(inputs), reference.run(inputs)
            real = inputs.get("attention_mask", np.ones((count, longest))).astype(bool)
            for name in model.outputs:
                rows = real if expected[name].ndim == 3 else ...
                self.assertLess(np.abs(found[name][rows] - expected[name][rows]).max(), bound, name)
        with torch.no_grad():
            trained = in_torch(onnx_module.OnnxModule(path), inputs)
        for name in model.outputs:
            self.assertLess(np.abs(trained[name].numpy() - expected[name]).max(), bound, name)

    def check_training(self, path, inputs, expected, noise):
        """Fake quantizers give what ONNX Runtime gives, and all weights have gradients."""
        module = onnx_module.OnnxModule(path)
        found = in_torch(module, inputs)
        for name, values in expected.items():
            error = found[name].detach().numpy() - values
            self.assertLess(np.sqrt(np.mean(error ** 2)), np.sqrt(np.mean((noise[name] - values) ** 2)), name)
        sum(values.square().sum() for values in found.values()).backward()
        for name in module.weights:
            self.assertTrue(torch.isfinite(module.weight(name).grad).all(), name)

    def check_int8(self, model, path, bound, *options):
        """A dynamic model finds its scales among all rows of a run, where those of padding count for ONNX Runtime alone:
        compared without padding."""
        made = self.folder / "int8.onnx"
        bertcl("quantize", path, *options, "-o", made, "--model-only", "--force")
        ops = [op["op"] for op in inspect(made, "--batch", "2", "--seq", "24")["ops"]]
        self.assertNotIn("linear", ops)
        self.assertGreaterEqual(ops.count("linear_q"), model.linears // 2)  # some are fused
        if "--dynamic" not in options:
            self.assertIn("attention_q", ops)
            self.assertNotIn("attention", ops)
        session, exact, reference = Session(made), Reference(path), Reference(made)
        differences = []
        for seed, length in enumerate((7, 7, 7, 7, 7, 24)):
            inputs = model.batch(1, length, seed)
            found, expected, of_floats = session.run(inputs), reference.run(inputs), exact.run(inputs)
            for name in model.outputs:
                error, noise = found[name] - expected[name], of_floats[name] - expected[name]
                # Next to a rounding tie a run may take the other way: less than int8 itself costs.
                self.assertLess(np.sqrt(np.mean(error ** 2)), np.sqrt(np.mean(noise ** 2)), name)
            differences.append(max(np.abs(found[name] - expected[name]).max() for name in model.outputs))
        if "--dynamic" not in options:
            self.check_training(made, inputs, expected, of_floats)
        self.assertLess(min(differences), bound, differences)  # some inputs meet no tie

    def test_the_preset_fast_needs_no_more_launches_and_runs_in_onnxruntime(self):
        for name in NORM_FIRST:
            with self.subTest(name):
                model, path = self.export(name, False)
                options = calibration(self.folder, texts=4, words=20)
                launches = {}
                for preset in "default", "fast":
                    made = self.folder / f"{preset}.onnx"
                    bertcl("quantize", path, *options, "--preset", preset, "-o", made, "--model-only", "--force")
                    report = inspect(made, "--batch", "3", "--seq", "24")
                    self.assertNotIn("QuantizeLinear", [op["op"] for op in report["ops"]])
                    launches[preset] = report["launches"]
                self.assertEqual(launches["fast"], launches["default"])
                inputs = model.batch(1, 24)
                found, expected = Session(made).run(inputs), Reference(made, optimized=True).run(inputs)
                of_floats = Reference(path).run(inputs)
                for output in model.outputs:
                    error, noise = found[output] - expected[output], of_floats[output] - expected[output]
                    self.assertLess(np.sqrt(np.mean(error ** 2)), np.sqrt(np.mean(noise ** 2)), output)

    def test_every_architecture(self):
        for name in ARCHITECTURES:
            if name in REFUSED:
                continue
            for captured in (False, True):
                with self.subTest(name=name, captured=captured):
                    model, path = self.export(name, captured)
                    self.check(model, path, BOUNDS.get(name, ABSOLUTE))
                    launches = inspect(path, "--batch", "3", "--seq", "24")["launches"]
                    self.assertEqual(launches, LAUNCHES[name][captured])
                    if not captured:
                        for options in ("--dynamic",), calibration(self.folder, texts=4, words=20):
                            self.check_int8(model, path, BOUNDS.get(name, ABSOLUTE), *options)

    def test_vectors_are_trained_on_texts(self):
        model, path = self.export("modernbert", False)
        quantized, made = self.folder / "quantized.onnx", self.folder / "made.onnx"
        bertcl("quantize", path, *calibration(self.folder, texts=60, words=20), "--smooth", "off", "--weight-rounding",
               "nearest", "--weight-bits", "5", "-o", quantized, "--model-only")
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(qat.main([
                "--model", str(path), "--quantized", str(quantized), "-o", str(made), "--data",
                str(self.folder / "texts.txt"), "--threads", "1", "--steps", "40", "--held-out", "8", "--tokens", "256",
                "--learning-rate", "1e-4"]), 0)
        inputs = model.batch(3, 24)
        expected = Reference(path).run(inputs)["last_hidden_state"]
        before, after = (np.sqrt(np.mean((Reference(file).run(inputs)["last_hidden_state"] - expected) ** 2))
                         for file in (quantized, made))
        self.assertLess(after, 0.95 * before)
        module = onnx_module.OnnxModule(quantized)
        angles = [node for node in module.model.graph.node if node.op_type in ("Cos", "Sin")]
        self.assertEqual(len(angles), 4)
        self.assertFalse([name for name in module.weights if "rotary" in name], "frequencies are not trained")

    def test_results_of_further_encoders(self):
        for name in FURTHER:
            for captured in Architecture(name).exporters:
                with self.subTest(name, captured=captured):
                    model, path = self.export(name, captured)
                    self.check(model, path, ABSOLUTE)
                    report = inspect(path, "--batch", "3", "--seq", "24")
                    self.assertEqual([op["op"] for op in report["ops"]].count("attention"), model.attentions)
                    if name in FURTHER_LAUNCHES:
                        self.assertEqual(report["launches"], FURTHER_LAUNCHES[name][captured])

    def test_padding_before_the_text(self):
        for name in FURTHER_LAUNCHES:
            with self.subTest(name):
                model, path = self.export(name, True)
                inputs = model.batch(3)
                inputs = {key: array[:, ::-1].copy() for key, array in inputs.items()}
                self.assertFalse(inputs["attention_mask"][1:, 0].any())
                found, expected = Session(path).run(inputs), Reference(path).run(inputs)
                real = inputs["attention_mask"].astype(bool)
                for output in model.outputs:
                    self.assertLess(np.abs(found[output][real] - expected[output][real]).max(), ABSOLUTE)

    def test_attention_of_further_encoders_in_int8(self):
        for name, linears in (("text of clip without a mask", 12), ("text of clip without a mask, sdpa", 12),
                              ("shared key heads", 14), ("qwen3", 14), ("gemma3", 14), ("mistral", 14)):
            with self.subTest(name):
                model, path = self.export(name, Architecture(name).exporters[0])
                model.linears = linears
                self.check_int8(model, path, ABSOLUTE, *calibration(self.folder, texts=4, words=20))

    def test_the_operators_of_opset_23(self):
        """RotaryEmbedding, RMSNormalization and Attention. ONNX Runtime takes no tables of one row for the batch, as
        torch writes them: it runs the file of opset 18."""
        model = Architecture("eurobert, sdpa")
        path, former = self.folder / "model.onnx", self.folder / "former.onnx"
        model.export(path, True, 23)
        model.export(former, True)
        written = {node.op_type for node in onnx.load(path).graph.node}
        self.assertLessEqual({"RotaryEmbedding", "RMSNormalization", "Attention"}, written)
        session, reference = Session(path), Reference(former)
        for count, longest in (1, 7), (3, 24):
            inputs = model.batch(count, longest)
            real = inputs["attention_mask"].astype(bool)
            found, expected = (x.run(inputs)["last_hidden_state"][real] for x in (session, reference))
            self.assertLess(np.abs(found - expected).max(), ABSOLUTE)
        ops = [op["op"] for op in inspect(path, "--batch", "3", "--seq", "24")["ops"]]
        self.assertEqual(ops.count("attention"), 2)
        self.assertLessEqual(len(ops), LAUNCHES["eurobert"][True] + 2)  # the tables of halves, joined

    def test_masks_that_hide_rows(self):
        model, path = self.export("deberta-v2", False)
        inputs = model.batch(3, 24)
        inputs["attention_mask"] = np.ones_like(inputs["attention_mask"])
        inputs["attention_mask"][0, :9] = 0
        inputs["attention_mask"][1, 5:7] = 0
        inputs["attention_mask"][2, 20:] = 0
        expected, real = Reference(path).run(inputs), inputs["attention_mask"].astype(bool)
        packed, kept = bertcl_run(path, inputs), bertcl_run(path, inputs, "--keep-padding")
        for name in model.outputs:
            self.assertLess(np.abs(packed[name][real] - expected[name][real]).max(), ABSOLUTE, name)
            self.assertLess(np.abs(kept[name] - expected[name]).max(), ABSOLUTE, name)
        golden = self.folder / "golden.npz"
        np.savez(golden, **{f"in__{name}": value for name, value in inputs.items()},
                 **{f"out__{name}": expected[name] for name in model.outputs})
        bertcl("verify", path, golden)

    def test_what_cannot_run_is_refused_with_the_reason(self):
        for name, reason in REFUSED.items():
            _, path = self.export(name, False)
            self.assertIn(reason, bertcl("inspect", path, expect=2).stderr)
            made = self.folder / "int8.onnx"
            refused = bertcl("quantize", path, "--dynamic", "-o", made, "--model-only", expect=2)
            self.assertIn(reason, refused.stderr)
            self.assertFalse(made.exists())
