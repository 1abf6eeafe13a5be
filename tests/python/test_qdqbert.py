# SPDX-License-Identifier: Apache-2.0
"""BERT quantized as Hugging Face's QDQBERT was: fake quantization in the modules of torch, exported by torch with
float weights after QuantizeLinear. The launches are those of bertcl's own quantized files."""
import unittest
from unittest import mock

from c_session import Session
from support import Reference, inspect, needs, scratch, silence
from test_spellings import operators

needs("torch", "transformers", "onnxscript")

import numpy as np
import onnx
import torch
from transformer_models import Model
from transformers.models.bert import modeling_bert

# Two layers of seven launches between the embeddings and a head in float
EXPECTED = {"embed_norm": 1, "linear_q": 8, "attention_q": 2, "add_norm": 4, "linear": 1, "unpack": 1}


class TensorQuantizer(torch.nn.Module):
    """Symmetric s8 with the range of what it has seen before `frozen`: of the tensor, or of each part along `axis`."""

    def __init__(self, axis=None):
        super().__init__()
        self.axis, self.frozen, self.largest = axis, False, torch.tensor(1e-3)

    def forward(self, x):
        others = [i for i in range(x.dim()) if i != self.axis]
        if not self.frozen:
            found = x.detach().abs().amax() if self.axis is None else x.detach().abs().amax(others)
            self.largest = torch.maximum(self.largest, found)
            return x
        scale = self.largest / 127
        if self.axis is None:
            return torch.fake_quantize_per_tensor_affine(x, float(scale), 0, -128, 127)
        return torch.fake_quantize_per_channel_affine(x, scale, torch.zeros(len(scale), dtype=torch.int32), self.axis,
                                                      -128, 127)


class QuantLinear(torch.nn.Linear):
    @classmethod
    def of(cls, linear):
        linear.__class__ = cls
        linear.input_quantizer, linear.weight_quantizer = TensorQuantizer(), TensorQuantizer(axis=0)

    def forward(self, x):
        return torch.nn.functional.linear(self.input_quantizer(x), self.weight_quantizer(self.weight), self.bias)


def quantized_attention(module, query, key, value, mask, scaling=None, **_):
    scores = module.matmul_q_input_quantizer(query) @ module.matmul_k_input_quantizer(key).transpose(2, 3)
    scores = scores * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    if mask is not None:
        scores = scores + mask
    probabilities = module.matmul_a_input_quantizer(scores.softmax(-1))
    context = probabilities @ module.matmul_v_input_quantizer(value)
    return context.transpose(1, 2).contiguous(), probabilities


def residual_sum(module, hidden, residual):
    return module.LayerNorm(module.add_local_input_quantizer(module.dense(hidden)) +
                            module.add_residual_input_quantizer(residual))


def quantize(encoder):
    """Puts the quantizers of QDQBERT into the modules of BERT's layers."""
    for module in list(encoder.modules()):
        if isinstance(module, torch.nn.Linear):
            QuantLinear.of(module)
        elif isinstance(module, modeling_bert.BertSelfAttention):
            for name in "q", "k", "v", "a":
                setattr(module, f"matmul_{name}_input_quantizer", TensorQuantizer())
        elif isinstance(module, (modeling_bert.BertSelfOutput, modeling_bert.BertOutput)):
            module.add_local_input_quantizer = TensorQuantizer()
            module.add_residual_input_quantizer = TensorQuantizer()
            module.forward = residual_sum.__get__(module)


class QdqBert(unittest.TestCase):
    def test_export(self):
        silence(self)
        path = scratch(self) / "qdqbert.onnx"
        with mock.patch.object(modeling_bert, "eager_attention_forward", quantized_attention):
            model = Model("question answering")
            quantize(model.module.model.bert.encoder)
            with torch.no_grad():
                for seed in range(1, 4):
                    model.module(*(torch.from_numpy(x) for x in model.batch(4, seed=seed).values()))
            for module in model.module.modules():
                if isinstance(module, TensorQuantizer):
                    module.frozen = True
            model.export(path, 13)
        nodes = [node.op_type for node in onnx.load(path).graph.node]
        # 12 pairs of MatMuls, 4 of attention, 4 of sums in each layer; those of one tensor and one
        # scale, as of q, k, v and the residual sum, the exporter makes one.
        self.assertEqual(nodes.count("QuantizeLinear"), 2 * (12 + 4 + 4 - 2 - 2))

        report = inspect(path)
        self.assertEqual(operators(report), EXPECTED)
        self.assertEqual([op["type"] for op in report["ops"] if op["op"] == "linear"], ["fp32"])
        same = total = 0
        session, reference = Session(path), Reference(path)
        for seed in range(10, 18):
            inputs = model.batch(8, seed=seed)
            expected, found = reference.run(inputs), session.run(inputs)
            for name, values in expected.items():
                hidden = inputs["attention_mask"] == 0
                a, b = (np.where(hidden, -np.inf, x).argmax(-1) for x in (values, found[name]))
                same, total = same + (a == b).sum(), total + a.size
        self.assertGreaterEqual(same / total, 0.97)
