# SPDX-License-Identifier: Apache-2.0
"""The spellings of one quantized model compile to the same launches, or the report says why not; and each
launch is a kernel."""
import logging
import unittest

import launches
from support import scratch, shallow_model

QUESTIONS = 20


class SpellingsOfTheDefaultModel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.disable(logging.WARNING)
        cls.addClassCleanup(logging.disable, logging.NOTSET)
        # Two layers: those of one spelling are all alike.
        cls.all = {found.name: found for found in launches.all_launches(shallow_model(cls), scratch(cls), QUESTIONS)}
        cls.own = cls.all["bertcl"]

    def test_calibrated_matmuls_need_the_same_launches(self):
        for name, found in self.all.items():
            if "dynamic" in name or "every operator" in name:
                continue
            with self.subTest(name):
                self.assertEqual(found.operators, self.own.operators)
                self.assertEqual(found.integer_linears, self.own.integer_linears)
                self.assertEqual(found.report["why_not_int8"], [])

    def test_further_launches_have_a_reason(self):
        # The fused operators count the tokens of a mask and have one linear for queries, keys and values.
        for name in ("ONNX Runtime, dynamic", "fused operators, dynamic"):
            found = self.all[name]
            more = found.more_than(self.own)
            more.pop("attention")  # the MatMuls of attention are not quantized dynamically
            self.assertEqual(more.keys(), {"DynamicQuantizeLinear"})
            self.assertIn("range", more["DynamicQuantizeLinear"][1])
            self.assertEqual(found.count, self.own.count + found.operators["DynamicQuantizeLinear"])
        found = self.all["ONNX Runtime, every operator"]
        self.assertGreater(found.count, self.own.count)
        for op, (_, why) in found.more_than(self.own).items():
            if op in ("QuantizeLinear", "DequantizeLinear", "Add", "Mul", "Div", "Erf"):
                self.assertNotEqual(why, "", op)

    def test_logits(self):
        """As near to ONNX Runtime as it is to itself with its graph optimizations (test_onnxruntime tells why
        not nearer); exact where those change nothing."""
        for name, found in self.all.items():
            with self.subTest(name):
                told = f"bertcl: {found.closeness}; ONNX Runtime, optimized: {found.peer}"
                self.assertLess(found.closeness.rms, max(1.5 * found.peer.rms, 0.02 * found.peer.range), told)

    def test_every_launch_is_a_kernel(self):
        for name, found in self.all.items():
            with self.subTest(name):
                self.assertEqual(sum(len(layer["launches"]) for layer in found.report["layers"]), found.count)
                for op in found.report["ops"]:
                    self.assertTrue(op["kernel"], op)
