# SPDX-License-Identifier: Apache-2.0
"""The execution provider of ONNX Runtime: what it takes, its results, its options and its refusals."""
import concurrent.futures
import json
import os
import pathlib
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "python"))
import questions  # noqa: E402
from c_session import Session  # noqa: E402
from support import SHARED, bertcl, bertcl_run  # noqa: E402

PLUGIN = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR", ROOT / "build")) / "libonnxruntime_ep_bertcl.so"
MODEL = ROOT / "models" / "minilm-l6-squad" / "model.onnx"
NAME = "BertclExecutionProvider"


def devices():
    return [d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME]


def session(model, options=None, profile=None, without=None):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.add_provider_for_devices(devices()[:1], options or {})
    if profile:
        settings.enable_profiling = True
        settings.profile_file_prefix = str(profile)
    if without:
        settings.add_session_config_entry("optimization.disable_specified_optimizers", without)
    return onnxruntime.InferenceSession(model, settings, enable_fallback=0)


def batch(size, length, padded=True):
    random = np.random.default_rng(size * 1000 + length)
    mask = np.ones((size, length), np.int64)
    if padded:
        mask[0, (length + 1) // 2:] = 0
    return {"input_ids": random.integers(1000, 2000, (size, length)), "attention_mask": mask,
            "token_type_ids": np.zeros((size, length), np.int64)}


def run(runner, inputs):
    names = [o.name for o in runner.get_outputs()]
    return dict(zip(names, runner.run(names, inputs)))


def nodes_by_provider(model, inputs, options=None):
    """How many nodes of a run each provider computed."""
    with tempfile.TemporaryDirectory() as folder:
        runner = session(model, options, profile=pathlib.Path(folder) / "profile")
        run(runner, inputs)
        events = json.loads(pathlib.Path(runner.end_profiling()).read_text())
    counts = {}
    for event in events:
        provider = event.get("args", {}).get("provider")
        if provider and event["name"].endswith("_kernel_time"):
            counts[provider] = counts.get(provider, 0) + 1
    return counts


class Provider(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not PLUGIN.exists():
            raise unittest.SkipTest(f"{PLUGIN} is not built")
        if not any(d.ep_name == NAME for d in onnxruntime.get_ep_devices()):
            onnxruntime.register_execution_provider_library("bertcl", str(PLUGIN))
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.int8 = cls.folder / "int8.onnx"
        bertcl("quantize", MODEL, "-o", cls.int8, "--data", ROOT / "data" / "calibration.json",
               "--samples", 20)

    def save(self, model, name="model.onnx"):
        path = self.folder / name
        onnx.save(model, path)
        return path

    def save_graph(self, graph):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return self.save(model, f"{graph.name}.onnx")

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
        data, count = (dev, 500) if dev.exists() else (ROOT / "data" / "sample-v2.0.json", 150)
        vocabulary = questions.Vocabulary(MODEL.parent / "vocab.txt")
        examples = questions.load(data, count, vocabulary, max_length=256)
        runner, own = session(self.int8), Session(self.int8)
        for inputs, part in questions.batches(examples, 50):
            self.assertEqual(questions.answers(run(runner, inputs), part),
                             questions.answers(own.run(inputs), part))

    def test_other_nodes_stay(self):
        model = onnx.load(MODEL)
        output = model.graph.output[0]
        for node in model.graph.node:
            node.output[:] = ["inner" if name == output.name else name for name in node.output]
        model.graph.node.append(helper.make_node("Det", ["square"], ["unused_det"]))
        model.graph.node.append(helper.make_node("Sinh", ["inner"], [output.name]))
        model.graph.initializer.append(
            numpy_helper.from_array(np.eye(2, dtype=np.float32), "square"))
        path = self.save(model, "tail.onnx")
        inputs = batch(2, 13)
        counts = nodes_by_provider(path, inputs)
        self.assertEqual(counts[NAME], 1)
        self.assertGreaterEqual(counts["CPUExecutionProvider"], 1)
        found = run(session(path), inputs)
        reference = run(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]), inputs)
        # Of all rows: what follows may read padding, so none is dropped.
        np.testing.assert_allclose(found[output.name], reference[output.name], rtol=2e-4, atol=2e-3)

    def test_nothing_is_taken(self):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])
        y = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])
        graph = helper.make_graph([helper.make_node("Sinh", ["x"], ["y"])], "none", [x], [y])
        path = self.save_graph(graph)
        inputs = {"x": np.ones((2, 4), np.float32)}
        self.assertEqual(nodes_by_provider(path, inputs), {"CPUExecutionProvider": 1})

    def test_attributes_and_branches(self):
        """Tensors and lists of numbers as attributes; a branch stays with ONNX Runtime."""
        weight = np.arange(16, dtype=np.float32).reshape(4, 4) / 16
        then = helper.make_graph([helper.make_node("Neg", ["t"], ["a"])], "then", [],
                                 [helper.make_tensor_value_info("a", TensorProto.FLOAT, None)])
        other = helper.make_graph([helper.make_node("Abs", ["t"], ["b"])], "else", [],
                                  [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)])
        nodes = [helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight)),
                 helper.make_node("MatMul", ["x", "w"], ["m"]),
                 helper.make_node("Transpose", ["m"], ["t"], perm=[1, 0]),
                 helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)]
        graph = helper.make_graph(
            nodes, "branch", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4]),
                              helper.make_tensor_value_info("c", TensorProto.BOOL, [])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4, "n"])])
        path = self.save_graph(graph)
        x = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
        runner = session(path)
        for condition, sign in ((True, lambda v: -v), (False, np.abs)):
            found = runner.run(None, {"x": x, "c": np.array(condition)})[0]
            np.testing.assert_allclose(found, sign((x @ weight).T), rtol=1e-5, atol=1e-5)
        self.assertEqual(nodes_by_provider(path, {"x": x, "c": np.array(True)})[NAME], 1)

    def test_unknown_rank(self):
        """A value without a shape is no scalar: its node stays with ONNX Runtime, the others do not."""
        value = helper.make_tensor_value_info
        weight = np.random.default_rng(4).normal(size=(4, 4)).astype(np.float32)
        random = np.random.default_rng(5)
        inputs = {name: random.normal(size=(3, 4)).astype(np.float32) for name in "xz"}
        inner = [helper.make_node("Sinh", ["z"], ["s"]), helper.make_node("MatMul", ["x", "w"], ["m"]),
                 helper.make_node("Mul", ["m", "s"], ["y"])]
        outer = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Mul", ["m", "z"], ["y"])]
        for nodes, shape, factor, stays in (
                (inner, None, np.sinh, 2), (outer, None, lambda z: z, 1),
                # 1.23 does not tell scalars from values without a shape.
                (outer, [], lambda z: z, 1 if onnxruntime.__version__.startswith("1.23.") else None)):
            graph = helper.make_graph(nodes, "rank", [value("x", TensorProto.FLOAT, ["n", 4]),
                                                      value("z", TensorProto.FLOAT, shape)],
                                      [value("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weight, "w")])
            path = self.save_graph(graph)
            given = inputs if shape is None else {**inputs, "z": np.array(3, np.float32)}
            found = session(path).run(None, given)[0]
            np.testing.assert_allclose(found, inputs["x"] @ weight * factor(given["z"]), rtol=1e-5, atol=1e-5)
            counts = nodes_by_provider(path, given)
            self.assertEqual((counts[NAME], counts.get("CPUExecutionProvider")), (1, stays))

    def test_unknown_extents(self):
        """A value of another node that may have extent 1: what broadcasts it stays with ONNX Runtime."""
        value = helper.make_tensor_value_info
        weight = np.random.default_rng(9).normal(size=(4, 4)).astype(np.float32)
        graph = helper.make_graph(
            [helper.make_node("Expand", ["b", "shape"], ["e"]), helper.make_node("Sinh", ["e"], ["s"]),
             helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("MatMul", ["m", "w"], ["n"]),
             helper.make_node("Add", ["n", "s"], ["y"])],
            "extents", [value("x", TensorProto.FLOAT, [3, 4]), value("b", TensorProto.FLOAT, [1, 4]),
                        value("shape", TensorProto.INT64, [2])],
            [value("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(weight, "w")])
        path = self.save_graph(graph)
        random = np.random.default_rng(10)
        x, b = random.normal(size=(3, 4)).astype(np.float32), random.normal(size=(1, 4)).astype(np.float32)
        runner = session(path)
        for rows in (1, 3):
            found = runner.run(None, {"x": x, "b": b, "shape": np.array([rows, 4])})[0]
            np.testing.assert_allclose(found, x @ weight @ weight + np.sinh(b), rtol=1e-4, atol=1e-4)
        counts = nodes_by_provider(path, {"x": x, "b": b, "shape": np.array([1, 4])})
        self.assertEqual(counts[NAME], 1)

    def test_planner_refuses(self):
        """A size that only a run knows: its node stays with ONNX Runtime, the others do not."""
        value = helper.make_tensor_value_info
        weight = np.random.default_rng(6).normal(size=(4, 4)).astype(np.float32)
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Greater", ["y", "zero"], ["above"]),
             helper.make_node("NonZero", ["above"], ["hits"]), helper.make_node("NonZero", ["above"], ["again"])],
            "sizes", [value("x", TensorProto.FLOAT, ["n", 4])],
            [value("y", TensorProto.FLOAT, ["n", 4]), value("hits", TensorProto.INT64, [2, None]),
             value("again", TensorProto.INT64, [2, None])],
            [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.zeros(1, np.float32), "zero")])
        path = self.save_graph(graph)
        x = np.random.default_rng(7).normal(size=(5, 4)).astype(np.float32)
        found = run(session(path, without="CommonSubexpressionElimination"), {"x": x})
        np.testing.assert_allclose(found["y"], x @ weight, rtol=1e-5, atol=1e-5)
        for name in ("hits", "again"):
            np.testing.assert_array_equal(found[name], np.stack(np.nonzero(found["y"] > 0)))
        self.assertEqual(nodes_by_provider(path, {"x": x})[NAME], 1)

    def test_many_refused(self):
        """However many nodes stay with ONNX Runtime, the largest part between them does not."""
        value = helper.make_tensor_value_info
        weight = (np.random.default_rng(8).normal(size=(4, 4)) / 2).astype(np.float32)

        def strings(before, after):  # a type that bertcl lacks
            return [helper.make_node("Cast", [before], ["s" + after], to=TensorProto.STRING),
                    helper.make_node("Cast", ["s" + after], [after], to=TensorProto.FLOAT)]

        def edges(before, after):  # a mode that bertcl lacks
            return [helper.make_node("Pad", [before, "pads"], [after], mode="edge")]

        for refused in (strings, edges):
            nodes, last = [], "x"
            for i in range(20):
                nodes += [helper.make_node("MatMul", [last, "w"], [f"m{i}"]), *refused(f"m{i}", f"f{i}")]
                last = f"f{i}"
            for i in range(5):
                nodes.append(helper.make_node("MatMul", [last, "w"], [f"k{i}"]))
                last = f"k{i}"
            graph = helper.make_graph(
                nodes, "many", [value("x", TensorProto.FLOAT, ["n", 4])],
                [value(last, TensorProto.FLOAT, ["n", 4])],
                [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array([0, 1, 0, -1]), "pads")])
            path = self.save_graph(graph)
            counts = nodes_by_provider(path, {"x": np.ones((2, 4), np.float32)})
            self.assertEqual(counts[NAME], 1)
            self.assertEqual(counts["CPUExecutionProvider"], sum(n.op_type != "MatMul" for n in nodes) + 20)

    def test_context_models(self):
        settings = onnxruntime.SessionOptions()
        settings.log_severity_level = 3
        settings.add_provider_for_devices(devices()[:1], {})
        refusal = "bertcl writes no EPContext models"
        with self.assertRaisesRegex(Exception, refusal):
            onnxruntime.ModelCompiler(settings, str(MODEL)).compile_to_file(str(self.folder / "context.onnx"))
        settings.add_session_config_entry("ep.context_enable", "1")
        settings.add_session_config_entry("ep.context_file_path", str(self.folder / "context.onnx"))
        with self.assertRaisesRegex(Exception, refusal):
            onnxruntime.InferenceSession(MODEL, settings, enable_fallback=0)

    def test_bypass(self):
        """x -> MatMul -> Sinh -> MatMul -> Add with the first MatMul, around an operator that is not taken: not one node."""
        first, second = np.random.default_rng(2).normal(size=(2, 4, 4)).astype(np.float32)
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "first"], ["a"]), helper.make_node("Sinh", ["a"], ["s"]),
             helper.make_node("MatMul", ["s", "second"], ["b"]), helper.make_node("Add", ["a", "b"], ["y"])],
            "bypass", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
            [numpy_helper.from_array(first, "first"), numpy_helper.from_array(second, "second")])
        path = self.save_graph(graph)
        x = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
        found = session(path).run(None, {"x": x})[0]
        np.testing.assert_allclose(found, x @ first + np.sinh(x @ first) @ second, rtol=1e-4, atol=1e-4)
        self.assertEqual(nodes_by_provider(path, {"x": x})[NAME], 1)

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
        run(session(MODEL, {"device": "cpu", "precision": "fp32", "max_memory": str(1 << 30),
                            "drop_padding": "0"}), batch(1, 8))
        run(session(self.int8, {"require_int8": "1"}), batch(1, 8))

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
                ({"max_memory": "much"}, "option max_memory: 'much' is not a number"),
                ({"device": "nowhere"}, "device selector 'nowhere' matches no OpenCL device"),
                ({"max_memory": "1000"}, "allows 1000"),
                ({"requests": "0"}, "'0' is not a number from 1 to 1024")):
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
        except Exception as error:  # the device has no fp16
            self.assertRegex(str(error), "fp16")
            return
        for name, values in exact.items():
            np.testing.assert_allclose(half[name], values, atol=0.2)

    def test_wrong_input(self):
        runner = session(MODEL)
        inputs = batch(1, 8)
        inputs["input_ids"] = inputs["input_ids"] + 10**6  # beyond the vocabulary
        with self.assertRaisesRegex(Exception, "outside its table"):
            run(runner, inputs)
        run(runner, batch(1, 8))  # and goes on


if __name__ == "__main__":
    unittest.main()
