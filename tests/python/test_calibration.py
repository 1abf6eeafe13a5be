# SPDX-License-Identifier: Apache-2.0
"""Ranges of bertcl against those of onnxruntime's calibrators on the same inputs."""
import contextlib
import hashlib
import io
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
from onnx import helper
from onnxruntime.quantization import CalibrationMethod
from onnxruntime.quantization.calibrate import create_calibrator
from support import BERTCL, MODEL, VOCABULARY, Batches, bertcl, model_of, scratch



class Questions:
    """Questions of whole words of the vocabulary, so that any tokenizer gives the same ids."""

    def __init__(self, folder, lengths, seed=1):
        words = VOCABULARY.read_text(encoding="utf-8").splitlines()
        plain = [i for i, word in enumerate(words) if re.fullmatch("[a-z]{4,}", word)]
        cls, sep = words.index("[CLS]"), words.index("[SEP]")
        random = np.random.default_rng(seed)
        self.samples, paragraphs = [], []
        for number, length in enumerate(lengths):
            question, context = (random.choice(plain, n).tolist() for n in (6, length))
            ids = [cls, *question, sep, *context, sep]
            self.samples.append((ids, [0] * 8 + [1] * (length + 1)))
            text = " ".join(words[i] for i in context)
            answer = {"text": words[context[0]], "answer_start": 0}
            asked = {"id": str(number), "question": " ".join(words[i] for i in question),
                     "answers": [answer]}
            paragraphs.append({"context": text, "qas": [asked]})
        self.path = pathlib.Path(folder) / "questions.json"
        self.path.write_text(json.dumps(
            {"version": "1.1", "data": [{"title": "words", "paragraphs": paragraphs}]}))

    @property
    def sha256(self):
        numbers = [x for ids, types in self.samples for x in (len(ids), *ids, *types)]
        return hashlib.sha256(np.array(numbers, "<i8").tobytes()).hexdigest()

    def feeds(self, names):
        for ids, types in self.samples:
            all_inputs = {"input_ids": ids, "token_type_ids": types, "attention_mask": [1] * len(ids)}
            yield {name: np.array([all_inputs[name]], np.int64) for name in names}


def tables_model(path):
    """Rows of tables by token id, each multiplied by a matrix: activations that are known to the
    last bit. The tables have the shapes of activations: both signs, one-sided, outliers, tiny."""
    random = np.random.default_rng(2)
    normal = random.standard_normal((30522, 24)).astype(np.float32)
    tables = {"normal": normal, "one_sided": np.abs(normal) ** 3, "gelu": np.maximum(normal, -0.17),
              "outliers": np.where(np.abs(normal) > 4, normal * 20, normal), "tiny": normal * 1e-6}
    nodes, weights = [], {}
    for name, table in tables.items():
        weights[name + "_table"] = table.astype(np.float32)
        weights[name + "_weight"] = random.standard_normal((24, 8)).astype(np.float32)
        nodes += [helper.make_node("Gather", [name + "_table", "input_ids"], [name]),
                  helper.make_node("MatMul", [name, name + "_weight"], [name + "_out"])]
    onnx.save(model_of(nodes, {"input_ids": (np.int64, ["batch", "seq"])},
                       {name + "_out": ["batch", "seq", 8] for name in tables}, weights), path)


def bertcl_ranges(model, questions, *options):
    """(low, high) of each activation, with proof that the inputs are the same."""
    with tempfile.TemporaryDirectory() as folder:
        done = bertcl("quantize", model, "-o", pathlib.Path(folder) / "q.onnx", "--data",
                      questions.path, "--samples", 0, "--vocab", VOCABULARY, "--json", "-",
                      "--smooth", "off", "--weight-rounding", "nearest", *options)
    report = json.loads(done.stdout)
    assert report["data_sha256"] == questions.sha256, "the samples differ"
    return {t["tensor"]: (t["low"], t["high"]) for t in report["tensors"]
            if t["role"] == "activation"}


def onnxruntime_ranges(model, questions, method, inputs, together=1, **options):
    """The same by onnxruntime: one call of collect_data for every `together` samples."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
        calibrator = create_calibrator(str(model), ["MatMul"], str(pathlib.Path(folder) / "a.onnx"),
                                       method, extra_options=options)
        feeds = list(questions.feeds(inputs))
        for first in range(0, len(feeds), together):
            calibrator.collect_data(Batches(feeds[first:first + together]))
        data = calibrator.compute_data().data
    return {name: tuple(float(np.ravel(end)[0]) for end in value.range_value)
            for name, value in data.items()}


class Calibrators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = scratch(cls)
        cls.questions = Questions(folder, [20, 5, 61, 33, 90, 7, 48, 12, 75])
        cls.tables = folder / "tables.onnx"
        tables_model(cls.tables)

    def compare(self, model, found, expected, tolerance):
        self.assertLessEqual(set(found), set(expected))
        for tensor, (low, high) in found.items():
            want = expected[tensor]
            with self.subTest(model=model.name, tensor=tensor, found=(low, high), expected=want):
                length = want[1] - want[0]
                self.assertLess(max(abs(low - want[0]), abs(high - want[1])), tolerance * length)

    def test_known_activations(self):
        """Every method and form on activations that both have to the last bit."""
        cases = [
            (CalibrationMethod.MinMax, {}, 1, ["minmax"]),
            (CalibrationMethod.MinMax, {"symmetric": True}, 1, ["minmax", "--absolute"]),
            (CalibrationMethod.MinMax, {"moving_average": True}, 1, ["minmax", "--moving-average"]),
            (CalibrationMethod.MinMax, {"moving_average": True, "averaging_constant": 0.3}, 4,
             ["minmax", "--moving-average", "--averaging-constant", 0.3, "--averaged-samples", 4]),
            (CalibrationMethod.MinMax, {"moving_average": True, "symmetric": True}, 9,
             ["minmax", "--moving-average", "--averaged-samples", 0, "--absolute"]),
            (CalibrationMethod.Percentile, {}, 1, ["percentile"]),
            (CalibrationMethod.Percentile, {"percentile": 99.0, "num_bins": 500}, 1,
             ["percentile", "--percentile", 99, "--bins", 500]),
            (CalibrationMethod.Percentile, {"symmetric": False, "percentile": 99.9}, 1,
             ["percentile", "--percentile", 99.9, "--two-sided"]),
            (CalibrationMethod.Entropy, {}, 1, ["entropy"]),
            (CalibrationMethod.Entropy, {"num_bins": 801, "num_quantized_bins": 255}, 1,
             ["entropy", "--bins", 801, "--quantized-bins", 255]),
        ]
        for method, options, together, arguments in cases:
            with self.subTest(arguments=arguments):
                expected = onnxruntime_ranges(self.tables, self.questions, method, ["input_ids"],
                                              together, **options)
                found = bertcl_ranges(self.tables, self.questions, "--method", *arguments)
                self.assertEqual(len(found), 5)
                self.compare(self.tables, found, expected, 1e-6)

    def test_default_model(self):
        """Activations that each runtime computes for itself, each in fp32: what bertcl allows its
        operators, 80 eps. Ranges of the same activations are compared above."""
        inputs = ["input_ids", "attention_mask", "token_type_ids"]
        for method, name in ((CalibrationMethod.MinMax, "minmax"),
                             (CalibrationMethod.Percentile, "percentile")):
            expected = onnxruntime_ranges(MODEL, self.questions, method, inputs)
            found = bertcl_ranges(MODEL, self.questions, "--method", name)
            self.assertGreater(len(found), 40)
            self.compare(MODEL, found, expected, 80 * np.finfo(np.float32).eps)

    def test_padding_and_batches_leave_no_trace(self):
        alone = bertcl_ranges(MODEL, self.questions, "--method", "percentile")
        self.assertEqual(
            bertcl_ranges(MODEL, self.questions, "--method", "percentile", "--batch", 4), alone)

    def test_memory_does_not_grow_with_the_questions(self):
        # As users run it: tools/test asks for huge pages.
        environment = {name: value for name, value in os.environ.items() if name != "GLIBC_TUNABLES"}

        def peak(count):  # MiB resident at most
            folder = scratch(self)
            process = subprocess.Popen(
                [BERTCL, "quantize", MODEL, "-o", folder / "q.onnx", "--data",
                 Questions(folder, [100] * count).path, "--samples", "0", "--method", "percentile"],
                stdout=subprocess.DEVNULL, env=environment)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            self.assertEqual(process.returncode, 0)
            return usage.ru_maxrss / 1024

        # The first run may compile kernels, which takes memory, too.
        few, many = min(peak(5), peak(5)), peak(60)
        if many - few >= 50:  # peaks vary with the order in which threads allocate; growth shows in every run
            many = min(many, peak(60))
        self.assertLess(many - few, 50, f"{few:.0f} and {many:.0f} MiB")
