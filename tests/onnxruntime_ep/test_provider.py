# SPDX-License-Identifier: Apache-2.0
"""The execution provider of ONNX Runtime: its results, its options and its refusals."""
import concurrent.futures
import pathlib
import subprocess
import sys
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper
from sessions import MODEL, NAME, ROOT, ProviderTest, batch, devices, nodes_by_provider, run, session

sys.path.insert(0, str(ROOT / "tests" / "python"))
import questions  # noqa: E402
from c_session import Session  # noqa: E402
from support import SHARED, bertcl, bertcl_run  # noqa: E402


class Provider(ProviderTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.int8 = cls.folder / "int8.onnx"
        bertcl("quantize", MODEL, "-o", cls.int8, "--data", ROOT / "data" / "calibration.json",
               "--samples", 20)

    def check_equal(self, model, inputs):
        """Equal to what bertcl itself gives, bit for bit."""
        found, expected = run(session(model), inputs), bertcl_run(model, inputs)
        self.assertEqual(found.keys(), expected.keys())
        for name, values in expected.items():
            np.testing.assert_array_equal(found[name], values, err_msg=name)

    def test_devices(self):
        device = devices()[0]
        self.assertEqual(device.ep_vendor, "bertcl")
        self.assertTrue(device.ep_metadata["opencl_name"])

    def test_fp32(self):
        runner = session(MODEL)
        self.assertEqual(runner.get_providers()[0], NAME)
        reference = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
        for size, length in ((1, 1), (1, 17), (3, 40), (2, 128)):  # shapes change between runs
            inputs = batch(size, length)
            found, expected = run(runner, inputs), run(reference, inputs)
            real = inputs["attention_mask"].astype(bool)
            for name, values in expected.items():
                self.assertEqual(found[name].shape, values.shape)
                self.assertLess(np.abs(found[name] - values)[real].max(), 1e-4)

    def test_equal_to_bertcl(self):
        self.check_equal(self.int8, batch(3, 40))

    def test_whole_graph_is_one_node(self):
        for model in (MODEL, self.int8):
            self.assertEqual(nodes_by_provider(model, batch(2, 9)), {NAME: 1})

    def test_answers(self):
        dev = SHARED / "data" / "squad" / "dev-v1.1.json"
        data, count = (dev, 100) if dev.exists() else (ROOT / "data" / "sample-v2.0.json", 150)
        vocabulary = questions.Vocabulary(MODEL.parent / "vocab.txt")
        examples = questions.load(data, count, vocabulary, max_length=256)
        runner, own = session(self.int8), Session(self.int8)
        for inputs, part in questions.batches(examples, 50):
            self.assertEqual(questions.answers(run(runner, inputs), part),
                             questions.answers(own.run(inputs), part))

    def test_context_models(self):
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        settings.add_provider_for_devices(devices()[:1], {})
        refusal = "EPContext models are not supported"
        with self.assertRaisesRegex(Exception, refusal):
            onnxruntime.ModelCompiler(settings, str(MODEL)).compile_to_file(str(self.folder / "context.onnx"))
        settings.add_session_config_entry("ep.context_enable", "1")
        settings.add_session_config_entry("ep.context_file_path", str(self.folder / "context.onnx"))
        with self.assertRaisesRegex(Exception, refusal):
            onnxruntime.InferenceSession(MODEL, settings, enable_fallback=0)

    def test_threads(self):
        runner = session(self.int8, {"requests": "2"})
        work = [batch(1 + i % 3, 5 + 7 * i) for i in range(6)]
        expected = [run(runner, inputs) for inputs in work]
        wrong = []

        def repeat(offset):
            for i in range(len(work)):
                at = (i + offset) % len(work)
                found = run(runner, work[at])
                if any(not np.array_equal(found[n], v) for n, v in expected[at].items()):
                    wrong.append(at)

        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            list(pool.map(repeat, (0, 3, 6)))  # raises what a thread raised
        self.assertEqual(wrong, [])

    def test_options(self):
        """Each does what it asks for, and none changes what it does not concern."""
        inputs = batch(1, 8)
        expected = run(session(MODEL), inputs)
        kept = run(session(MODEL, {"device": "cpu", "precision": "fp32", "max_memory": str(1 << 30),
                                   "drop_padding": "0"}), inputs)
        for name, values in expected.items():
            np.testing.assert_allclose(kept[name][0, :4], values[0, :4], rtol=1e-3, atol=1e-4)
            self.assertEqual(np.abs(values[0, 4:]).max(), 0)
            self.assertGreater(np.abs(kept[name][0, 4:]).min(), 0)
        required = {"require_int8": "1"}
        np.testing.assert_equal(run(session(self.int8, required), inputs), run(session(self.int8), inputs))
        with self.assertRaisesRegex(Exception, "int8 is required"):
            session(MODEL, required)

    def test_padding(self):
        """The rows of padding are those of the graph where they are not dropped, and 0 elsewhere."""
        inputs = batch(2, 12)
        reference = run(onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"]), inputs)
        kept, dropped = run(session(MODEL, {"drop_padding": "0"}), inputs), run(session(MODEL), inputs)
        for name, values in reference.items():
            np.testing.assert_allclose(kept[name], values, rtol=1e-3, atol=1e-4)
            self.assertEqual(np.abs(dropped[name][0, 6:]).max(), 0)

    def test_refused(self):
        for options, message in (
                ({"presicion": "fp16"}, "unknown option 'presicion' .choose from .*precision"),
                ({"precision": "fp64"}, "'fp64' is not one of fp32, fp16, bf16"),
                ({"max_memory": "much"}, "option max_memory: 'much' is not an integer from 0"),
                ({"device": "nowhere"}, "device selector 'nowhere' matches no OpenCL device"),
                ({"max_memory": "1000"}, "allows 1000"),
                ({"requests": "0"}, "'0' is not an integer from 1 to 1024"),
                ({"requests": "1025"}, "'1025' is not an integer from 1 to 1024")):
            with self.assertRaisesRegex(Exception, message):
                session(MODEL, options)

    def test_moved_qdq(self):
        """Q/DQ that ONNX Runtime adds around operators that move elements change nothing."""
        inputs, required = batch(3, 24), {"require_int8": "1"}
        moved = run(session(self.int8, required), inputs)
        kept = run(session(self.int8, required, without="QDQPropagationTransformer"), inputs)
        np.testing.assert_equal(moved, kept)

    def test_nonfinite_weights(self):
        """Not taken, which leaves them to the CPU provider, unless the option says so."""
        model = onnx.load(MODEL)
        bias = next(i for i in model.graph.initializer if list(i.dims) == [2])
        values = numpy_helper.to_array(bias).copy()
        values[0] = np.nan
        bias.CopyFrom(numpy_helper.from_array(values, bias.name))
        path = self.save(model, "nan.onnx")
        inputs = batch(1, 8, padded=False)
        self.assertNotIn(NAME, nodes_by_provider(path, inputs))
        self.assertEqual(nodes_by_provider(path, inputs, {"allow_nonfinite": "1"}), {NAME: 1})
        found = run(session(path, {"allow_nonfinite": "1"}), inputs)
        self.assertTrue(np.isnan(found["start_logits"]).all())
        self.assertTrue(np.isfinite(found["end_logits"]).all())

    def test_precision(self):
        """Asked for by name; a lower one is no more than close to fp32."""
        inputs = batch(2, 12, padded=False)
        exact = run(session(MODEL), inputs)
        np.testing.assert_equal(run(session(MODEL, {"precision": "fp32"}), inputs), exact)
        try:
            half = run(session(MODEL, {"precision": "fp16"}), inputs)
        except Exception as error:
            if "does not support fp16" not in str(error):
                raise
            self.skipTest(f"the device has no fp16: {error}")
        for name, values in exact.items():
            np.testing.assert_allclose(half[name], values, atol=0.2)

    def test_unregistered(self):
        """Sessions go on after their library is unregistered."""
        found = subprocess.run([sys.executable, pathlib.Path(__file__).parent / "unregister.py"],
                               capture_output=True, text=True, check=False)
        self.assertEqual((found.returncode, found.stdout), (0, "ended\n"), found.stderr)

    def test_wrong_input(self):
        runner = session(MODEL)
        inputs = batch(1, 8)
        inputs["input_ids"] = inputs["input_ids"] + 10**6  # beyond the vocabulary
        with self.assertRaisesRegex(Exception, "outside its table"):
            run(runner, inputs)
        run(runner, batch(1, 8))  # and goes on
