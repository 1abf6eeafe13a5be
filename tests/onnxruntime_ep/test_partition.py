# SPDX-License-Identifier: Apache-2.0
"""Which part of a graph the execution provider takes."""
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sessions import MODEL, NAME, ProviderTest, batch, nodes_by_provider, run, session


class Partition(ProviderTest):
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

    def test_matmuls_in_branches(self):
        """Stay with ONNX Runtime, though one of the graph around them is taken."""
        value = helper.make_tensor_value_info
        branches = {f"{name}_branch": helper.make_graph([helper.make_node("MatMul", [left, "w"], [name])], name, [],
                                                        [value(name, TensorProto.FLOAT, None)])
                    for name, left in (("then", "m"), ("else", "x"))}
        path = self.save_graph(helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("If", ["c"], ["y"], **branches)], "matmuls",
            [value("x", TensorProto.FLOAT, ["n", 4]), value("c", TensorProto.BOOL, [])],
            [value("y", TensorProto.FLOAT, None)], [numpy_helper.from_array(2 * np.eye(4, dtype=np.float32), "w")]))
        x = np.ones((2, 4), np.float32)
        for condition, times in ((True, 4), (False, 2)):
            inputs = {"x": x, "c": np.array(condition)}
            np.testing.assert_array_equal(session(path).run(None, inputs)[0], times * x)
            self.assertEqual(nodes_by_provider(path, inputs)[NAME], 1)

    def test_weights_of_few_bits(self):
        """MatMulNBits is taken, a DequantizeLinear of int4 is not."""
        value, random = helper.make_tensor_value_info, np.random.default_rng(6)
        codes = random.integers(0, 256, (5, 2, 8)).astype(np.uint8)
        scales = random.normal(size=(5, 2)).astype(np.float32)
        whole = np.stack([codes & 15, codes >> 4], -1).reshape(5, 2, 16).astype(np.float32) - 8
        weight = (whole * scales[:, :, None]).reshape(5, 32).T
        integers = helper.make_tensor("i", TensorProto.INT4, [5, 3], random.integers(-8, 8, 15).tolist())
        nodes = [helper.make_node("MatMulNBits", ["x", "b", "s"], ["m"], domain="com.microsoft", K=32, N=5, bits=4,
                                  block_size=16),
                 helper.make_node("DequantizeLinear", ["i", "half"], ["d"]),
                 helper.make_node("MatMul", ["m", "d"], ["y"])]
        graph = helper.make_graph(
            nodes, "bits", [value("x", TensorProto.FLOAT, ["n", 32])], [value("y", TensorProto.FLOAT, ["n", 3])],
            [numpy_helper.from_array(codes, "b"), numpy_helper.from_array(scales, "s"), integers,
             numpy_helper.from_array(np.float32(0.5), "half")])
        path = self.save(helper.make_model(graph, ir_version=10, opset_imports=[
            helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]), "bits.onnx")
        x = random.normal(size=(7, 32)).astype(np.float32)
        expected = x @ weight @ (numpy_helper.to_array(integers).astype(np.float32) * 0.5)
        np.testing.assert_allclose(session(path).run(None, {"x": x})[0], expected, rtol=0,
                                   atol=1e-5 * np.abs(expected).max())
        counts = nodes_by_provider(path, {"x": x})
        self.assertEqual((counts[NAME], counts.get("CPUExecutionProvider", 0)), (1, 1))

    def test_unknown_rank(self):
        """A value without a shape is not a scalar: its node stays with ONNX Runtime, the others do not."""
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

    def test_unknown_rank_of_many(self):
        """However many nodes use a value without a shape, the others are taken."""
        value = helper.make_tensor_value_info
        nodes, last, results = [], "x", []
        for i in range(5):
            nodes.append(helper.make_node("MatMul", [last, "w"], [f"m{i}"]))
            last = f"m{i}"
        nodes += [helper.make_node("Sinh", [last], ["s"]), helper.make_node("Reshape", ["s", "shape"], ["y"])]
        for i in range(24):
            nodes.append(helper.make_node("MatMul", ["y", "w"], [f"k{i}"]))
            results.append(value(f"k{i}", TensorProto.FLOAT, None))
        graph = helper.make_graph(
            nodes, "ranks", [value("x", TensorProto.FLOAT, ["n", 4]), value("shape", TensorProto.INT64, ["r"])],
            results, [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
        inputs = {"x": np.ones((4, 4), np.float32), "shape": np.array([4, 4])}
        self.assertEqual(nodes_by_provider(self.save_graph(graph), inputs)[NAME], 1)

    def with_unknown_extents(self, nodes, inputs, constants):
        """A session of a graph in which `s`, the sinh of b [1, 4] expanded to a shape of the run, comes from ONNX
        Runtime, and its path."""
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [helper.make_node("Expand", ["b", "shape"], ["e"]), helper.make_node("Sinh", ["e"], ["s"]),
             *(helper.make_node(kind, operands, [result]) for kind, operands, result in nodes)],
            "extents", [*inputs, value("b", TensorProto.FLOAT, [1, 4]), value("shape", TensorProto.INT64, [2])],
            [value("y", TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in constants.items()])
        path = self.save_graph(graph)
        return session(path), path

    def test_unknown_extents(self):
        """A value of another node that may have extent 1: what broadcasts it stays with ONNX Runtime."""
        weight = np.random.default_rng(9).normal(size=(4, 4)).astype(np.float32)
        nodes = [("MatMul", ["x", "w"], "m"), ("MatMul", ["m", "w"], "n"), ("Add", ["n", "s"], "y")]
        runner, path = self.with_unknown_extents(
            nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 4])], {"w": weight})
        random = np.random.default_rng(10)
        x, b = random.normal(size=(3, 4)).astype(np.float32), random.normal(size=(1, 4)).astype(np.float32)
        for rows in (1, 3):
            found = runner.run(None, {"x": x, "b": b, "shape": np.array([rows, 4])})[0]
            np.testing.assert_allclose(found, x @ weight @ weight + np.sinh(b), rtol=1e-4, atol=1e-4)
        counts = nodes_by_provider(path, {"x": x, "b": b, "shape": np.array([1, 4])})
        self.assertEqual(counts[NAME], 1)

    def test_unknown_extents_that_are_expanded(self):
        """By Expand within the part, to a shape that is known."""
        weight = np.random.default_rng(9).normal(size=(4, 4)).astype(np.float32)
        nodes = [("MatMul", ["s", "w"], "m"), ("MatMul", ["m", "w"], "n"), ("Expand", ["n", "wide"], "y")]
        runner, path = self.with_unknown_extents(nodes, [], {"w": weight, "wide": np.array([3, 4])})
        b = np.random.default_rng(10).normal(size=(1, 4)).astype(np.float32)
        for rows in (1, 3):
            found = runner.run(None, {"b": b, "shape": np.array([rows, 4])})[0]
            expected = np.broadcast_to(np.sinh(b) @ weight @ weight, (3, 4))
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
        self.assertEqual(nodes_by_provider(path, {"b": b, "shape": np.array([1, 4])})[NAME], 1)

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
