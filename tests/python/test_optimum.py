# SPDX-License-Identifier: Apache-2.0
"""Encoders as optimum exports them, with and without ONNX Runtime's optimization, against ONNX Runtime: results, numbers
of launches, and MatMuls in int8, with scales of each run and with calibrated ones. After each optimization all MatMuls
of the file as exported are quantized."""
import json
import os
import subprocess
import unittest

import numpy as np
import onnx
import onnxruntime
from c_session import Session
from onnxruntime.transformers import fusion_options, optimizer
from support import BERTCL, ROOT, Reference, bertcl, inspect, optimize, scratch

PYTHON = BERTCL.parent / "venv-optimum" / "bin" / "python"
if not (PYTHON.parents[1] / "requirements.txt").exists():
    raise unittest.SkipTest("optimum is not installed: tools/python/make_venv build/venv-optimum "
                            "tools/python/requirements-optimum.txt build/venv-torch")
try:
    from architecture_models import ARCHITECTURES, DECODERS, SIZES, calibration
except ImportError as error:
    raise unittest.SkipTest(f"{error}: tools/python/make_venv build/venv-torch tools/python/requirements-torch.txt")
from transformer_models import padded_batch

ABSOLUTE = 5e-5  # of results of LayerNorm
BOUNDS = {"jina-v2": 3e-4}  # as in test_architectures
# Launches in fp32 without a head: as exported and after O1, after O2 and O3.
LAUNCHES = {
    "distilbert": (16, 16), "electra": (17, 17), "albert": (17, 36), "roberta": (32, 32), "xlm-roberta": (32, 32),
    "mpnet": (48, 48), "modernbert": (51, 53), "jina-v2": (30, 30), "deberta-v2": (54, 54), "qwen3": (45,),
}
MORE_LAUNCHES = {("modernbert", "O1"): 53}
REFUSED = {"deberta": "is data-dependent"}  # by bertcl
LINEARS = {name: linears for name, (_, linears) in ARCHITECTURES.items()} | DECODERS
NOT_EXPORTED = {"nomic-bert", "gte", "eurobert"}
FUSED = {"O2", "O3"}


class Optimum(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch(cls)
        script = ROOT / "tests" / "python" / "export_by_optimum.py"
        done = subprocess.run([PYTHON, script, cls.folder], capture_output=True, text=True,
                              env={**os.environ, "HF_HUB_OFFLINE": "1"})
        if done.returncode != 0:
            raise AssertionError(f"{script.name}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
        cls.refused = json.loads((cls.folder / "refused.json").read_text())

    def batch(self, model, count, longest, seed=0):
        arrays = padded_batch(count, longest, seed)
        return {entry.name: arrays[entry.name].numpy() for entry in model.graph.input}

    def differences(self, found, expected, inputs):
        """By output, those of real tokens where an output has a row for each."""
        real = inputs["attention_mask"].astype(bool)
        for name, values in expected.items():
            error = found[name] - values
            yield name, error[real] if values.shape[:2] == real.shape and values.ndim == 3 else error

    def check(self, path, bound):
        model, session, reference = onnx.load(path), Session(path), Reference(path)
        for count, longest in (1, 7), (3, 24):
            inputs = self.batch(model, count, longest)
            found, expected = session.run(inputs), reference.run(inputs)
            for name, error in self.differences(found, expected, inputs):
                self.assertLess(np.abs(error).max(), bound, name)

    def quantize(self, path, *options, calibrated, two_masks):
        """The int8 file, the report of the quantizer and that of the compiler."""
        made = self.folder / "int8.onnx"
        done = bertcl("quantize", path, *options, "-o", made, "--model-only", "--force", "--json", "-")
        report = json.loads(done.stdout)
        required = ("--require", "int8") if calibrated else ()
        return made, report, inspect(made, "--batch", "2", "--seq", "24", *required,
                                     expect=int(calibrated and two_masks))

    def check_int8(self, path, linears, bound, *options, two_masks=False):
        """Without padding, as in test_architectures. Heads stay in float, and one attention of a file with two masks.
        Returns the number of quantized nodes, and the error of the outputs relative to those in float."""
        model = onnx.load(path)
        heads = sum(node.op_type == "Gemm" for node in model.graph.node)
        calibrated = "--dynamic" not in options
        made, report, compiled = self.quantize(path, *options, calibrated=calibrated, two_masks=two_masks)
        ops = [op["op"] for op in compiled["ops"]]
        self.assertEqual(ops.count("linear"), heads)
        self.assertGreaterEqual(ops.count("linear_q"), linears // 2)  # some are fused
        if calibrated:
            self.assertIn("attention_q", ops)
            self.assertNotIn("attention", ops)
        session, exact, reference = Session(made), Reference(path), Reference(made)
        worst, square, size = [], 0.0, 0.0
        for seed, length in enumerate((7, 7, 7, 7, 7, 24)):
            inputs = self.batch(model, 1, length, seed)
            found, expected, of_floats = session.run(inputs), reference.run(inputs), exact.run(inputs)
            noise = dict(self.differences(expected, of_floats, inputs))
            errors = dict(self.differences(found, expected, inputs))
            for name, error in errors.items():
                self.assertLess(np.sqrt(np.mean(error ** 2)), np.sqrt(np.mean(noise[name] ** 2)), name)
                square, size = square + np.sum(noise[name] ** 2), size + np.sum(of_floats[name] ** 2)
            worst.append(max(np.abs(error).max() for error in errors.values()))
        self.assertLess(min(worst), bound, worst)  # some inputs meet no rounding tie
        return report["quantized_nodes"], np.sqrt(square / size)

    def check_like_plain(self, plain, optimized):
        """Both (number of nodes, error) of check_int8."""
        self.assertEqual(optimized[0], plain[0])
        self.assertLess(optimized[1], 1.05 * plain[1])

    def levels(self, name, *optimized):
        return ("none",) if name in DECODERS else ("none", *optimized)

    def exports(self, task):
        for name in (*ARCHITECTURES, *DECODERS):
            for path in sorted((self.folder / name / task).glob("*/model.onnx")):
                yield name, path.parent.name, path

    def test_without_a_head(self):
        seen, results = set(), {}
        for name, level, path in self.exports("feature-extraction"):
            if name in REFUSED:
                continue
            seen.add((name, level))
            with self.subTest(name=name, level=level):
                bound = BOUNDS.get(name, ABSOLUTE)
                self.check(path, bound)
                launches = inspect(path, "--batch", "3", "--seq", "24")["launches"]
                self.assertEqual(launches, MORE_LAUNCHES.get((name, level), LAUNCHES[name][level in FUSED]))
                calibrated = calibration(self.folder, texts=4, words=20)
                if level != "O1":
                    for options in (calibrated,) if level == "O3" else (("--dynamic",), calibrated):
                        results[name, level, options] = self.check_int8(path, LINEARS[name], bound, *options,
                                                                        two_masks=name == "albert" and level in FUSED)
        self.assertEqual(seen, {(name, level) for name in LAUNCHES for level in self.levels(name, "O1", "O2", "O3")})
        for (name, level, options), result in results.items():
            with self.subTest(name=name, level=level, options=options):
                self.check_like_plain(results[name, "none", options], result)

    def optimized(self, path):
        """The file after the optimization of a session, and after that of transformers with an operator for the
        attention after its projections."""
        made = self.folder / "session.onnx"
        optimize(path, made, onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED)
        yield made
        fusion = fusion_options.FusionOptions("bert")
        fusion.use_multi_head_attention = True
        fusion.use_raw_attention_mask()
        made = self.folder / "transformers.onnx"
        optimizer.optimize_model(str(path), "bert", SIZES["num_attention_heads"], SIZES["hidden_size"],
                                 optimization_options=fusion, opt_level=0).save_model_to_file(str(made))
        yield made

    def test_other_optimizations(self):
        fused = set()
        options = calibration(self.folder, texts=4, words=20)
        for name, level, path in self.exports("feature-extraction"):
            if name in REFUSED or level != "none":
                continue
            linears, bound = LINEARS[name], BOUNDS.get(name, ABSOLUTE)
            plain = self.check_int8(path, linears, bound, *options)
            for optimized in self.optimized(path):
                with self.subTest(name=name, optimized=optimized):
                    fused |= {node.op_type for node in onnx.load(optimized).graph.node}
                    self.check_like_plain(plain, self.check_int8(optimized, linears, bound, *options))
        self.assertLessEqual({"MultiHeadAttention", "FusedMatMul", "RotaryEmbedding"}, fused)

    def test_with_a_head(self):
        seen = set()
        for name, level, path in self.exports("text-classification"):
            if name in REFUSED:
                continue
            seen.add((name, level))
            with self.subTest(name=name, level=level):
                self.check(path, ABSOLUTE)
        self.assertEqual(seen, {(name, level) for name in LAUNCHES if name != "jina-v2" for level in self.levels(name, "O2")})

    def test_without_past_keys(self):
        for name in DECODERS:
            path = self.folder / name / "text-generation-with-past" / "none" / "model.onnx"
            model, session, reference = onnx.load(path), Session(path), Reference(path)
            shapes = {entry.name: [d.dim_value for d in entry.type.tensor_type.shape.dim]
                      for entry in model.graph.input}
            self.assertTrue(any(key.startswith("past_key_values.") for key in shapes))
            self.assertEqual([op["op"] for op in inspect(path)["ops"]].count("attention"), 2)
            for count, longest in (1, 7), (3, 24):
                arrays = {key: array.numpy() for key, array in padded_batch(count, longest, 0).items()}
                empty = {key: np.zeros((count, *shape[1:]), np.float32)
                         for key, shape in shapes.items() if len(shape) == 4}
                inputs = {key: arrays[key] for key in shapes if key not in empty}
                found, expected = session.run(inputs), reference.run({**inputs, **empty})
                self.assertEqual(list(found), ["logits"])
                for key, error in self.differences(found, {"logits": expected["logits"]}, inputs):
                    self.assertLess(np.abs(error).max(), ABSOLUTE, key)

    def test_what_is_refused(self):
        self.assertEqual(set(self.refused), NOT_EXPORTED)
        for message in self.refused.values():
            self.assertIn("Transformers does not recognize this architecture", message)
        for name, reason in REFUSED.items():
            for task in "feature-extraction", "text-classification":
                for path in (self.folder / name / task).glob("*/model.onnx"):
                    self.assertIn(reason, bertcl("inspect", path, expect=2).stderr)
