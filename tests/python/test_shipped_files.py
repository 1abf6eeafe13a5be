# SPDX-License-Identifier: Apache-2.0
"""The data and the model that the repository carries: whole, consistent, and of the size promised."""
import collections
import json
import pathlib
import unittest

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "minilm-l6-squad"


def load(name):
    return json.loads((ROOT / "data" / name).read_text(encoding="utf-8"))


def paragraphs(data):
    return [p for article in data["data"] for p in article["paragraphs"]]


class Data(unittest.TestCase):
    def check_squad(self, data):
        """Unique ids, an answer unless it is impossible, and each answer at its offset in Unicode characters."""
        ids = [q["id"] for p in paragraphs(data) for q in p["qas"]]
        self.assertEqual(len(ids), len(set(ids)))
        for paragraph in paragraphs(data):
            for question in paragraph["qas"]:
                with self.subTest(question["id"]):
                    self.assertTrue(question["question"].strip())
                    self.assertEqual(not question["answers"], question.get("is_impossible", False))
                    for answer in question["answers"]:
                        self.assertTrue(answer["text"])
                        self.assertGreaterEqual(answer["answer_start"], 0)
                        self.assertTrue(paragraph["context"].startswith(answer["text"], answer["answer_start"]))

    def test_sample_is_valid_squad_2(self):
        self.check_squad(load("sample-v2.0.json"))

    def test_calibration_is_valid_squad_1(self):
        data = load("calibration.json")
        self.check_squad(data)
        self.assertEqual(data["version"], "1.1")

    def test_sample_is_large_enough(self):
        found = paragraphs(load("sample-v2.0.json"))
        questions = [q for p in found for q in p["qas"]]
        impossible = sum(q["is_impossible"] for q in questions)
        self.assertGreaterEqual(len(found), 22)
        self.assertGreaterEqual(len(questions), 130)
        self.assertGreater(impossible / len(questions), 0.28)
        self.assertLess(impossible / len(questions), 0.40)

    def test_calibration_has_other_paragraphs(self):
        sample = {p["context"] for p in paragraphs(load("sample-v2.0.json"))}
        found = paragraphs(load("calibration.json"))
        self.assertGreaterEqual(len(found), 30)
        self.assertGreaterEqual(sum(len(p["qas"]) for p in found), 60)
        self.assertTrue(sample.isdisjoint(p["context"] for p in found))


class Model(unittest.TestCase):
    def test_onnx_checker_accepts_the_model(self):
        model = onnx.load(MODEL / "model.onnx")
        onnx.checker.check_model(model, full_check=True)

    def test_vocabulary_and_embedding_have_the_same_size(self):
        words = (MODEL / "vocab.txt").read_text(encoding="utf-8").splitlines()
        rows = collections.Counter(t.dims[0] for t in onnx.load(MODEL / "model.onnx").graph.initializer
                                   if len(t.dims) == 2)
        self.assertEqual(len(words), 30522)
        self.assertEqual(rows[30522], 1)

    def test_onnx_runtime_runs_the_model(self):
        session = onnxruntime.InferenceSession(MODEL / "model.onnx",
                                               providers=["CPUExecutionProvider"])
        ids = np.array([[101, 2054, 102, 2023, 102]], dtype=np.int64)
        start, end = session.run(["start_logits", "end_logits"], {
            "input_ids": ids, "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([[0, 0, 0, 1, 1]], dtype=np.int64)})
        self.assertEqual(start.shape, (1, 5))
        self.assertEqual(end.shape, (1, 5))
        self.assertTrue(np.isfinite(start).all() and np.isfinite(end).all())
        self.assertGreater(np.ptp(start), 0)
