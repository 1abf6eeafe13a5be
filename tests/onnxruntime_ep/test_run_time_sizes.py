# SPDX-License-Identifier: Apache-2.0
"""What the execution provider takes of nodes whose shapes only a run knows."""

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sessions import MODEL, NAME, ProviderTest, batch, nodes_by_provider, run, session

EYE = np.eye(4, dtype=np.float32)
FREE = ["b", "s", 4]


class RunTimeSizes(ProviderTest):
    def graph(self, nodes, inputs, constants=(), outputs=("y",)):
        """The path of a graph of (operator, operands, result) on float inputs and w, the identity."""
        value = helper.make_tensor_value_info
        arrays = {"w": EYE, **dict(constants)}
        return self.save_graph(helper.make_graph(
            [helper.make_node(kind, operands, [result]) for kind, operands, result in nodes], "sizes",
            [value(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
            [value(name, TensorProto.FLOAT, None) for name in outputs],
            [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]))

    def check(self, path, inputs):
        """As the CPU provider computes it."""
        found = run(session(path), inputs)
        reference = run(onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]), inputs)
        for name, expected in reference.items():
            np.testing.assert_allclose(found[name], expected, rtol=1e-4, atol=1e-4, err_msg=name)

    def sliced(self, start, end, shape=FREE):
        return self.graph([("MatMul", ["x", "w"], "m"), ("Slice", ["m", "start", "end", "axis"], "y")], {"x": shape},
                          {"start": [start], "end": [end], "axis": [1]})

    def slices(self, start, end, shape=FREE, rows=6):
        """The nodes of the CPU provider."""
        inputs = {"x": np.ones((2, rows, 4), np.float32)}
        counts = nodes_by_provider(self.sliced(start, end, shape), inputs)
        self.assertEqual(counts[NAME], 1)
        return counts.get("CPUExecutionProvider", 0)

    def test_end_beyond_a_free_axis(self):
        """x[:, :5] and x[:, -2:] have fewer elements of a short axis, which the engine refuses: they stay with ONNX
        Runtime."""
        random = np.random.default_rng(1)
        for start, end in ((0, 5), (1, 5), (0, 2), (-2, 2**31 - 1), (-3, -1)):
            path = self.sliced(start, end)
            for rows in (1, 2, 5, 7):
                self.check(path, {"x": random.normal(size=(2, rows, 4)).astype(np.float32)})
            self.assertEqual(self.slices(start, end), 1)

    def test_start_before_a_free_axis(self):
        """y[:, -5:-2] where y has 4, 8, 12 columns: two elements are of fewer than five."""
        path = self.graph(
            [("MatMul", ["x", "w"], "m"), ("Reshape", ["m", "flat"], "rows"),
             ("Slice", ["rows", "start", "end", "axis"], "y")], {"x": FREE},
            {"flat": [0, -1], "start": [-5], "end": [-2], "axis": [1]})
        random = np.random.default_rng(8)
        for rows in 1, 2, 3:
            self.check(path, {"x": random.normal(size=(2, rows, 4)).astype(np.float32)})

    def test_ends_within_the_axis(self):
        for start, end, shape in ((0, 1, FREE), (0, 5, ["b", 6, 4]), (0, 9, ["b", 6, 4]), (0, 2**31 - 1, FREE),
                                  (-1, 2**62, FREE)):
            self.assertEqual(self.slices(start, end, shape), 0, (start, end, shape))

    def test_truncated_inputs(self):
        """A model that truncates its inputs to 16 tokens."""
        model = onnx.load(MODEL)
        names = [value.name for value in model.graph.input]
        for node in model.graph.node:
            node.input[:] = [name + "_cut" if name in names else name for name in node.input]
        cut = [helper.make_node("Slice", [name, "cut_start", "cut_end", "cut_axis"], [name + "_cut"])
               for name in names]
        rest = list(model.graph.node)
        del model.graph.node[:]
        model.graph.node.extend(cut + rest)
        for name, number in (("cut_start", 0), ("cut_end", 16), ("cut_axis", 1)):
            model.graph.initializer.append(numpy_helper.from_array(np.array([number]), name))
        for output in model.graph.output:
            output.type.tensor_type.shape.dim[1].dim_param = "cut"
        path = self.save(model, "cut.onnx")
        for length in (5, 16, 21):
            self.check(path, batch(2, length, padded=False))

    def test_position_tables(self):
        """A table of positions is sliced by the length of the ids, as exports have it: all is taken."""
        random = np.random.default_rng(2)
        path = self.graph(
            [("MatMul", ["x", "w"], "m"), ("Shape", ["x"], "shape"), ("Slice", ["shape", "one", "two"], "length"),
             ("Slice", ["table", "zero", "length", "one"], "positions"), ("Add", ["m", "positions"], "y")],
            {"x": FREE}, {"zero": [0], "one": [1], "two": [2],
                          "table": random.normal(size=(1, 32, 4)).astype(np.float32)})
        inputs = {"x": random.normal(size=(2, 7, 4)).astype(np.float32)}
        self.check(path, inputs)
        self.assertEqual(nodes_by_provider(path, inputs), {NAME: 1})

    def test_end_at_another_size(self):
        """x[:, :t] where t may be more than s."""
        path = self.graph(
            [("MatMul", ["x", "w"], "m"), ("Shape", ["u"], "shape"), ("Slice", ["shape", "one", "two"], "length"),
             ("Slice", ["m", "zero", "length", "one"], "y")], {"x": FREE, "u": ["b", "t", 4]},
            {"zero": [0], "one": [1], "two": [2]})
        x = np.random.default_rng(3).normal(size=(2, 5, 4)).astype(np.float32)
        for rows in (3, 5, 7):
            self.check(path, {"x": x, "u": np.zeros((2, rows, 4), np.float32)})

    def test_other_extents(self):
        """Extents of two names, or without one, may be 1 in a run: what broadcasts them stays with ONNX Runtime, the rest
        does not."""
        random = np.random.default_rng(4)
        direct = [("MatMul", ["x", "w"], "m"), ("MatMul", ["m", "w"], "n"), ("Add", ["n", "u"], "y")]
        parts = [("Sinh", ["x"], "p"), ("MatMul", ["p", "w"], "m"), ("MatMul", ["m", "w"], "n"), ("Sinh", ["u"], "q"),
                 ("Add", ["n", "q"], "y")]
        choice = [("MatMul", ["x", "w"], "m"), ("MatMul", ["m", "w"], "n"), ("Greater", ["u", "u"], "above"),
                  ("Where", ["above", "u", "n"], "y")]
        batched = [("MatMul", ["x", "w"], "m"), ("MatMul", ["m", "w"], "n"), ("MatMul", ["n", "u"], "y")]
        for nodes, left, right in ((direct, FREE, ["c", "d", 4]), (direct, [None, None, 4], [None, None, 4]),
                                   (direct, FREE, ["b", 5, 4]), (parts, FREE, ["c", "d", 4]),
                                   (choice, FREE, ["c", "s", 4]), (batched, FREE, ["c", 4, "d"])):
            path = self.graph(nodes, {"x": left, "u": right})
            x = random.normal(size=(3, 5, 4)).astype(np.float32)
            for rows in (3, 1) if right[0] != "b" else (3,):
                u = random.normal(size=(rows, 4 if right[1] == 4 else 5, 4)).astype(np.float32)
                for one in (x, x[:, :1] if right[1] != "s" else x):
                    self.check(path, {"x": one, "u": u})
                    self.assertEqual(nodes_by_provider(path, {"x": one, "u": u})[NAME], 1)

    def test_expand(self):
        """To a number, or to a size that only a run compares with that of the operand."""
        random = np.random.default_rng(6)
        ends = [("MatMul", ["x", "w"], "m"), ("Expand", ["m", "target"], "y")]
        for left, right in ((["c", "s", 4], FREE), ([None, "s", 4], [None, "s", 4]), (["c", "s", 4], [3, 5, 4])):
            inputs, constants = {"x": left, "u": right}, {}
            nodes = [("Shape", ["u"], "target"), *ends]
            if right == [3, 5, 4]:
                inputs, constants, nodes = {"x": left}, {"target": right}, ends
            path = self.graph(nodes, inputs, constants)
            for rows in 3, 1:
                given = {"x": random.normal(size=(rows, 5, 4)), "u": random.normal(size=(3, 5, 4))}
                given = {name: given[name].astype(np.float32) for name in inputs}
                self.check(path, given)
                self.assertEqual(nodes_by_provider(path, given)[NAME], 1)

    def test_expand_along_known_axes(self):
        """Of 1, or to sizes of the operand itself."""
        path = self.graph(
            [("MatMul", ["x", "w"], "m"), ("Slice", ["m", "zero", "one", "one"], "first"), ("Shape", ["x"], "target"),
             ("Expand", ["first", "target"], "y")], {"x": FREE}, {"zero": [0], "one": [1]})
        inputs = {"x": np.random.default_rng(7).normal(size=(2, 3, 4)).astype(np.float32)}
        self.check(path, inputs)
        self.assertEqual(nodes_by_provider(path, inputs), {NAME: 1})

    def test_expand_to_values_of_an_input(self):
        """Whole shapes, and one extent."""
        value = helper.make_tensor_value_info
        for rank, concat in ((3, []), (1, [helper.make_node("Concat", ["k", "tail"], ["target"], axis=0)])):
            path = self.save_graph(helper.make_graph(
                [helper.make_node("MatMul", ["x", "w"], ["m"]), *concat,
                 helper.make_node("Expand", ["m", "target" if concat else "k"], ["y"])], "expand",
                [value("x", TensorProto.FLOAT, FREE), value("k", TensorProto.INT64, [rank])],
                [value("y", TensorProto.FLOAT, None)],
                [numpy_helper.from_array(EYE, "w"), numpy_helper.from_array(np.array([1, 4]), "tail")]))
            x = np.ones((1, 1, 4), np.float32)
            self.check(path, {"x": x, "k": np.array([5, 1, 4][:rank])})
            self.assertEqual(nodes_by_provider(path, {"x": x, "k": np.array([5, 1, 4][:rank])})[NAME], 1)

    def test_squeeze_without_axes(self):
        """Extents that are 1 in some runs."""
        path = self.graph([("MatMul", ["x", "w"], "m"), ("Squeeze", ["m"], "y")], {"x": FREE})
        for shape in (1, 3, 4), (2, 1, 4), (1, 1, 4), (2, 3, 4):
            self.check(path, {"x": np.ones(shape, np.float32)})
        self.assertEqual(nodes_by_provider(path, {"x": np.ones((2, 3, 4), np.float32)})[NAME], 1)

    def test_zero_points(self):
        """One for all columns, or one for each, as a run has it."""
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("MatMulInteger", ["a", "b", "", "z"], ["q"])],
            "zeros", [value("x", TensorProto.FLOAT, FREE), value("a", TensorProto.UINT8, ["m", 4]),
                      value("b", TensorProto.UINT8, [4, "n"]), value("z", TensorProto.UINT8, ["c"])],
            [value("y", TensorProto.FLOAT, None), value("q", TensorProto.INT32, None)],
            [numpy_helper.from_array(EYE, "w")])
        path = self.save_graph(graph)
        random = np.random.default_rng(5)
        for zeros in 1, 6:
            inputs = {"x": np.ones((2, 3, 4), np.float32), "a": random.integers(0, 9, (3, 4)).astype(np.uint8),
                      "b": random.integers(0, 9, (4, 6)).astype(np.uint8),
                      "z": random.integers(0, 9, zeros).astype(np.uint8)}
            self.check(path, inputs)
            self.assertEqual(nodes_by_provider(path, inputs), {NAME: 1, "CPUExecutionProvider": 1})

    def test_inputs_of_bert(self):
        """Names of torch.onnx.export with dynamic_axes={"input_ids": [0, 1], ...}: of each input its own."""
        model = onnx.load(MODEL)
        for value in model.graph.input:
            for axis, dim in enumerate(value.type.tensor_type.shape.dim, 1):
                dim.dim_param = f"{value.name}_dynamic_axes_{axis}"
        path, inputs = self.save(model, "axes.onnx"), batch(2, 7, padded=False)
        self.check(path, inputs)
        self.assertEqual(nodes_by_provider(path, inputs), {NAME: 1})
