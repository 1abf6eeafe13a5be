# SPDX-License-Identifier: Apache-2.0
"""Encoders of images with random weights, as both exporters of torch write them, against ONNX Runtime: results, and that
their attention is fused, in fp32 and with calibrated scales."""
import unittest

import numpy as np
from c_session import Session
from support import Reference, inspect, needs, scratch, silence

needs("torch", "transformers", "onnxscript")

import torch
import transformers
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from transformer_models import Outputs, export_images, spread_parameters

SIZES = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8)
OUTPUTS = ["last_hidden_state", "pooler_output"]
MODELS = {"ViT": "ViT", "CLIP": "CLIPVision"}


def export(name, attention, captured, path):
    torch.manual_seed(0)
    config = getattr(transformers, MODELS[name] + "Config")(**SIZES)
    config._attn_implementation = attention
    model = getattr(transformers, MODELS[name] + "Model")(config).eval()
    spread_parameters(model, 2)
    export_images(Outputs(model, ["pixel_values"], OUTPUTS).eval(), batch(2), path, captured, OUTPUTS)


def batch(count, seed=0):
    return np.random.default_rng(seed).standard_normal((count, 3, 32, 32)).astype(np.float32)


class Images(CalibrationDataReader):
    def __init__(self):
        self.rest = iter([{"pixel_values": batch(4, seed)} for seed in range(4)])

    def get_next(self):
        return next(self.rest, None)


class Encoders(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        silence(self)

    def test_results_and_fused_attention(self):
        path = self.folder / "model.onnx"
        for name in MODELS:
            for attention in "eager", "sdpa":
                for captured in False, True:
                    with self.subTest(name, attention=attention, captured=captured):
                        export(name, attention, captured, path)
                        session, reference = Session(path), Reference(path)
                        for count in 1, 3:
                            inputs = {"pixel_values": batch(count)}
                            found, expected = session.run(inputs), reference.run(inputs)
                            for output in OUTPUTS:
                                largest = np.abs(expected[output]).max()
                                self.assertLess(np.abs(found[output] - expected[output]).max() / largest, 1e-5)
                        ops = [op["op"] for op in inspect(path)["ops"]]
                        self.assertEqual(ops.count("attention"), 2)
                        self.assertNotIn("Softmax", ops)

    def test_int8(self):
        path, made = self.folder / "model.onnx", self.folder / "int8.onnx"
        export("ViT", "eager", False, path)
        quantize_static(path, made, Images(), quant_format=QuantFormat.QDQ, activation_type=QuantType.QUInt8,
                        weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul"])
        ops = [op["op"] for op in inspect(made)["ops"]]
        self.assertEqual(ops.count("attention_q"), 2)
        inputs = {"pixel_values": batch(3)}
        found, expected, of_floats = (x.run(inputs) for x in (Session(made), Reference(made), Reference(path)))
        for output in OUTPUTS:
            error, noise = found[output] - expected[output], of_floats[output] - expected[output]
            # Next to a rounding tie a run may take the other way: less than int8 itself costs.
            self.assertLess(np.sqrt(np.mean(error ** 2)), np.sqrt(np.mean(noise ** 2)), output)
