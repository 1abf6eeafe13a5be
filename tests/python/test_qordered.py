# SPDX-License-Identifier: Apache-2.0
"""A layer in the QOrdered operators of ONNX Runtime's transformer optimizer: which kernels it becomes, and
what it gives against NumPy (ONNX Runtime has these operators on NVIDIA devices only)."""
import math
import unittest

import numpy as np
import onnx
from onnx import helper
from support import bertcl_run, inspect, model_of, scratch

BATCH, SEQ, HIDDEN, HEADS = 3, 16, 32, 4
SCALES = dict(s_x=0.02, s_q=0.03, s_k=0.03, s_v=0.02, s_scores=0.05, s_weights=1 / 127, s_mixed=0.01,
              s_out=0.04, s_norm=0.03, s_wide=0.05, s_gelu=0.03)


def quantized(x, scale):
    return np.clip(np.rint(x / np.float32(scale)), -128, 127).astype(np.int8)


def real(q, scale):
    return q.astype(np.float32) * np.float32(scale)


class Layer:
    def __init__(self):
        random = np.random.default_rng(0)
        self.weights = {n: random.integers(-127, 128, (HIDDEN, HIDDEN)).astype(np.int8)
                        for n in ("w_q", "w_k", "w_v", "w_out", "w_wide")}
        self.scales = {n: (random.uniform(0.5, 1, HIDDEN) / 500).astype(np.float32) for n in self.weights}
        self.biases = {n: (0.1 * random.standard_normal(HIDDEN)).astype(np.float32) for n in self.weights}
        self.gamma = (1 + 0.1 * random.standard_normal(HIDDEN)).astype(np.float32)
        self.beta = (0.1 * random.standard_normal(HIDDEN)).astype(np.float32)
        self.x = random.standard_normal((BATCH, SEQ, HIDDEN)).astype(np.float32)
        self.mask = (np.arange(SEQ)[None] < np.array([16, 5, 9])[:, None]).astype(np.int32)

    def save(self, path):
        constants = {n: np.float32(v) for n, v in SCALES.items()}
        for name, weight in self.weights.items():
            # Column-major under the shape of the row-major matrix, as the optimizer stores it
            constants[name] = np.ascontiguousarray(weight.T).reshape(weight.shape)
            constants["s_" + name], constants["b_" + name] = self.scales[name], self.biases[name]
        constants.update(gamma=self.gamma, beta=self.beta)

        def node(kind, inputs, output, **orders):
            return helper.make_node(kind, inputs, [output], domain="com.microsoft", **orders)
        rows = dict(order_A=1, order_B=0, order_Y=1)
        nodes = [
            node("QuantizeWithOrder", ["x", "s_x"], "x_q", order_input=1, order_output=1),
            node("QOrderedAttention", ["x_q", "s_x", "s_q", "s_k", "s_v", "w_q", "w_k", "w_v", "s_w_q", "s_w_k",
                                       "s_w_v", "b_w_q", "b_w_k", "b_w_v", "s_scores", "s_weights", "s_mixed",
                                       "mask"], "mixed", num_heads=HEADS, order_input=1, order_weight=0,
                 order_output=1, qkv_hidden_sizes=[HIDDEN] * 3),
            node("QOrderedMatMul", ["mixed", "s_mixed", "w_out", "s_w_out", "s_out", "b_w_out", "x_q", "s_x"],
                 "out", **rows),
            node("QOrderedLayerNormalization", ["out", "s_out", "gamma", "beta", "s_norm"], "norm", order_X=1,
                 order_Y=1),
            node("QOrderedMatMul", ["norm", "s_norm", "w_wide", "s_w_wide", "s_wide", "b_w_wide"], "wide",
                 **rows),
            node("QOrderedGelu", ["wide", "s_wide", "s_gelu"], "gelu", order_X=1, order_Y=1),
            node("DequantizeWithOrder", ["gelu", "s_gelu"], "y", order_input=1, order_output=1, to=1)]
        axes = ["batch", "seq"]
        onnx.save(model_of(nodes, {"x": (np.float32, [*axes, HIDDEN]), "mask": (np.int32, axes)},
                           {"y": [*axes, HIDDEN]}, {n: np.asarray(v) for n, v in constants.items()}), path)

    def matmul(self, q, scale, name):
        sums = q.astype(np.int32) @ self.weights[name].astype(np.int32)
        return sums * (np.float32(scale) * self.scales[name]) + self.biases[name]

    def expected(self):
        s = SCALES
        x = quantized(self.x, s["s_x"])
        q, k, v = (real(quantized(self.matmul(x, s["s_x"], "w_" + n), s["s_" + n]), s["s_" + n])
                   .reshape(BATCH, SEQ, HEADS, -1).transpose(0, 2, 1, 3) for n in "qkv")
        scores = real(quantized(q @ k.swapaxes(2, 3), s["s_scores"]), s["s_scores"])
        scores = scores / math.sqrt(HIDDEN // HEADS) + np.where(self.mask, 0, -1e9)[:, None, None]
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        weights = quantized(weights / weights.sum(-1, keepdims=True), s["s_weights"])
        mixed = (real(weights, s["s_weights"]) @ v).transpose(0, 2, 1, 3).reshape(self.x.shape)
        out = self.matmul(quantized(mixed, s["s_mixed"]), s["s_mixed"], "w_out") + real(x, s["s_x"])
        out = real(quantized(out, s["s_out"]), s["s_out"])
        centred = out - out.mean(-1, keepdims=True)
        norm = centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * self.gamma + self.beta
        wide = real(quantized(self.matmul(quantized(norm, s["s_norm"]), s["s_norm"], "w_wide"), s["s_wide"]),
                    s["s_wide"])
        erf = np.vectorize(math.erf)
        return real(quantized(wide * 0.5 * (1 + erf(wide / math.sqrt(2))), s["s_gelu"]), s["s_gelu"])


class QOrdered(unittest.TestCase):
    def test_a_layer_runs_in_integers(self):
        layer = Layer()
        path = scratch(self) / "layer.onnx"
        layer.save(path)
        found = bertcl_run(path, dict(x=layer.x, mask=layer.mask), "--keep-padding")["y"]
        report = inspect(path, "--seq", "16")
        expected = layer.expected()
        self.assertGreater(np.ptp(expected), 50 * SCALES["s_gelu"])
        steps = np.abs(found - expected)[layer.mask.astype(bool)] / SCALES["s_gelu"]
        # A value next to a rounding tie may take the other step, and the row after it with it.
        self.assertGreaterEqual(np.mean(steps < 0.5), 0.97)
        self.assertLess(steps.max(), 8)
        operators = [op["op"] for op in report["ops"]]
        self.assertIn("attention_q", operators)
        self.assertGreaterEqual(operators.count("linear_q"), 3)
        self.assertNotIn("linear", operators)
        self.assertNotIn("MatMul", operators)
