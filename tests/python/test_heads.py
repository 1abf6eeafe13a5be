# SPDX-License-Identifier: Apache-2.0
"""Every head of BERT and its relatives, as torch exports them and as ONNX Runtime quantizes that,
against ONNX Runtime."""
import unittest

import numpy as np
import onnx
from c_session import Session
from onnxruntime.quantization import QuantFormat, QuantType, quantize_static
from support import Batches, Reference, inspect, needs, scratch, silence

needs("torch", "transformers", "onnxscript")

from transformer_models import FAMILIES, HEADS, Model

OPSETS = (11, 13, 17, 23)  # the last by the exporter that captures the program
RELATIVE = 1e-4  # of the largest value
ROWS = 400  # decisions of a head, at least: one in a hundred may differ


def values_of(model, name, array, mask):
    """Rows of the output `name` that count: those of real tokens, or all."""
    return array[mask.astype(bool)] if name in model.by_token else array


class Heads(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        silence(self)

    def export(self, model, opset, captured=None):
        path = self.folder / "model.onnx"
        model.export(path, opset, captured)
        self.assertEqual({o.version for o in onnx.load(path).opset_import if o.domain == ""}, {opset})
        return path

    def quantize(self, model, path, opset):
        made = self.folder / "quantized.onnx"
        samples = Batches(model.batch(4, seed=seed) for seed in range(1, 6))
        quantize_static(path, made, samples, quant_format=QuantFormat.QDQ,
                        per_channel=opset >= 13,  # DequantizeLinear had no axis before
                        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
                        op_types_to_quantize=["MatMul", "Gemm"],
                        extra_options=dict(OpTypesToExcludeOutputQuantization=["MatMul", "Gemm"]))
        return made

    def check_fp32(self, model, path):
        session, reference = Session(path), Reference(path)
        for count, longest in (1, 7), (3, 24):
            inputs = model.batch(count, longest)
            found, expected = session.run(inputs), reference.run(inputs)
            for name in model.by_token + model.by_text:
                a, b = (values_of(model, name, x[name], inputs["attention_mask"])
                        for x in (found, expected))
                self.assertLess(np.abs(a - b).max(), RELATIVE * np.abs(b).max(), name)

    def check_int8(self, model, path):
        one_of_all_tokens = model.by_token[:1] == ["start_logits"]
        inputs = model.batch(ROWS if model.by_text or one_of_all_tokens else ROWS // 8)
        found, expected = Session(path).run(inputs), Reference(path).run(inputs)
        for name in model.by_token + model.by_text:
            a, b = found[name], expected[name]
            if one_of_all_tokens:  # start and end
                mask = inputs["attention_mask"].astype(bool)
                a, b = np.where(mask, a, -np.inf), np.where(mask, b, -np.inf)
            else:
                a, b = (values_of(model, name, x, inputs["attention_mask"]) for x in (a, b))
            equal = np.mean(a.argmax(-1) == b.argmax(-1))
            self.assertGreaterEqual(equal, 0.99, name)
        ops = [op["op"] for op in inspect(path, "--batch", "2", "--seq", "24")["ops"]]
        self.assertIn("linear_q", ops)

    def check(self, opset, captured=None, **kind):
        model = Model(**kind)
        path = self.export(model, opset, captured)
        self.check_fp32(model, path)
        self.check_int8(model, self.quantize(model, path, opset))

    def test_every_head(self):
        for head in HEADS:
            for opset in OPSETS:
                with self.subTest(head=head, opset=opset):
                    self.check(opset, head=head)

    def test_oldest_opset_of_the_exporter_that_captures(self):
        for head in ("question answering", "multiple choice"):
            with self.subTest(head=head):
                self.check(18, captured=True, head=head)

    def test_classification_without_token_types(self):
        for opset in OPSETS[-2:]:
            with self.subTest(opset=opset):
                self.check(opset, head="sequence classification", types=False)

    def test_relatives(self):
        for family in FAMILIES:
            if family == "bert":
                continue  # its question answering is among the heads
            for opset in OPSETS[-2:]:
                with self.subTest(family=family, opset=opset):
                    self.check(opset, family=family)
