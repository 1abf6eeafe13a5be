# SPDX-License-Identifier: Apache-2.0
"""BERT as torch quantizes it, exported by both of torch's exporters, against ONNX Runtime: the operators of
torch.export's quantization, fake quantization, and both written out as arithmetic."""
import collections
import unittest

import numpy as np
from c_session import Session
from support import Reference, inspect, needs, scratch, silence

needs("torch", "transformers", "onnxscript")

import torch
import torch.ao.quantization.fx._decomposed  # makes the operators known
from transformer_models import Model

DECOMPOSED = torch.ops.quantized_decomposed
STEPS = 0.02  # a value next to a rounding tie may take the other step, and later ones with it
TORCHSCRIPT, CAPTURED = 17, 23  # opsets that Model.export gives to either exporter
# Launches of two fused layers; all linears are integer ones
LINEARS = 9


def decomposed(x, scale, zero):
    arguments = scale, zero, 0, 255, torch.uint8
    return DECOMPOSED.dequantize_per_tensor(DECOMPOSED.quantize_per_tensor(x, *arguments), *arguments)


def decomposed_weight(w, scales):
    arguments = scales, torch.zeros_like(scales, dtype=torch.int64), 0, -127, 127, torch.int8
    return DECOMPOSED.dequantize_per_channel(DECOMPOSED.quantize_per_channel(w, *arguments), *arguments)


def fake(x, scale, zero):
    return torch.fake_quantize_per_tensor_affine(x, scale, zero, 0, 255)


def fake_weight(w, scales):
    return torch.fake_quantize_per_channel_affine(w, scales, torch.zeros_like(scales, dtype=torch.int32),
                                                  0, -128, 127)


def in_float(x, scale, zero):
    return (torch.clamp(torch.round(x / scale) + zero, 0, 255) - zero) * scale


def in_bytes(x, scale, zero):
    q = torch.clamp(torch.round(x * (1 / scale)) + zero, 0, 255).to(torch.uint8)
    return (q.to(torch.float32) - zero) * scale


def weight_in_float(w, scales):
    return torch.clamp(torch.round(w / scales[:, None]), -128, 127) * scales[:, None]


class Quantized(torch.nn.Module):
    """A Linear whose input and weight go through the given functions."""

    def __init__(self, linear, range_, activations, weights):
        super().__init__()
        self.linear, self.activations, self.weights = linear, activations, weights
        low, high = min(range_[0], 0), max(range_[1], 0)
        self.scale = (high - low) / 255
        self.zero = round(-low / self.scale)
        self.register_buffer("scales", linear.weight.detach().abs().amax(1) / 127)

    def forward(self, x):
        return torch.nn.functional.linear(self.activations(x, self.scale, self.zero),
                                          self.weights(self.linear.weight, self.scales), self.linear.bias)


def quantize(model, activations, weights):
    """Every Linear of `model`, by the ranges of its input over a few batches."""
    linears = {name: m for name, m in model.module.named_modules() if isinstance(m, torch.nn.Linear)}
    ranges = collections.defaultdict(lambda: (0.0, 0.0))

    def observe(name):
        def hook(_, inputs):
            low, high = ranges[name]
            ranges[name] = min(low, inputs[0].min().item()), max(high, inputs[0].max().item())
        return hook
    hooks = [m.register_forward_pre_hook(observe(name)) for name, m in linears.items()]
    with torch.no_grad():
        for seed in range(1, 4):
            model.module(*[torch.from_numpy(x) for x in model.batch(4, seed=seed).values()])
    for hook in hooks:
        hook.remove()
    for name, linear in linears.items():
        parent, _, child = name.rpartition(".")
        setattr(model.module.get_submodule(parent), child,
                Quantized(linear, ranges[name], activations, weights))


class TorchQuantized(unittest.TestCase):
    def setUp(self):
        self.path = scratch(self) / "model.onnx"
        silence(self)

    def check(self, model):
        inputs = model.batch(3)
        mask = inputs["attention_mask"].astype(bool)
        found, expected = Session(self.path).run(inputs), Reference(self.path).run(inputs)
        for name in model.by_token:
            difference = np.abs(found[name] - expected[name])[mask].max()
            self.assertLess(difference, STEPS * np.ptp(expected[name][mask]), name)
        counts = collections.Counter(op["op"] for op in
                                     inspect(self.path, "--batch", "2", "--seq", "24")["ops"])
        self.assertEqual((counts["linear_q"], counts["linear"]), (LINEARS, 0), counts)

    def check_all(self, opset, *spellings):
        for activations, weights in spellings:
            with self.subTest(activations=activations.__name__, weights=weights.__name__):
                model = Model()
                quantize(model, activations, weights)
                model.export(self.path, opset)
                self.check(model)

    def test_captured_programs(self):
        # The exporter folds arithmetic on weights into floats, so these have to be operators; torch.export
        # refused fake_quantize_per_tensor_affine of this model (torch 2.15.0).
        self.check_all(CAPTURED, (decomposed, decomposed_weight), (in_float, fake_weight),
                       (in_bytes, decomposed_weight))

    def test_torchscript(self):
        self.check_all(TORCHSCRIPT, (fake, fake_weight), (in_float, weight_in_float),
                       (in_bytes, fake_weight))
