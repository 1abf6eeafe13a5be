# SPDX-License-Identifier: Apache-2.0
"""Decoders with inputs for keys and values of earlier tokens, which bertcl reads as if there were none, against ONNX
Runtime fed with empty ones."""
import unittest

import numpy as np
import onnx
from c_session import Session
from onnx import helper
from support import Reference, bertcl, inspect, model_of, scratch

HIDDEN, HEADS, SHARED, SIZE, VOCABULARY, LONGEST = 32, 4, 2, 16, 50, 16
LENGTHS = (11, 1, 6)


class Past(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(1)
        self.path = scratch(self) / "model.onnx"

    def floats(self, *shape):
        return self.random.standard_normal(shape).astype(np.float32)

    def save(self, packed=False, rotary_size=SIZE, attributes=None, positions=False, outputs=("y",)):
        """Embeddings, GroupQueryAttention with the lengths that ONNX Runtime's model builder makes of the mask, and a
        projection."""
        widths = HEADS * SIZE, SHARED * SIZE, SHARED * SIZE
        constants = dict(table=self.floats(VOCABULARY, HIDDEN), one=np.array([1], np.int64), axis=np.array(1, np.int64),
                         axes=np.array([1], np.int64), proj=self.floats(HEADS * SIZE, HIDDEN))
        angles = np.arange(LONGEST)[:, None] / 10 ** np.linspace(0, 2, rotary_size // 2)
        constants |= dict(cos=np.cos(angles).astype(np.float32), sin=np.sin(angles).astype(np.float32))
        nodes = [helper.make_node("Gather", ["table", "input_ids"], ["x"])]
        names = ["qkv"] if packed else ["q", "k", "v"]
        for name, width in zip(names, [sum(widths)] if packed else widths):
            constants["w_" + name] = self.floats(HIDDEN, width)
            nodes.append(helper.make_node("MatMul", ["x", "w_" + name], [name]))
        operands = [*(names if not packed else ["qkv", "", ""]), "past_key_values.0.key", "past_key_values.0.value",
                    "lengths", "total", "cos", "sin", *(["position_ids"] if positions else [])]
        nodes += [
            helper.make_node("ReduceSum", ["attention_mask", "axes"], ["sum"]),
            helper.make_node("Sub", ["sum", "one"], ["less"]),
            helper.make_node("Cast", ["less"], ["lengths"], to=onnx.TensorProto.INT32),
            helper.make_node("Shape", ["attention_mask"], ["sizes"]),
            helper.make_node("Gather", ["sizes", "axis"], ["longest"]),
            helper.make_node("Cast", ["longest"], ["total"], to=onnx.TensorProto.INT32),
            helper.make_node("GroupQueryAttention", operands, ["mixed", "present.0.key", "present.0.value"],
                             name="attend", domain="com.microsoft",
                             **{"num_heads": HEADS, "kv_num_heads": SHARED, **(attributes or {})}),
            helper.make_node("MatMul", ["mixed", "proj"], ["y"]),
        ]
        past = np.float32, ("batch", SHARED, "past_sequence_length", SIZE)
        tokens = np.int64, ("batch", "seq")
        inputs = dict(input_ids=tokens, attention_mask=(np.int64, ("batch", "total_sequence_length")))
        if positions:
            inputs["position_ids"] = tokens
        inputs |= {f"past_key_values.0.{what}": past for what in ("key", "value")}
        onnx.save(model_of(nodes, inputs, list(outputs), constants), self.path)

    def check(self, **options):
        self.save(**options, outputs=("y", "present.0.key", "present.0.value"))
        session, reference = Session(self.path), Reference(self.path)
        for lengths in LENGTHS, (7,), (3, 3):
            shape = len(lengths), max(lengths)
            mask = np.arange(shape[1])[None] < np.array(lengths)[:, None]
            inputs = dict(input_ids=self.random.integers(0, VOCABULARY, shape), attention_mask=mask.astype(np.int64))
            if options.get("positions"):
                inputs["position_ids"] = np.tile(np.arange(shape[1], dtype=np.int64) + 2, (shape[0], 1))
            empty = np.zeros((shape[0], SHARED, 0, SIZE), np.float32)
            expected = reference.run({**inputs, "past_key_values.0.key": empty, "past_key_values.0.value": empty})["y"]
            found = session.run(inputs)
            self.assertEqual(list(found), ["y"])
            np.testing.assert_allclose(found["y"][mask], expected[mask], rtol=0, atol=1e-4 * np.ptp(expected))

    def test_queries_that_share_keys(self):
        self.check()
        self.check(packed=True, attributes=dict(scale=0.2, softcap=3.0))

    def test_rotation(self):
        self.check(attributes=dict(do_rotary=1))
        self.check(attributes=dict(do_rotary=1, rotary_interleaved=1), packed=True)
        self.check(attributes=dict(do_rotary=1), positions=True)
        self.assertIn("attention", [op["op"] for op in inspect(self.path)["ops"]])

    def test_what_is_refused(self):
        for attribute, value, message in (("local_window_size", 4, "a local_window_size is not supported"),
                                          ("smooth_softmax", 1, "smooth_softmax is not supported"),
                                          ("kv_num_heads", 3, "into 3 heads")):
            self.save(attributes={attribute: value})
            self.assertRegex(bertcl("inspect", self.path, expect=2).stderr, f"attend.*{message}")
        self.save(outputs=("present.0.key",))
        self.assertIn("the model has no outputs; export hidden states", bertcl("inspect", self.path, expect=2).stderr)
