# SPDX-License-Identifier: Apache-2.0
"""Single operators that importers take apart, against ONNX Runtime."""
import unittest

import numpy as np
import onnx
from c_session import Session
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from support import Reference, bertcl_run, model_of, scratch


class Operators(unittest.TestCase):
    def setUp(self):
        self.random = np.random.default_rng(1)
        self.path = scratch(self) / "model.onnx"

    def floats(self, *shape, scale=1.0):
        return (scale * self.random.standard_normal(shape)).astype(np.float32)

    def integers(self, dtype, *shape):
        span = np.iinfo(dtype)
        return self.random.integers(span.min, span.max + 1, shape).astype(dtype)

    def check(self, operator, inputs, outputs=("y",), opset=21, domain="", share=1e-5, constants=(),
              by_onnx=False, free=(), **attributes):
        """One node on named inputs ("" is an absent one); what is in `constants` is in the file. `by_onnx`:
        compared with ONNX's reference implementation instead of ONNX Runtime. `free`: axes of the first input that
        have any length."""
        node = helper.make_node(operator, [n if x is not None else "" for n, x in inputs.items()],
                                list(outputs), domain=domain, **attributes)
        given = {n: x for n, x in inputs.items() if x is not None and n not in constants}
        held = {n: inputs[n] for n in constants}
        model = model_of([node], given, [n for n in outputs if n], held, opset)
        for axis in free:
            model.graph.input[0].type.tensor_type.shape.dim[axis].dim_param = f"n{axis}"
        onnx.save(model, self.path)
        if by_onnx:
            expected = dict(zip(outputs, ReferenceEvaluator(onnx.load(self.path)).run(None, given)))
        else:
            expected = Reference(self.path).run(given)
        found = Session(self.path).run(given)
        self.assertEqual(expected.keys(), found.keys())
        for name, e in expected.items():
            f = found[name].astype(np.float64)
            e = e.astype(np.float64)
            self.assertEqual(e.shape, f.shape)
            bound = 1 if found[name].dtype.itemsize == 1 else share * max(np.abs(e[e > -1e30]).max(), 1e-3)
            difference = np.where(e == f, 0, np.abs(e - f))
            self.assertLessEqual(difference.max(), bound, f"{operator} {attributes} {name}")
            self.assertGreater(np.ptp(e), 20 * bound, "a result of any values would pass")

    def test_attention(self):
        q, k, v = (self.floats(2, 3, n, 4) for n in (5, 2, 2))
        past_k, past_v = self.floats(2, 3, 4, 4), self.floats(2, 3, 4, 4)
        keep = self.random.random((5, 6)) < 0.7
        keep[:, 0] = True
        added = self.floats(5, 6)
        for mask in keep, added, None:
            for softcap in 0.0, 1.5:
                for mode in range(4):
                    self.check("Attention", dict(q=q, k=k, v=v, mask=mask, past_k=past_k, past_v=past_v),
                               ("y", "present_k", "present_v", "scores"), 23, softcap=softcap,
                               qk_matmul_output_mode=mode)
        self.check("Attention", dict(q=self.floats(2, 5, 12), k=self.floats(2, 3, 12),
                                     v=self.floats(2, 3, 12)), opset=23, q_num_heads=3, kv_num_heads=3,
                   scale=0.3)

    def test_attention_rows_without_keys(self):
        """They give 0, and see no later keys: padding before the tokens, alone and under a causal mask."""
        q, k, v = (self.floats(2, 3, 5, 4) for _ in range(3))
        keep = np.ones((2, 1, 5, 5), bool)
        keep[1, :, :, :2] = False
        keep[0, :, 3] = False
        for mask in keep, np.where(keep, 0, -np.inf).astype(np.float32):
            for causal in 0, 1:
                self.check("Attention", dict(q=q, k=k, v=v, mask=mask), opset=23, is_causal=causal, by_onnx=True)
                self.check("Attention", dict(q=q, k=k, v=v, mask=mask), ("y", "", "", "scores"), opset=23,
                           is_causal=causal, qk_matmul_output_mode=3)

    def test_attention_whose_queries_share_keys(self):
        self.check("Attention", dict(q=self.floats(2, 5, 24), k=self.floats(2, 3, 8), v=self.floats(2, 3, 8)), opset=23,
                   q_num_heads=6, kv_num_heads=2)
        q, k, v = self.floats(2, 6, 5, 4), self.floats(2, 3, 2, 4), self.floats(2, 3, 2, 4)
        past = self.floats(2, 3, 4, 4), self.floats(2, 3, 4, 4)
        self.check("Attention", dict(q=q, k=k, v=v, mask=None, past_k=past[0], past_v=past[1]),
                   ("y", "present_k", "present_v"), 23)

    def test_rotary_embedding(self):
        """Of heads apart and together, of all columns and of the first, with a table of positions and of rows."""
        positions = self.random.integers(0, 9, (2, 5))
        for interleaved in 0, 1:
            for turned in 0, 4:
                half = (turned or 8) // 2
                settings = dict(interleaved=interleaved, rotary_embedding_dim=turned)
                rows = dict(cos=self.floats(2, 5, half), sin=self.floats(2, 5, half))
                table = dict(cos=self.floats(9, half), sin=self.floats(9, half), positions=positions)
                for operands in rows, table:
                    self.check("RotaryEmbedding", dict(x=self.floats(2, 3, 5, 8), **operands), opset=23,
                               **settings)
                    self.check("RotaryEmbedding", dict(x=self.floats(2, 5, 24), **operands), opset=23,
                               num_heads=3, **settings)

    def test_rotary_embedding_of_com_microsoft(self):
        """With a position for each token, or one for all first tokens; heads are as wide as the tables if not counted."""
        tables = dict(cos=self.floats(9, 4), sin=self.floats(9, 4))
        for positions in self.random.integers(0, 9, (2, 5)), np.array([3]):
            for interleaved in 0, 1:
                for x, heads in (self.floats(2, 3, 5, 8), 0), (self.floats(2, 5, 24), 0), (self.floats(2, 5, 24), 3):
                    self.check("RotaryEmbedding", dict(x=x, positions=positions, **tables), opset=17,
                               domain="com.microsoft", interleaved=interleaved, num_heads=heads)
        narrow = dict(cos=self.floats(9, 2), sin=self.floats(9, 2))
        self.check("RotaryEmbedding", dict(x=self.floats(2, 5, 24), positions=np.array([0]), **narrow), opset=17,
                   domain="com.microsoft", num_heads=3, rotary_embedding_dim=4)

    def test_attention_under_numbers_of_tokens(self):
        """Ends of the sequences, or ends and then first tokens."""
        operands = dict(x=self.floats(2, 5, 12), w=self.floats(12, 36), b=self.floats(36))
        for counts in (4, 2), (5, 3, 1, 0):
            self.check("Attention", dict(operands, mask=np.array(counts, np.int32)), opset=17,
                       domain="com.microsoft", constants=("w", "b"), num_heads=3)

    def test_multi_head_attention_with_past(self):
        q, k, v = (self.floats(2, 3, 8) for _ in range(3))
        past = self.floats(2, 2, 4, 4), self.floats(2, 2, 4, 4)
        self.check("MultiHeadAttention", dict(q=q, k=k, v=v, bias=self.floats(24), mask=None,
                                              added=self.floats(2, 2, 3, 7), past_k=past[0], past_v=past[1]),
                   ("y", "present_k", "present_v"), domain="com.microsoft", num_heads=2)

    def test_multi_head_attention_of_keys_that_are_divided_into_heads(self):
        self.check("MultiHeadAttention", dict(q=self.floats(2, 3, 8), k=self.floats(2, 2, 5, 4),
                                              v=self.floats(2, 2, 5, 4), bias=self.floats(24)),
                   domain="com.microsoft", num_heads=2)

    def test_skip_layer_normalization_with_statistics(self):
        for dtype, share in (np.float32, 1e-5), (np.float16, 2e-3):
            x, skip, gamma, beta = (self.floats(*s).astype(dtype) for s in ((2, 3, 8), (2, 3, 8), (8,), (8,)))
            self.check("SkipLayerNormalization", dict(x=x, skip=skip, gamma=gamma, beta=beta),
                       ("y", "", "", "sum"), domain="com.microsoft", share=share)

    def test_rms_normalization(self):
        for axis in -1, 1:
            x = self.floats(2, 3, 8)
            self.check("SimplifiedLayerNormalization", dict(x=x, scale=self.floats(*x.shape[axis:])), axis=axis,
                       epsilon=1e-5)
        x, skip, gamma, bias = (self.floats(*s) for s in ((2, 3, 8), (2, 3, 8), (8,), (8,)))
        for operands in dict(x=x, skip=skip, gamma=gamma), dict(x=x, skip=skip, gamma=gamma, bias=bias):
            self.check("SkipSimplifiedLayerNormalization", operands, ("y", "", "", "sum"), domain="com.microsoft",
                       epsilon=1e-5)

    def test_layer_normalization_of_any_axes_and_types(self):
        for axis in -1, 1, 2:
            for dtype, share in (np.float32, 1e-5), (np.float16, 2e-3):
                x = self.floats(2, 3, 4, 5).astype(dtype)
                shape = x.shape[axis:]
                self.check("LayerNormalization", dict(x=x, scale=self.floats(*shape).astype(dtype),
                                                      bias=self.floats(*shape).astype(dtype)), axis=axis,
                           share=share)

    def test_blocked_quantization(self):
        for axis, block, shape, scales in (1, 3, (2, 5, 2), (2, 2, 2)), (0, 2, (4, 3), (2, 3)):
            scale = np.abs(self.floats(*scales, scale=0.1)) + 0.01
            for dtype in np.int8, np.uint8:
                zero = self.integers(dtype, *scales)
                settings = dict(axis=axis, block_size=block)
                self.check("QuantizeLinear", dict(x=self.floats(*shape, scale=4), s=scale, z=zero), **settings)
                self.check("DequantizeLinear", dict(x=self.integers(dtype, *shape), s=scale, z=zero), **settings)

    def test_convolutions(self):
        for settings in (dict(), dict(strides=[2, 3], pads=[1, 0, 2, 1]), dict(dilations=[2, 1]),
                         dict(auto_pad="SAME_UPPER", strides=[2, 2])):
            self.check("Conv", dict(x=self.floats(2, 4, 9, 8), w=self.floats(6, 4, 3, 2), b=self.floats(6)),
                       **settings)
        self.check("Conv", dict(x=self.floats(2, 4, 9), w=self.floats(6, 2, 3)), group=2)
        self.check("Conv", dict(x=self.floats(1, 4, 5, 5), w=self.floats(4, 1, 3, 3)), group=4,
                   pads=[1, 1, 1, 1])

    def test_convolutions_of_any_length(self):
        for length in 1, 2, 9:
            for shape, settings in (((6, 3, 5), dict(group=2, pads=[2, 2])), ((6, 1, 9), dict(group=6, pads=[4, 4])),
                                    ((4, 6, 3), dict(pads=[0, 2])), ((4, 6, 3), dict(pads=[2, 2], dilations=[2])),
                                    ((4, 6, 1), dict()), ((4, 3, 1), dict(group=2)),
                                    ((4, 6, 4), dict(auto_pad="SAME_LOWER"))):
                self.check("Conv", dict(x=self.floats(2, 6, length), w=self.floats(*shape), b=self.floats(shape[0])),
                           constants=("w", "b"), free=(2,), **settings)
        self.check("Conv", dict(x=self.floats(2, 6, 5, 8), w=self.floats(4, 6, 3, 2)), constants=("w",), free=(2,),
                   pads=[1, 0, 1, 0], strides=[1, 2])
        with self.assertRaisesRegex(AssertionError, "axis 2 has a dynamic length"):
            self.check("Conv", dict(x=self.floats(2, 6, 9), w=self.floats(4, 6, 3)), constants=("w",), free=(2,))

    def test_convolutions_that_divide_their_input(self):
        for shape, weight in (((2, 3, 12, 8), (5, 3, 4, 2)), ((2, 3, 14, 9), (5, 3, 4, 2)), ((2, 6, 7), (4, 6, 1)),
                              ((2, 6, 5, 3), (4, 6, 1, 1)), ((2, 6, 8), (4, 6, 3))):
            for bias in self.floats(weight[0]), None:
                self.check("Conv", dict(x=self.floats(*shape), w=self.floats(*weight), b=bias),
                           constants=("w",), strides=weight[2:])

    def test_convolutions_of_integers(self):
        for dtype, zero in (np.int8, np.int8(0)), (np.uint8, np.uint8(131)), (np.uint8, None):
            for shape, weight in ((2, 3, 13, 8), (5, 3, 4, 2)), ((2, 6, 7), (4, 6, 1)):
                self.check("ConvInteger", dict(x=self.integers(np.uint8, *shape), w=self.integers(dtype, *weight) // 2,
                                               xz=np.uint8(120), wz=zero),
                           constants=("w", "xz") + (("wz",) if zero is not None else ()), strides=weight[2:])

    def test_pads_that_constants_make(self):
        """As torch's classic exporter writes them, after a slice of a sequence of any length."""
        integers = lambda *values: np.array(values, np.int64)
        for start, end, pads in (1, 2 ** 63 - 1, integers(0, 0, 0, 1, 0, 0)), (0, -1, integers(0, 0, 1, 0, 0, 0)):
            nodes = [helper.make_node("Slice", ["x", "start", "end", "one"], ["part"]),
                     helper.make_node("ConstantOfShape", ["zero"], ["none"],
                                      value=numpy_helper.from_array(integers(0))),
                     helper.make_node("Concat", ["pads", "none"], ["list"], axis=0),
                     helper.make_node("Reshape", ["list", "pairs"], ["table"]),
                     helper.make_node("Slice", ["table", "last", "before", "zero", "last"], ["turned"]),
                     helper.make_node("Transpose", ["turned"], ["rows"], perm=[1, 0]),
                     helper.make_node("Reshape", ["rows", "last"], ["flat"]),
                     helper.make_node("Cast", ["flat"], ["cast"], to=7),
                     helper.make_node("Pad", ["part", "cast", "fill"], ["y"])]
            constants = dict(start=integers(start), end=integers(end), one=integers(1), zero=integers(0), pads=pads,
                             pairs=integers(-1, 2), last=integers(-1), before=integers(-2 ** 63 + 1),
                             fill=np.float32(0.5))
            model = model_of(nodes, dict(x=self.floats(2, 4, 3)), ["y"], constants)
            model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "seq"
            onnx.save(model, self.path)
            for length in 1, 2, 7:
                given = dict(x=self.floats(2, length, 3))
                np.testing.assert_array_equal(Session(self.path).run(given)["y"], Reference(self.path).run(given)["y"])

    def test_sizes_that_pass_through_floats_and_matrices(self):
        """As torch's classic exporter writes the positions of DINOv3 and the pads of Swin, where only the batch is free."""
        integers = lambda *values: np.array(values, np.int64)
        nodes = [helper.make_node("Shape", ["x"], ["shape"]),
                 helper.make_node("Gather", ["shape", "two"], ["size"], axis=0),
                 helper.make_node("Cast", ["size"], ["float"], to=1),
                 helper.make_node("Range", ["half", "float", "step"], ["places"]),
                 helper.make_node("Add", ["x", "places"], ["moved"]),
                 helper.make_node("Unsqueeze", ["size", "zero"], ["row"]),
                 helper.make_node("Sub", ["row", "four"], ["pad"]),
                 helper.make_node("Concat", ["zeros", "pad"], ["list"], axis=0),
                 helper.make_node("Reshape", ["list", "pairs"], ["table"]),
                 helper.make_node("Transpose", ["table"], ["rows"], perm=[1, 0]),
                 helper.make_node("Reshape", ["rows", "all"], ["pads"]),
                 helper.make_node("Pad", ["moved", "pads"], ["y"])]
        constants = dict(two=np.int64(2), half=np.float32(0.5), step=np.float32(1), zero=integers(0), four=integers(4),
                         zeros=integers(0, 0, 0, 0, 0), pairs=integers(-1, 2), all=integers(-1))
        model = model_of(nodes, dict(x=self.floats(2, 3, 7)), ["y"], constants)
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
        onnx.save(model, self.path)
        for batch in 1, 2, 5:
            given = dict(x=self.floats(batch, 3, 7))
            np.testing.assert_array_equal(Session(self.path).run(given)["y"], Reference(self.path).run(given)["y"])

    def test_transposed_convolutions(self):
        for settings in (dict(), dict(strides=[2, 3]), dict(strides=[2, 2], pads=[1, 0, 0, 1]),
                         dict(strides=[2, 2], output_padding=[1, 0]), dict(dilations=[2, 1])):
            self.check("ConvTranspose", dict(x=self.floats(2, 4, 5, 4), w=self.floats(4, 3, 3, 3),
                                             b=self.floats(3)), **settings)
        self.check("ConvTranspose", dict(x=self.floats(1, 4, 5), w=self.floats(4, 3, 3)), group=2)
        with self.assertRaisesRegex(AssertionError, "auto_pad 'SAME_UPPER' is not supported"):
            self.check("ConvTranspose", dict(x=self.floats(1, 4, 5), w=self.floats(4, 3, 3)), auto_pad="SAME_UPPER",
                       strides=[2])

    def test_quantized_convolution(self):
        integers = self.random.integers
        self.check("QLinearConv", dict(
            x=integers(0, 256, (1, 4, 6, 5)).astype(np.uint8), xs=np.float32(0.05), xz=np.uint8(120),
            w=integers(-127, 128, (3, 4, 2, 2)).astype(np.int8),
            ws=np.array([0.01, 0.02, 0.03], np.float32), wz=np.zeros(3, np.int8), ys=np.float32(0.4),
            yz=np.uint8(100), b=integers(-999, 999, 3).astype(np.int32)),
            constants=("xs", "xz", "w", "ws", "wz", "ys", "yz", "b"), by_onnx=True)

    def test_quantized_addition_and_multiplication(self):
        for dtype in np.uint8, np.int8:
            for operator in "QLinearAdd", "QLinearMul":
                self.check(operator, {
                    "a": self.integers(dtype, 3, 5, 8), "as": np.float32(0.05), "az": dtype(7),
                    "b": self.integers(dtype, 8), "bs": np.float32(0.03), "bz": dtype(99),
                    "ys": np.float32(0.11), "yz": dtype(40)},
                    domain="com.microsoft", opset=17, constants=("as", "az", "bs", "bz", "ys", "yz"))

    def test_dynamic_quantize_matmul(self):
        for dtype, zero in (np.int8, 0), (np.uint8, 131):
            for columns in (), (16,):  # one scale of the weights, or one for each column
                self.check("DynamicQuantizeMatMul", dict(
                    a=self.floats(3, 5, 32), b=self.integers(dtype, 32, 16) // 2,
                    bs=self.random.uniform(0.01, 0.02, columns).astype(np.float32),
                    bz=np.full(columns, zero, dtype), bias=self.floats(16)),
                    domain="com.microsoft", opset=17, constants=("b", "bs", "bz", "bias"), share=4e-6)

    def test_quantized_attention(self):
        hidden, heads, batch, seq = 32, 4, 2, 7
        for dtype, zero in (np.int8, 0), (np.uint8, 131):
            self.check("QAttention", dict(
                x=self.integers(np.uint8, batch, seq, hidden), w=self.integers(dtype, hidden, 3 * hidden) // 2,
                b=self.floats(3 * hidden), xs=np.float32(0.02), ws=np.float32(0.01),
                mask=np.array([seq, 4], np.int32), xz=np.uint8(113), wz=dtype(zero)),
                domain="com.microsoft", opset=17, constants=("w", "b", "xs", "ws", "xz", "wz"), share=4e-6,
                num_heads=heads)

    def test_gather_nd(self):
        for shape, batch in ((2, 2, 3), 0), ((2, 4, 1), 1), ((3, 1), 0):
            indices = self.random.integers(-2, 2, shape)
            self.check("GatherND", dict(x=self.floats(2, 3, 4, 5), i=indices), opset=13, batch_dims=batch)

    def test_fused_matmul(self):
        for options in dict(alpha=0.25), dict(transA=1), dict(transB=1), dict(transA=1, transB=1, alpha=3.0):
            a = self.floats(2, *((7, 4) if options.get("transA") else (4, 7)))
            b = self.floats(2, *((5, 7) if options.get("transB") else (7, 5)))
            self.check("FusedMatMul", dict(a=a, b=b), domain="com.microsoft", opset=17, **options)

    def test_fused_gemm(self):
        a, w, bias = self.floats(7, 8), self.floats(8, 5, scale=0.5), self.floats(5)
        for activation, options in (("Relu", {}), ("Tanh", {}), ("Sigmoid", {}), ("Softsign", {}),
                                    ("LeakyRelu", dict(activation_alpha=0.3)),
                                    ("LeakyRelu", dict(activation_alpha=3.0)), ("Elu", dict(activation_alpha=1.5)),
                                    ("HardSigmoid", dict(activation_alpha=0.3, activation_beta=0.4))):
            self.check("FusedGemm", dict(a=a, w=w, bias=bias), domain="com.microsoft", opset=17,
                       constants=("w", "bias"), activation=activation, **options)
        self.check("FusedGemm", dict(a=a, w=w.T, bias=bias), domain="com.microsoft", opset=17, constants=("w", "bias"),
                   activation="Tanh", transB=1, alpha=0.5, beta=2.0)
        self.check("FusedGemm", dict(a=a, w=w), domain="com.microsoft", opset=17, constants=("w",), activation="Relu")

    def test_fused_gemm_with_an_unknown_activation(self):
        inputs = dict(a=self.floats(2, 3), w=self.floats(3, 2))
        node = helper.make_node("FusedGemm", list(inputs), ["y"], name="g", domain="com.microsoft", activation="Swish")
        onnx.save(model_of([node], inputs, ["y"]), self.path)
        with self.assertRaisesRegex(Exception, r"node 'g'.*activation 'Swish' is not supported \(supported: Elu"):
            Session(self.path)

    def test_gelus_with_bias(self):
        for operator in "BiasGelu", "FastGelu":
            self.check(operator, dict(x=self.floats(3, 5, 8), b=self.floats(8)), domain="com.microsoft",
                       opset=17, constants=("b",))

    def test_matmul_integer_to_float(self):
        a = self.integers(np.uint8, 3, 5, 16)
        for dtype, zero in (np.int8, 0), (np.int8, 9), (np.uint8, 131):
            b = self.integers(dtype, 16, 6)
            for columns in (), (6,):
                operands = dict(a=a, b=b, a_scale=np.float32(0.02),
                                b_scale=np.abs(self.floats(*columns)).astype(np.float32) + np.float32(0.1),
                                a_zero=np.uint8(113), b_zero=np.full(columns, zero, dtype), bias=self.floats(6))
                self.check("MatMulIntegerToFloat", {n: np.asarray(x) for n, x in operands.items()}, opset=17,
                           domain="com.microsoft", constants=("b", "b_scale", "b_zero", "bias", "a_scale", "a_zero"))

    def test_halves(self):
        x = self.floats(3, 4).astype(np.float16)
        self.check("Softmax", dict(x=x), share=2e-3)
        self.check("MatMul", dict(x=x, w=self.floats(4, 5).astype(np.float16)), share=2e-3)
        self.check("Gelu", dict(x=x), domain="com.microsoft", share=2e-3)

    def test_columns_of_the_left_operand_with_scales_of_their_own(self):
        """MatMulIntegerToFloat takes them, of which no provider of the reference has a kernel."""
        a = self.integers(np.int8, 4, 3)
        b = self.integers(np.int8, 3, 2)
        a_scale, b_scale = np.abs(self.floats(3)), np.abs(self.floats(2))
        inputs = dict(a=a, b=b, a_scale=a_scale, b_scale=b_scale)
        node = helper.make_node("MatMulIntegerToFloat", list(inputs), ["y"], domain="com.microsoft")
        onnx.save(model_of([node], inputs, ["y"]), self.path)
        found = bertcl_run(self.path, inputs)["y"]
        np.testing.assert_allclose(found, (a * a_scale) @ (b * b_scale), rtol=1e-4, atol=1e-2)
