# SPDX-License-Identifier: Apache-2.0
"""Encoders whose last operators read rows of padding, against ONNX Runtime."""
import unittest

import numpy as np
import onnx
from c_session import Session
from onnx import TensorProto, helper
from support import Reference, inspect, model_of, scratch

WIDTH, HEADS = 8, 2
MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 0, 0, 0, 0]])


class Model:
    """Nodes on the inputs `x` and `z` [batch, seq, WIDTH] and `mask` [batch, seq]; other operands are constants."""

    def __init__(self):
        self.random = np.random.default_rng(3)
        self.nodes, self.constants = [], {}
        self.inputs = {"x": self.floats(*MASK.shape, WIDTH), "z": self.floats(*MASK.shape, WIDTH), "mask": MASK}
        self.real = self("Cast", "mask", to=TensorProto.FLOAT)
        self.column = self("Unsqueeze", self.real, [2])  # [batch, seq, 1]

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def __call__(self, op, *operands, name=None, **attributes):
        names = []
        for operand in operands:
            if not isinstance(operand, str):
                array = np.asarray(operand)
                operand = f"c{len(self.constants)}"
                self.constants[operand] = array.astype(np.float32) if array.dtype == np.float64 else array
            names.append(operand)
        name = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, names, [name], **attributes))
        return name

    def linear(self, x, width=WIDTH):
        return self("MatMul", x, self.floats(WIDTH, width) / 3)

    def attention(self, queries, keys):
        def heads(x, perm):
            split = self("Reshape", self.linear(x), [0, 0, HEADS, WIDTH // HEADS])
            return self("Transpose", split, perm=perm)
        hidden = self("Mul", self("Sub", 1.0, self("Unsqueeze", self.real, [1, 2])), -1e9)
        scores = self("MatMul", heads(queries, [0, 2, 1, 3]), heads(keys, [0, 2, 3, 1]))
        p = self("Softmax", self("Add", scores, hidden), axis=-1)
        context = self("Transpose", self("MatMul", p, heads(keys, [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        return self("Reshape", context, [0, 0, WIDTH])

    def norm(self, x):
        return self("LayerNormalization", x, self.floats(WIDTH), self.floats(WIDTH), axis=-1)

    def encoder(self):
        return self.norm(self("Add", self.attention("x", "x"), "x"))

    def save(self, result, path):
        self("Identity", result, name="y")
        model = model_of(self.nodes, self.inputs, ["y"], self.constants)
        for given in model.graph.input:
            for axis, name in enumerate(("batch", "seq")):
                given.type.tensor_type.shape.dim[axis].dim_param = name
        onnx.save(model, path)


class Padding(unittest.TestCase):
    def setUp(self):
        self.path = scratch(self) / "model.onnx"

    def check(self, make, fused=True):
        """Rows of the real tokens, or all of what has none."""
        model = Model()
        model.save(make(model), self.path)
        found, expected = (run(self.path).run(model.inputs)["y"] for run in (Session, Reference))
        self.assertEqual(found.shape, expected.shape)
        if expected.shape[:2] == MASK.shape:
            found, expected = found[MASK.astype(bool)], expected[MASK.astype(bool)]
        self.assertLess(np.abs(found - expected).max(), 1e-5 * np.abs(expected).max())
        ops = [op["op"] for op in inspect(self.path)["ops"]]
        self.assertEqual("attention" in ops, fused, ops)

    def test_queries_of_other_tokens_than_the_keys(self):
        self.check(lambda m: m.norm(m("Add", m.attention("z", m.encoder()), "z")))
        self.check(lambda m: m.norm(m("Add", m.attention("z", "x"), "z")), fused=False)

    def test_what_is_made_of_the_mask_hides_by_its_values(self):
        total = lambda m, x: m("ReduceSum", x, [1], keepdims=0)
        for factor in 0.0, 0.5:
            self.check(lambda m: total(m, m("Mul", m.encoder(), m("Add", m.column, factor))))
        self.check(lambda m: total(m, m("Mul", m.encoder(), m("Sub", 1.0, m.column))))
        self.check(lambda m: total(m, m("Max", m.encoder(), m.column)))
        far = lambda m: m("Mul", m("Sub", 1.0, m.column), -1e4)
        for reduction in "ReduceMax", "ReduceMin":
            self.check(lambda m: m(reduction, m("Add", m.encoder(), far(m)), axes=[1], keepdims=0))
        for mask in far, lambda m: m.column:
            def pooled(m):
                x = m.encoder()
                return total(m, m("Mul", x, m("Softmax", m("Add", m.linear(x, 1), mask(m)), axis=1)))
            self.check(pooled)

    def test_sequences_of_a_batch_beside_each_other(self):
        def after(tail):
            def make(m):
                x = m.encoder()
                return tail(m, x)
            self.check(make)
        for op in "ReduceMean", "ReduceMax":
            after(lambda m, x: m("Sub", x, m(op, x, axes=[0])))
        after(lambda m, x: m("Softmax", x, axis=0))
        for which in 0, -1:
            after(lambda m, x: m("Sub", x, m("Gather", x, [which], axis=0)))
