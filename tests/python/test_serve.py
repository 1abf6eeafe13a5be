# SPDX-License-Identifier: Apache-2.0
"""`bertcl serve` for the clients that people use: openai, huggingface_hub and tritonclient get what the commands of the
program give for the same texts."""
import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

import numpy as np
import onnx
from support import BERTCL, ROOT, bertcl, bertcl_run

import encoder_model

TEXTS = ["Who maintains OpenCL?", "The Khronos Group does.", "short"]
CONTEXT = "OpenCL is maintained by the Khronos Group."
PYTHON = BERTCL.parent / "venv-serve" / "bin" / "python"
DEFAULT = ROOT / "models" / "minilm-l6-squad"


def write_classifier(folder):
    """Three classes of the first token of encoder_model.py's."""
    encoder_model.write_encoder(folder)
    model = onnx.load(folder / "model.onnx")
    graph = model.graph
    weights = np.random.default_rng(1).normal(0, 1, (64, 3)).astype(np.float32)
    graph.initializer.extend([onnx.numpy_helper.from_array(np.array(0), "first"),
                              onnx.numpy_helper.from_array(weights, "head")])
    graph.node.extend([onnx.helper.make_node("Gather", ["last_hidden_state", "first"], ["token"], axis=1),
                       onnx.helper.make_node("MatMul", ["token", "head"], ["logits"])])
    del graph.output[:]
    graph.output.append(onnx.helper.make_tensor_value_info("logits", onnx.TensorProto.FLOAT, ["batch", 3]))
    onnx.save(model, folder / "model.onnx")


def serve(test, folder, *arguments, output=subprocess.DEVNULL):
    """Starts a server that ends with the test, or the class of tests; gives its URL."""
    report = pathlib.Path(folder) / "serve.json"
    report.unlink(missing_ok=True)  # of another server
    server = subprocess.Popen([BERTCL, "serve", *arguments, "--port", "0", "--json", report, "--log", "none"],
                              stdout=output)

    def stop():
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
        if code:
            raise AssertionError(f"bertcl serve ended with {code}")
    (test.addClassCleanup if isinstance(test, type) else test.addCleanup)(stop)
    deadline = time.monotonic() + 300
    while not report.exists() and server.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return json.loads(report.read_text(encoding="utf-8"))["url"]


class StartTest(unittest.TestCase):
    def test_models_whose_scales_cover_the_batch_are_named(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            encoder_model.write_encoder(folder / "encoder")
            printed = {}
            for kind, options in (("tensor", []), ("token", ["--per-token"])):
                made = folder / "encoder" / f"{kind}.onnx"
                bertcl("quantize", folder / "encoder" / "model.onnx", "-o", made, "--dynamic", *options)
                with open(folder / kind, "w", encoding="utf-8") as output:
                    serve(self, folder, made, "--pooling", "mean", output=output)
                    self.doCleanups()
                printed[kind] = (folder / kind).read_text(encoding="utf-8")
            self.assertIn("tensor: its scales cover the whole batch", printed["tensor"])
            self.assertNotIn("scales", printed["token"])


@unittest.skipUnless((PYTHON.parents[1] / "requirements.txt").is_file(),
                     f"no clients in {PYTHON.parents[1]} (tools/test makes it; it needs a network)")
class ServeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        folder = pathlib.Path(cls.folder.name)
        cls.encoder = folder / "encoder" / "model.onnx"
        encoder_model.write_encoder(cls.encoder.parent)
        classifier = folder / "classifier" / "model.onnx"
        write_classifier(classifier.parent)
        key = ["--api-key", "secret"]
        url = serve(cls, folder, f"vectors={cls.encoder}", f"answers={DEFAULT / 'model.onnx'}", "--pooling", "mean",
                    "--normalize", *key)
        classes = serve(cls, folder, classifier, *key)
        done = subprocess.run([PYTHON, pathlib.Path(__file__).with_name("serve_clients.py"), url, "vectors",
                               "answers", json.dumps(TEXTS), CONTEXT, classes], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(done.stderr)
        cls.found = json.loads(done.stdout)
        texts = folder / "texts.txt"
        texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        made = folder / "vectors.npy"
        done = bertcl("embed", cls.encoder, texts, "--pooling", "mean", "--normalize", "-o", made, "--json", "-")
        cls.tokens = json.loads(done.stdout)["tokens"]
        cls.vectors = np.load(made)
        cls.classes = {}
        for activation in ("softmax", "none"):
            done = bertcl("classify", classifier, texts, "--json", "-", "--top-k", "3", "--activation", activation)
            cls.classes[activation] = [[one["label"], one["score"]]
                                       for one in json.loads(done.stdout)["results"][0]["labels"]]

    def same(self, found, expected):
        np.testing.assert_array_equal(np.asarray(found, dtype=np.float32), expected)

    def test_openai(self):
        found = self.found["openai"]
        self.same(found["usual"], self.vectors)
        self.same(found["floats"], self.vectors)
        cut = self.vectors[2, :8]
        np.testing.assert_allclose(found["short"], cut / np.linalg.norm(cut), atol=1e-6)
        self.assertEqual(found["tokens"], self.tokens)
        self.assertEqual(found["models"], ["vectors", "answers"])
        self.assertIn("unknown model 'other'", found["refused"])
        self.assertEqual(found["key"], "refused")

    def test_hugging_face(self):
        found = self.found["hugging_face"]
        self.same(found["vectors"], self.vectors)
        np.testing.assert_allclose(found["similar"], self.vectors[1:] @ self.vectors[0], atol=1e-5)
        report = json.loads(bertcl("answer", DEFAULT / "model.onnx", "-q", "Who maintains OpenCL?", "--context",
                                   self.context_file(), "--json", "-").stdout)
        start = report["answer_start"]
        self.assertEqual(found["answer"], [report["answer"], start, start + len(report["answer"])])

    def test_classes_of_hugging_face(self):
        found = self.found["classes"]
        for name, expected in (("all", self.classes["softmax"]), ("best", self.classes["softmax"][:1]),
                               ("logits", self.classes["none"])):
            self.assertEqual([label for label, _ in found[name]], [label for label, _ in expected])
            self.same([score for _, score in found[name]], np.float32([score for _, score in expected]))

    def context_file(self):
        path = pathlib.Path(self.folder.name) / "context.txt"
        path.write_text(CONTEXT, encoding="utf-8")
        return path

    def test_triton(self):
        found = self.found["triton"]
        self.assertEqual([found["live"], found["ready"], found["model"]], [True] * 3)
        self.assertEqual(found["inputs"][0]["name"], "input_ids")
        expected = bertcl_run(DEFAULT / "model.onnx", {"input_ids": np.array(found["ids"]),
                                                       "attention_mask": np.array(found["mask"])})
        for kind in ("binary", "json"):
            for name, values in found[kind].items():
                self.same(values, expected[name])
