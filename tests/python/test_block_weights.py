# SPDX-License-Identifier: Apache-2.0
"""Weights of a few bits with a scale for each block: the floats that bertcl makes of them, and the results, against
ONNX Runtime and ONNX's reference implementation."""
import itertools
import unittest

import ml_dtypes
import numpy as np
import onnx
from c_session import Session
from few_bits import Blocked, NBits, several_to_a_byte
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from support import Reference, bertcl, model_of, scratch

TYPES = {"int4": (TensorProto.INT4, ml_dtypes.int4, -8, 7), "uint4": (TensorProto.UINT4, ml_dtypes.uint4, 0, 15),
         "int2": (TensorProto.INT2, ml_dtypes.int2, -2, 1), "uint2": (TensorProto.UINT2, ml_dtypes.uint2, 0, 3)}


class BlockWeights(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(1)
        self.path = scratch(self) / "model.onnx"

    def save(self, op, inputs, constants, opset=21, domain="com.microsoft", **attributes):
        """A node of `inputs` and of `constants`, None where an operand is absent."""
        names = [name if x is not None else "" for name, x in (inputs | constants).items()]
        while not names[-1]:
            names.pop()
        held = {name: x for name, x in constants.items() if x is not None}
        node = helper.make_node(op, names, ["y"], domain=domain, **attributes)
        onnx.save(model_of([node], inputs, ["y"], held, opset), self.path)

    def found(self, inputs):
        return Session(self.path).run(inputs)["y"]

    def weights(self, case):
        """Those of bertcl, as what it makes of an identity matrix."""
        x = np.eye(case.k, dtype=case.dtype)
        self.save("MatMulNBits", dict(x=x), {**case.constants(), "bias": None}, **case.attributes())
        return self.found(dict(x=x))

    def check_matmul(self, case, shape):
        x = self.random.standard_normal((*shape, case.k)).astype(case.dtype)
        self.save("MatMulNBits", dict(x=x), case.constants(), **case.attributes())
        expected, found = Reference(self.path).run(dict(x=x))["y"], self.found(dict(x=x))
        self.assertEqual(expected.shape, found.shape)
        share = 2e-5 if case.dtype == np.float32 else 2e-3
        size = np.abs(expected.astype(np.float64)).max()
        self.assertGreater(np.ptp(expected), 20 * share * size)
        np.testing.assert_allclose(found.astype(np.float64), expected, rtol=0, atol=share * size, err_msg=str(case))

    def test_weights_of_n_bits_are_those_of_onnx_runtime(self):
        """Bit for bit. On CPUs ONNX Runtime 1.31.1 has no kernel for the missing cases, or ignores an operand."""
        for bits, zeros, groups in itertools.product((2, 4, 8), (None, "whole", "real"), (None, "shuffled")):
            case = NBits(70, 21, bits, 16, zeros, groups, flat=bool(self.random.integers(2)))
            found = self.weights(case)
            np.testing.assert_array_equal(found, case.weight(), err_msg=str(case))
            if (bits == 8 and (groups or zeros == "real")) or (groups and (bits == 2 or zeros == "whole")):
                continue
            expected = Reference(self.path).run(dict(x=np.eye(case.k, dtype=np.float32)))["y"]
            np.testing.assert_array_equal(found, expected, err_msg=str(case))

    def test_matmuls_of_n_bits(self):
        cases = [NBits(64, 48), NBits(1, 1), NBits(17, 33, block=16, zeros="whole"), NBits(256, 5, 8, 256, "whole"),
                 NBits(100, 7, 4, 32, "real", bias=True), NBits(130, 19, 4, 64, None, "shuffled", True),
                 NBits(130, 19, 4, 64, "real", "sorted"), NBits(96, 40, 2, 32, "whole", bias=True, flat=True),
                 NBits(300, 31, 8, 128, bias=True), NBits(96, 24, 4, 32, "whole", bias=True, dtype=np.float16),
                 NBits(96, 24, 4, 32, dtype=np.float16), NBits(96, 24, 8, 32, "whole", dtype=np.float16)]
        for i, case in enumerate(cases):
            self.check_matmul(case, [(5,), (2, 3), (1, 7), (2, 1, 3)][i % 4])

    def test_accuracy_levels_are_permissions(self):
        """bertcl computes as precisely as without them."""
        case = NBits(64, 48, zeros="whole")
        x = self.random.standard_normal((3, 64)).astype(np.float32)
        self.save("MatMulNBits", dict(x=x), case.constants(), **case.attributes())
        plain = self.found(dict(x=x))
        self.save("MatMulNBits", dict(x=x), case.constants(), accuracy_level=4, **case.attributes())
        np.testing.assert_array_equal(self.found(dict(x=x)), plain)

    def check_gather(self, data, zero, case, gather_axis=0, **attributes):
        ids = self.random.integers(-case.shape[gather_axis], case.shape[gather_axis], (2, 3))
        constants = dict(d=data, i=None, s=case.scales, z=zero)
        names = ["d", "i", "s"] + (["z"] if zero is not None else [])
        node = helper.make_node("GatherBlockQuantized", names, ["y"], domain="com.microsoft", block_size=case.block,
                                gather_axis=gather_axis, quantize_axis=case.axis, **attributes)
        held = {name: x for name, x in constants.items() if x is not None}
        onnx.save(model_of([node], dict(i=ids), ["y"], held, 21), self.path)
        found = self.found(dict(i=ids))
        np.testing.assert_array_equal(found, case.weight().take(ids, gather_axis), err_msg=str(case))
        np.testing.assert_array_equal(found, Reference(self.path).run(dict(i=ids))["y"], err_msg=str(case))

    def test_tables_of_bytes(self):
        for bits, zeros, (columns, block), dtype in itertools.product(
                (2, 4, 8), (False, True), ((64, 16), (48, 16), (72, 32)), (np.float32, np.float16)):
            case = Blocked((11, columns), 1, block, 0, 2 ** bits - 1, zeros, 2 ** (bits - 1), dtype)
            pack = (lambda x: x.astype(np.uint8)) if bits == 8 else (lambda x: several_to_a_byte(x, bits))
            self.check_gather(pack(case.data), pack(case.zero) if zeros else None, case, bits=bits)

    def test_tables_of_few_bits(self):
        for name, zeros, (shape, axis, gather_axis) in itertools.product(
                ("int4", "uint4"), (False, True), (((11, 48), 1, 0), ((40, 5), 0, 0), ((3, 20, 7), 1, 2))):
            _, dtype, low, high = TYPES[name]
            case = Blocked(shape, axis, 16, low, high, zeros)
            self.check_gather(case.data.astype(dtype), case.zero.astype(dtype) if zeros else None, case, gather_axis)

    def test_dequantize_linear_in_blocks(self):
        """The values of ONNX's reference implementation, bit for bit; scales of halves round them."""
        for name, zeros, (shape, axis, block), dtype in itertools.product(
                TYPES, (False, True), (((7, 5), 0, 3), ((7, 5), 1, 2), ((3, 16, 3), 1, 5)), (np.float32, np.float16)):
            _, integers, low, high = TYPES[name]
            case = Blocked(shape, axis, block, low, high, zeros, dtype=dtype)
            constants = dict(w=case.data.astype(integers), s=case.scales,
                             z=case.zero.astype(integers) if zeros else None)
            # A graph has at least one input.
            nodes = [helper.make_node("DequantizeLinear", ["w", "s"] + ["z"] * zeros, ["d"], axis=axis,
                                      block_size=block),
                     helper.make_node("Mul", ["x", "d"], ["y"])]
            held = {n: x for n, x in constants.items() if x is not None}
            x = np.ones(shape, dtype)
            onnx.save(model_of(nodes, dict(x=x), ["y"], held, 25), self.path)
            expected = ReferenceEvaluator(onnx.load(self.path)).run(None, dict(x=x))[0]
            found = self.found(dict(x=x))
            np.testing.assert_array_equal(found, expected, err_msg=f"{name} {case}")
            np.testing.assert_array_equal(found, case.weight())

    def test_dequantize_linear_per_tensor_and_per_axis(self):
        for name in TYPES:
            _, integers, low, high = TYPES[name]
            data = self.random.integers(low, high + 1, (6, 9)).astype(integers)
            for shape in (), (9,):
                scale = self.random.uniform(0.1, 1, shape).astype(np.float32)
                zero = self.random.integers(low, high + 1, shape).astype(integers)
                x = np.ones((6, 9), np.float32)
                nodes = [helper.make_node("DequantizeLinear", ["w", "s", "z"], ["d"]),
                         helper.make_node("Mul", ["x", "d"], ["y"])]
                onnx.save(model_of(nodes, dict(x=x), ["y"], dict(w=data, s=scale, z=zero), 25), self.path)
                expected = ReferenceEvaluator(onnx.load(self.path)).run(None, dict(x=x))[0]
                np.testing.assert_array_equal(self.found(dict(x=x)), expected)

    def test_matmuls_of_bitsandbytes(self):
        for kind, block, (k, n) in itertools.product((MatMulBnb4Quantizer.FP4, MatMulBnb4Quantizer.NF4), (16, 64),
                                                     ((32, 48), (33, 7), (1, 1))):
            w = self.random.standard_normal((k, n)).astype(np.float32)
            node = helper.make_node("MatMul", ["x", "w"], ["y"])
            x = np.eye(k, dtype=np.float32)
            quantizer = MatMulBnb4Quantizer(model_of([node], dict(x=x), ["y"], dict(w=w)), kind, block)
            quantizer.process()
            onnx.save(quantizer.model.model, self.path)
            self.assertEqual([n.op_type for n in onnx.load(self.path).graph.node], ["MatMulBnb4"])
            found = self.found(dict(x=x))
            np.testing.assert_array_equal(found, Reference(self.path).run(dict(x=x))["y"])
            self.assertLess(np.abs(found - w).max(), 0.5 * np.abs(w).max())

    def test_quantize_says_that_they_are_quantized(self):
        case, x = NBits(64, 48), np.zeros((1, 64), np.float32)
        bnb4 = dict(b=np.zeros(64 * 48 // 2, np.uint8), s=np.ones(64 * 48 // 16, np.float32))
        for op, constants, attributes in (("MatMulNBits", case.constants(), case.attributes()),
                                          ("MatMulBnb4", bnb4, dict(K=64, N=48, block_size=16, quant_type=1))):
            self.save(op, dict(x=x), constants, **attributes)
            done = bertcl("quantize", self.path, "-o", self.path.with_name("q.onnx"), "--dynamic", expect=2)
            self.assertIn(f"already quantized, it has 1 {op} nodes; give the float model it was made from", done.stderr)
