# SPDX-License-Identifier: Apache-2.0
"""bertcl.CrossEncoder and `bertcl rerank` against stored numbers of sentence-transformers
(make_cross_encoder_golden.py)."""
import json
import pathlib
import re
import shutil
import unittest
import unittest.mock

from support import bertcl as run_bertcl, scratch
from support import needs

needs("torch")

import numpy as np
import torch
import transformers
from cross_encoder_model import CASES, DOCUMENTS, QUERIES, make_model, pairs
from package import DEFAULT_MODEL, bertcl
from transformer_models import export_outputs

torch.set_num_threads(1)
GOLDEN = json.loads(pathlib.Path(__file__).with_name("cross_encoder_golden.json").read_text())["cases"]


class CrossEncoderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch(cls)
        cls.paths = {name: cls.export(name, case) for name, case in CASES.items()}
        cls.models = {name: bertcl.CrossEncoder(path, device="cpu") for name, path in cls.paths.items()}

    @classmethod
    def export(cls, name, case):
        path = cls.folder / name
        model = make_model(**case)
        transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL)).save_pretrained(path)
        model.config.save_pretrained(path)
        export_outputs(model, path / "model.onnx", by_text=["logits"])
        return path

    def assert_ranked(self, ours, theirs):
        self.assertEqual([{**each, "score": 0} for each in ours], [{**each, "score": 0} for each in theirs])
        np.testing.assert_allclose([each["score"] for each in ours], [each["score"] for each in theirs], atol=2e-5)

    def test_scores_are_those_of_sentence_transformers(self):
        for name, model in self.models.items():
            with self.subTest(name):
                golden = GOLDEN[name]
                expected = np.array(golden["predict"], np.float32)
                self.assertGreater(expected.std(axis=0).min(), 0.01, "the model tells nothing apart")
                made = model.predict(pairs())
                self.assertEqual((made.dtype, made.shape), (np.float32, expected.shape))
                np.testing.assert_allclose(made, expected, atol=2e-5)
                np.testing.assert_allclose(model.predict(pairs(), apply_softmax=True), golden["softmax"], atol=2e-5)
                np.testing.assert_allclose(model.predict(pairs(), activation_fn=np.tanh), golden["tanh"], atol=2e-5)

    def test_documents_are_ranked_as_sentence_transformers_does(self):
        for name in "one label", "logits":
            with self.subTest(name):
                for query, theirs in zip(QUERIES, GOLDEN[name]["rank"], strict=True):
                    self.assert_ranked(self.models[name].rank(query, DOCUMENTS, return_documents=True), theirs)
                self.assert_ranked(self.models[name].rank(QUERIES[0], DOCUMENTS, top_k=2), GOLDEN[name]["top_k"])

    def test_the_first_text_has_the_prompt_of_the_model(self):
        folder, plain = self.folder / "prompted", self.models["one label"]
        shutil.copytree(self.paths["one label"], folder)
        config = {"model_type": "CrossEncoder", "prompts": {"find": "Find: ", "none": ""},
                  "default_prompt_name": "find"}
        (folder / "config_sentence_transformers.json").write_text(json.dumps(config))
        model = bertcl.CrossEncoder(folder, device="cpu")
        query, document = "Who wrote it?", "Ada wrote it."
        expected = plain.predict(("Find: " + query, document))
        self.assertNotEqual(plain.predict((query, document)), expected)
        self.assertEqual(model.predict((query, document)), expected)
        self.assertEqual(model.rank(query, [document]), plain.rank("Find: " + query, [document]))
        self.assertEqual(model.predict((query, document), prompt_name="none"), plain.predict((query, document)))
        self.assertEqual(plain.predict((query, document), prompt="Find: "), expected)
        with self.assertRaisesRegex(ValueError, r"unknown prompt 'seek' \(choose from find, none\)"):
            model.predict((query, document), prompt_name="seek")
        with self.assertRaisesRegex(ValueError, "unknown prompt 'seek'"):
            bertcl.CrossEncoder(folder, default_prompt_name="seek")

    def test_batches_change_nothing_that_matters(self):
        model = self.models["one label"]
        expected = model.predict(pairs())
        for size in 1, 5, 18:
            np.testing.assert_allclose(model.predict(pairs(), batch_size=size), expected, atol=1e-6)
        one = model.predict(pairs()[3])
        self.assertEqual((one.dtype, one.shape), (np.float32, ()))
        self.assertAlmostEqual(float(one), float(expected[3]), delta=1e-6)
        self.assertEqual(model.predict([]).shape, (0,))
        self.assertEqual(model.rank("Who?", []), [])
        with self.assertRaisesRegex(ValueError, "top_k is -1, expected 0 or more"):
            model.rank("Who?", ["Ada."], top_k=-1)
        same = model.rank("Who?", ["Ada."] * 4)
        self.assertEqual([each["corpus_id"] for each in same], [0, 1, 2, 3])

    def test_a_batch_has_batch_tokens_at_most(self):
        model = bertcl.CrossEncoder(self.paths["one label"], device="cpu", batch_tokens=100)
        run, sizes = model.session.run_sequences, []

        def counted(ids, *others, **options):
            sizes.append(sum(map(len, ids)))
            return run(ids, *others, **options)

        with unittest.mock.patch.object(model.session, "run_sequences", counted):
            made = model.predict(pairs(), batch_size=1000)
        np.testing.assert_allclose(made, self.models["one label"].predict(pairs()), atol=1e-6)
        self.assertGreater(sum(sizes), 200)
        self.assertLessEqual(max(sizes), 100)

    def test_options_of_sentence_transformers(self):
        path, some = self.paths["one label"], pairs()[:3]
        made = bertcl.CrossEncoder(model_name_or_path=path, device=torch.device("cpu"), num_labels=1, backend="onnx",
                                   trust_remote_code=False, model_kwargs={"dtype": torch.float32}, revision=None)
        self.assertEqual(made.predict(some).tolist(), self.models["one label"].predict(some).tolist())
        with self.assertRaisesRegex(ValueError, f"num_labels is 3, but {path} has 1"):
            bertcl.CrossEncoder(path, num_labels=3)
        with self.assertRaisesRegex(TypeError, r"^CrossEncoder\(\) got an unexpected keyword argument 'labels'; it "
                                               "takes max_length, .*precision"):
            bertcl.CrossEncoder(path, labels=3)
        with self.assertRaisesRegex(TypeError, r"^CrossEncoder\(\): model_kwargs: dtype is torch.float16, which"):
            bertcl.CrossEncoder(path, model_kwargs={"dtype": torch.float16})

    def test_calls_are_those_of_sentence_transformers(self):
        model, some = self.models["one label"], pairs()[:3]
        expected = model.predict(some)
        for made in (model.predict(some, 32, False), model.predict(some, 32, None, None, False, True, False),
                     model.predict(sentences=some), model.predict(inputs=some), model.predict(pairs=some)):
            np.testing.assert_array_equal(made, expected)
        np.testing.assert_array_equal(model.predict(some, 32, False, np.tanh), model.predict(some, activation_fn=np.tanh))
        listed = model.predict(some, convert_to_numpy=False)
        self.assertEqual((type(listed), listed), (list, list(expected)))
        ranked = model.rank("Who?", ["Ada.", "Bob."])
        self.assertEqual(model.rank("Who?", ["Ada.", "Bob."], None, False, 32, False, None, False, True, False), ranked)
        for call in (lambda: model.predict(some, convert_to_tensor=True),
                     lambda: model.rank("Who?", ["Ada."], convert_to_tensor=True)):
            with self.assertRaisesRegex(ValueError, r"convert_to_tensor needs PyTorch.*torch.as_tensor\(\)"):
                call()
        with self.assertRaisesRegex(TypeError, "give only one of pairs and inputs"):
            model.predict(some, inputs=some)
        with self.assertRaisesRegex(TypeError, "pairs is None, expected a pair of texts"):
            model.predict()

    def test_the_program_ranks_alike(self):
        for name in "one label", "logits":
            passages = self.folder / "passages.jsonl"
            passages.write_text("".join(json.dumps({"query": query, "passage": document}) + "\n"
                                        for query, document in pairs()))
            report = json.loads(run_bertcl("rerank", self.paths[name] / "model.onnx", passages,
                                           "--json", "-").stdout)
            self.assertEqual(report["activation"], "none" if name == "logits" else "sigmoid")
            for i, theirs in enumerate(GOLDEN[name]["rank"]):
                self.assert_ranked([{"corpus_id": each["index"] - i * len(DOCUMENTS), "score": each["score"],
                                     "text": each["text"]} for each in report["queries"][i]["results"]], theirs)

    def test_files_may_lie_above_the_folder_onnx(self):
        hub = self.folder / "hub"
        shutil.copytree(self.paths["one label"], hub)
        (hub / "onnx").mkdir()
        (hub / "model.onnx").rename(hub / "onnx" / "model.onnx")
        (hub / "config_sentence_transformers.json").write_text('{"activation_fn": "torch.nn.Identity"}')
        expected = self.models["one label"].predict(pairs(), activation_fn=lambda logits: logits)
        for path in hub, hub / "onnx":
            np.testing.assert_array_equal(bertcl.CrossEncoder(path, device="cpu").predict(pairs()), expected)

    def test_bad_input_is_named(self):
        with self.assertRaisesRegex(ValueError, r"pairs\[1\]"):
            self.models["one label"].predict([["a", "b"], ["a"]])
        for given in None, 3, "Who?", b"ab", {"a": "b"}, {"a": 1, "b": 2}:
            with self.assertRaisesRegex(TypeError, re.escape(f"pairs is {given!r}, expected a pair of texts")):
                self.models["one label"].predict(given)
            with self.assertRaisesRegex(TypeError, re.escape(f"documents is {given!r}, expected a list of texts")):
                self.models["one label"].rank("Who?", given)
        with self.assertRaisesRegex(ValueError, "one label"):
            self.models["three labels"].rank("Who?", ["Ada."])
        with self.assertRaisesRegex(ValueError, "batch_size"):
            self.models["one label"].predict(pairs(), batch_size=0)
        with self.assertRaisesRegex(ValueError, "maximum of 2 tokens is less than the 3 special ones of a pair"):
            bertcl.CrossEncoder(self.paths["one label"], max_length=2).predict([("a b", "c d")])
        with self.assertRaisesRegex(ValueError, "start_logits|end_logits"):
            bertcl.CrossEncoder(DEFAULT_MODEL)
        (self.paths["one label"] / "config_sentence_transformers.json").write_text('{"activation_fn": "mine.Softplus"}')
        self.addCleanup((self.paths["one label"] / "config_sentence_transformers.json").unlink)
        with self.assertRaisesRegex(ValueError, "mine.Softplus.*activation_fn"):
            bertcl.CrossEncoder(self.paths["one label"])
