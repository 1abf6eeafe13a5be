# SPDX-License-Identifier: Apache-2.0
"""Encoders whose weights ONNX Runtime's quantizers stored in a few bits, as the files model_q4.onnx, model_q4f16.onnx
and model_bnb4.onnx of the hub: hidden states and vectors against ONNX Runtime on the same file."""
import unittest

from support import ROOT, Reference, bertcl, inspect, needs, scratch, silence, worst

needs("onnx_ir")

import numpy as np
import onnx
import tokenizers
from c_session import Session
from encoder_model import write_encoder
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer, QuantFormat
from onnxruntime.transformers.float16 import convert_float_to_float16

TEXTS = ["OpenCL is open.", "", "A standard for programs that run on processors of many kinds", "Who maintains it?"]


def counts(model):
    found = {}
    for node in model.graph.node:
        found[node.op_type] = found.get(node.op_type, 0) + 1
    return found


class WeightOnly(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        silence(cls)
        cls.folder = scratch(cls) / "encoder"
        write_encoder(cls.folder)
        random = np.random.default_rng(0)
        mask = (np.arange(17) < np.array([[17], [5], [1]])).astype(np.int64)
        cls.inputs = {"input_ids": random.integers(0, 30522, mask.shape) * mask, "attention_mask": mask,
                      "token_type_ids": np.zeros_like(mask)}
        cls.float = Session(cls.folder / "model.onnx").run(cls.inputs)

    def nbits(self, name, opset=None, **options):
        """The encoder by MatMulNBitsQuantizer, in a file of that name."""
        model = onnx.load(self.folder / "model.onnx")
        if opset:
            model = onnx.version_converter.convert_version(model, opset)
        quantizer = MatMulNBitsQuantizer(model, **options)
        quantizer.process()
        return self.save(name, quantizer.model.model)

    def save(self, name, model):
        onnx.save(model, self.folder / name)
        return model

    def check(self, name, lost, share=2e-5):
        """Agrees with ONNX Runtime within a share of the range; a share of `lost` of the range differs from float."""
        expected = Reference(self.folder / name).run(self.inputs)
        found = Session(self.folder / name).run(self.inputs)
        difference, width = worst(expected, found, self.inputs["attention_mask"])
        self.assertLess(difference, share * width, name)
        from_float, width = worst(self.float, {n: x.astype(np.float32) for n, x in found.items()},
                                  self.inputs["attention_mask"])
        self.assertLess(from_float, lost * width, name)
        self.assertGreater(from_float, 1e-5 * width, "nothing was quantized")
        report = inspect(self.folder / name)
        self.assertEqual([op for op in report["ops"] if "dequantize" in op["kernel"]], [])
        return report

    def test_q4(self):
        for symmetric in False, True:
            for block in 32, 128:
                model = self.nbits("model_q4.onnx", block_size=block, is_symmetric=symmetric)
                self.assertGreaterEqual(counts(model)["MatMulNBits"], 12)
                self.check("model_q4.onnx", 0.5)

    def test_q8_and_q2(self):
        self.nbits("model_q8.onnx", bits=8, block_size=32)
        self.check("model_q8.onnx", 0.05)
        self.nbits("model_q2.onnx", bits=2, block_size=16)
        self.check("model_q2.onnx", 2)

    def test_tables_of_embeddings(self):
        for symmetric in False, True:
            model = self.nbits("model_tables.onnx", 21, block_size=32, is_symmetric=symmetric,
                               op_types_to_quantize=("MatMul", "Gather"), quant_axes=(("MatMul", 0), ("Gather", 1)))
            self.assertGreaterEqual(counts(model)["GatherBlockQuantized"], 3)
            self.check("model_tables.onnx", 0.5)

    def test_q4_as_dequantize_linear(self):
        for options in dict(is_symmetric=True), dict(is_symmetric=False), \
                dict(is_symmetric=True, channel_wised_quantize=True):
            model = self.nbits("model_q4_qdq.onnx", 21, block_size=32, quant_format=QuantFormat.QDQ, **options)
            self.assertGreaterEqual(counts(model)["DequantizeLinear"], 12)
            self.check("model_q4_qdq.onnx", 0.7)

    def test_q4f16(self):
        model = convert_float_to_float16(self.nbits("model_q4.onnx", block_size=32), disable_shape_infer=True)
        types = {t.name: t.data_type for t in self.save("model_q4f16.onnx", model).graph.initializer}
        scales = {types[n.input[2]] for n in model.graph.node if n.op_type == "MatMulNBits"}
        self.assertEqual(scales, {onnx.TensorProto.FLOAT16})
        self.check("model_q4f16.onnx", 0.5, share=1e-2)

    def test_bnb4(self):
        for kind in MatMulBnb4Quantizer.FP4, MatMulBnb4Quantizer.NF4:
            quantizer = MatMulBnb4Quantizer(onnx.load(self.folder / "model.onnx"), kind, 64)
            quantizer.process()
            self.assertGreaterEqual(counts(self.save("model_bnb4.onnx", quantizer.model.model))["MatMulBnb4"], 12)
            self.check("model_bnb4.onnx", 0.7)

    def test_they_compile_to_the_launches_of_the_float_model(self):
        self.nbits("model_q4.onnx", block_size=32)
        reports = [inspect(self.folder / name) for name in ("model.onnx", "model_q4.onnx")]
        self.assertEqual(*([op["kernel"] for op in report["ops"]] for report in reports))
        self.assertEqual(*(report["launches"] for report in reports))

    def test_vectors(self):
        """The means of the hidden states that ONNX Runtime computes, of length 1."""
        self.nbits("model_q4.onnx", block_size=32, is_symmetric=True)
        texts, vectors = self.folder / "texts.txt", self.folder / "v.npy"
        texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        bertcl("embed", self.folder / "model_q4.onnx", texts, "--pooling", "mean", "--normalize", "-o", vectors,
               "--force")
        tokenizer = tokenizers.BertWordPieceTokenizer(str(ROOT / "models" / "minilm-l6-squad" / "vocab.txt"),
                                                      lowercase=True)
        reference, expected = Reference(self.folder / "model_q4.onnx"), []
        for text in TEXTS:
            ids = np.array([tokenizer.encode(text).ids])
            hidden = reference.run({"input_ids": ids, "attention_mask": np.ones_like(ids),
                                    "token_type_ids": np.zeros_like(ids)})["last_hidden_state"]
            mean = hidden[0].mean(0)
            expected.append(mean / np.linalg.norm(mean))
        np.testing.assert_allclose(np.load(vectors), expected, atol=2e-6)

    def test_they_run_in_bf16(self):
        """As many operators as of the float model."""
        self.nbits("model_q4.onnx", block_size=32)
        types = [[op["type"] for op in inspect(self.folder / name, "--precision", "bf16")["ops"]]
                 for name in ("model.onnx", "model_q4.onnx")]
        self.assertEqual(*types)
        self.assertIn("bf16", types[0])

    def test_quantize_names_the_quantized_nodes(self):
        texts = self.folder / "texts.txt"
        texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        self.nbits("model_q4.onnx", block_size=32)
        done = bertcl("quantize", self.folder / "model_q4.onnx", "-o", self.folder / "q.onnx", "--task", "text",
                      "--calibration", texts, expect=2)
        self.assertRegex(done.stderr, r"already quantized, it has \d+ MatMulNBits nodes; give the float model it was "
                                      "made from")

    def test_quantize_leaves_what_int4_is_a_weight_of_in_float(self):
        """The rest becomes int8, and the file runs as in ONNX Runtime."""
        texts = self.folder / "texts.txt"
        texts.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
        self.nbits("model_q4_qdq.onnx", 21, block_size=32, is_symmetric=True, quant_format=QuantFormat.QDQ)
        done = bertcl("quantize", self.folder / "model_q4_qdq.onnx", "-o", self.folder / "q4_int8.onnx", "--task",
                      "text", "--calibration", texts)
        self.assertIn("key.weight_DQ_Q4_output' is already quantized", done.stdout)
        self.assertGreater(counts(onnx.load(self.folder / "q4_int8.onnx"))["QuantizeLinear"], 0)
        expected, found = (kind(self.folder / "q4_int8.onnx").run(self.inputs) for kind in (Reference, Session))
        difference, width = worst(expected, found, self.inputs["attention_mask"])
        self.assertLess(difference, 0.02 * width)
