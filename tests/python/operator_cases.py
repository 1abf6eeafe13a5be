# SPDX-License-Identifier: Apache-2.0
"""One-node models of the supported operators for every element type and a few shapes."""
import dataclasses
import zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from support import model_of

TYPES = {"f32": np.float32, "f16": np.float16, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
         "i16": np.int16, "u16": np.uint16, "i32": np.int32, "u32": np.uint32, "i64": np.int64,
         "u64": np.uint64, "bool": np.bool_}
OPSET = 21


@dataclasses.dataclass
class Case:
    """A node on `inputs`; those whose index is in `constants` are in the file. bf16: float inputs
    are cast to bf16 in the model and its results back to f32. opset: one that has the operator."""
    name: str
    op: str
    inputs: list
    attributes: dict = dataclasses.field(default_factory=dict)
    constants: tuple = ()
    outputs: int = 1
    domain: str = ""
    bf16: bool = False
    opset: int = OPSET

    def given(self):
        """The inputs of the model by name."""
        return {f"x{i}": x for i, x in enumerate(self.inputs)
                if x is not None and i not in self.constants}

    def model(self, bf16=None):
        bf16 = self.bf16 if bf16 is None else bf16
        nodes, names = [], []
        for i, x in enumerate(self.inputs):
            name = "" if x is None else f"x{i}"
            if bf16 and x is not None and x.dtype == np.float32:
                nodes.append(helper.make_node("Cast", [name], [name + "_bf16"], to=TensorProto.BFLOAT16))
                name += "_bf16"
            names.append(name)
        outputs = [f"y{i}" for i in range(self.outputs)]
        made = [o + "_made" for o in outputs] if bf16 else outputs
        nodes.append(helper.make_node(self.op, names, made, domain=self.domain, **self.attributes))
        if bf16:
            nodes += [helper.make_node("Cast", [m], [o], to=TensorProto.FLOAT)
                      for m, o in zip(made, outputs)]
        constants = {f"x{i}": self.inputs[i] for i in self.constants}
        return model_of(nodes, self.given(), outputs, constants, self.opset)

    def folded(self):
        """The same with all inputs in the file: what the host makes of it."""
        present = tuple(i for i, x in enumerate(self.inputs) if x is not None)
        return dataclasses.replace(self, name=self.name + "-folded", constants=present)


def draw(random, dtype, shape, low=-4, high=4):
    """Numbers of a type in a range, or as much of it as the type has."""
    dtype = np.dtype(dtype)
    if dtype == bool:
        return random.random(shape) < 0.5
    if dtype.kind == "f":
        # Multiples of 1/8: exact in bf16 too.
        return (np.round(random.uniform(low, high, shape) * 8) / 8).astype(dtype)
    least = max(int(low), 0 if dtype.kind == "u" else int(low))
    return random.integers(least, max(int(high), least + 1) + 1, shape).astype(dtype)


UNARY = {"Abs": {}, "Neg": {}, "Relu": {}, "Sign": {}, "Ceil": {}, "Cos": {}, "Erf": {}, "Exp": {},
         "Floor": {}, "Gelu": {}, "IsInf": {}, "IsNaN": {}, "LeakyRelu": {}, "Log": dict(low=0.25),
         "Reciprocal": dict(low=0.5), "Round": {}, "Sigmoid": {}, "Sin": {}, "Softplus": {},
         "Sqrt": dict(low=0), "Tanh": {}, "Not": {}, "Identity": {}, "Softmax": {}, "LogSoftmax": {},
         "NonZero": {}, "Shape": {}, "Size": {}, "Flatten": {}, "Transpose": {}}
BINARY = {"Add": {}, "Sub": {}, "Mul": {}, "Div": dict(low=1), "Mod": dict(low=1), "Max": {}, "Min": {},
          "Mean": {}, "Sum": {}, "Equal": {}, "Greater": {}, "GreaterOrEqual": {}, "Less": {},
          "LessOrEqual": {}, "And": {}, "Or": {}, "Xor": {}}
REDUCE = ("ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum",
          "ReduceSumSquare")
SHAPES = ((3,), (2, 3, 5), ())


def i64(*values):
    return np.array(values, np.int64)


def cases_of_type(t, random):
    """The operators that have one type variable, for that type."""
    dtype = TYPES[t]

    def x(*shape, **limits):
        return draw(random, dtype, shape, **limits)

    for op, limits in UNARY.items():
        for shape in SHAPES:
            if op in ("Softmax", "LogSoftmax", "Flatten") and not shape:
                continue
            yield Case(f"{op}-{t}-{len(shape)}", op, [x(*shape, **limits)])
    for op, limits in BINARY.items():
        attributes = dict(fmod=1) if op == "Mod" and np.dtype(dtype).kind == "f" else {}
        for a, b in (((2, 3, 5), (5,)), ((3,), (3,)), ((), (2, 1))):
            yield Case(f"{op}-{t}-{len(a)}{len(b)}", op, [x(*a, **limits), x(*b, **limits)], attributes)
    for op in REDUCE:
        for axes, keep in ((i64(1, 2), 1), (i64(0), 0), (i64(-1), 1)):
            yield Case(f"{op}-{t}-{axes[0]}", op, [x(2, 3, 5, low=-2, high=2), axes], dict(keepdims=keep),
                       constants=(1,))
    for op in "ArgMax", "ArgMin":
        yield Case(f"{op}-{t}", op, [x(2, 3, 5)], dict(axis=1))
    for axis in 0, 2:
        yield Case(f"CumSum-{t}-{axis}", "CumSum", [x(2, 3, 5), np.array(axis, np.int64)], constants=(1,))
    for index in np.int64, np.int32:
        name = np.dtype(index).name
        yield Case(f"Gather-{t}-{name}", "Gather", [x(4, 3), np.array([[0, 3], [-1, 2]], index)])
        yield Case(f"GatherElements-{t}-{name}", "GatherElements", [x(4, 3), np.array([[0, 3, -1]], index)])
    yield Case(f"GatherND-{t}", "GatherND", [x(4, 3), i64(0, 2, 3, 1).reshape(2, 2)])
    yield Case(f"Concat-{t}", "Concat", [x(2, 3), x(2, 5)], dict(axis=1))
    yield Case(f"Split-{t}", "Split", [x(2, 6), i64(2, 4)], dict(axis=1), (1,), 2)
    yield Case(f"Slice-{t}", "Slice", [x(4, 5), i64(1), i64(4), i64(1)], constants=(1, 2, 3))
    yield Case(f"Pad-{t}", "Pad", [x(2, 3), i64(1, 0, 0, 2), x()], constants=(1, 2))
    yield Case(f"Tile-{t}", "Tile", [x(2, 3), i64(2, 1)], constants=(1,))
    yield Case(f"Expand-{t}", "Expand", [x(3, 1), i64(2, 3, 4)], constants=(1,))
    yield Case(f"Reshape-{t}", "Reshape", [x(2, 6), i64(3, -1)], constants=(1,))
    yield Case(f"Squeeze-{t}", "Squeeze", [x(2, 1, 3), i64(1)], constants=(1,))
    yield Case(f"Unsqueeze-{t}", "Unsqueeze", [x(2, 3), i64(1)], constants=(1,))
    yield Case(f"Trilu-{t}", "Trilu", [x(3, 4)], dict(upper=0))
    yield Case(f"Where-{t}", "Where", [draw(random, bool, (2, 3)), x(2, 3), x(3)])
    yield Case(f"WhereCondition-{t}", "Where", [x(3), draw(random, np.float32, (3,)),
                                                draw(random, np.float32, (3,))])
    yield Case(f"Clip-{t}", "Clip", [x(2, 3), x(low=0, high=1), x(low=2, high=3)])
    yield Case(f"OneHot-{t}", "OneHot", [i64(0, 2, -1), np.array(3, np.int64), x(2)], constants=(1,))
    yield Case(f"Range-{t}", "Range", [x(low=1, high=1), x(low=6, high=6), x(low=2, high=2)],
               constants=(0, 1, 2))
    yield Case(f"LayerNormalization-{t}", "LayerNormalization", [x(2, 8), x(8), x(8)])
    yield Case(f"LayerNormalizationScale-{t}", "LayerNormalization",
               [draw(random, np.float32, (2, 8)), x(8), None][:2])
    for a, b in (((2, 3, 5), (5, 4)), ((5,), (5, 3)), ((2, 4, 5), (2, 5, 3))):
        yield Case(f"MatMul-{t}-{len(a)}{len(b)}", "MatMul", [x(*a), x(*b)])
        yield Case(f"MatMulInteger-{t}-{len(a)}{len(b)}", "MatMulInteger",
                   [x(*a, low=-128, high=127), draw(random, np.int8, b, -128, 127)])
        yield Case(f"MatMulIntegerWeight-{t}-{len(a)}{len(b)}", "MatMulInteger",
                   [draw(random, np.uint8, a, 0, 255), x(*b, low=-128, high=127), np.array(7, np.uint8)])
    yield Case(f"Gemm-{t}", "Gemm", [x(3, 4), x(5, 4), x(5)], dict(transB=1, alpha=2.0))
    yield Case(f"DynamicQuantizeLinear-{t}", "DynamicQuantizeLinear", [x(3, 4)], outputs=3)
    for z in np.uint8, np.int8, np.int16:
        yield Case(f"QuantizeLinear-{t}-{np.dtype(z).name}", "QuantizeLinear",
                   [x(2, 3, low=-40, high=40), np.array(0.5, np.float32), np.array(3, z)])
    if np.dtype(dtype).kind != "f":  # long: what reads past the end finds no memory
        yield Case(f"QuantizeLinearLong-{t}", "QuantizeLinear",
                   [x(1, 1 << 18), np.array(0.5, np.float32), np.array(3, np.uint8)])
    yield Case(f"QuantizeLinearAxis-{t}", "QuantizeLinear",
               [x(2, 3), np.array([0.5, 0.25, 1.0], np.float32), np.array([3, 4, 5], np.uint8)], dict(axis=1))
    yield Case(f"QuantizeLinearScale-{t}", "QuantizeLinear",
               [draw(random, np.float32, (5,)), x(low=1, high=1), np.array(3, np.uint8)])
    yield Case(f"QuantizeLinearZero-{t}", "QuantizeLinear",
               [draw(random, np.float32, (5,)), np.array(0.5, np.float32), x(low=3, high=3)])
    yield Case(f"DequantizeLinear-{t}", "DequantizeLinear", [x(2, 3), np.array(0.5, np.float32)])
    yield Case(f"DequantizeLinearZero-{t}", "DequantizeLinear",
               [x(2, 3), np.array(0.5, np.float32), x(low=0, high=0)])
    yield Case(f"DequantizeLinearScale-{t}", "DequantizeLinear",
               [draw(random, np.uint8, (5,), 0, 255), x(low=1, high=1), np.array(3, np.uint8)])
    yield Case(f"QLinearMatMul-{t}", "QLinearMatMul",
               [x(2, 3, low=-9, high=9), np.array(0.5, np.float32), x(low=1, high=1),
                draw(random, np.int8, (3, 2), -9, 9), np.array(0.25, np.float32), np.array(0, np.int8),
                np.array(0.5, np.float32), np.array(0, np.int8)])
    for to in TYPES:
        code = helper.np_dtype_to_tensor_dtype(np.dtype(TYPES[to]))
        yield Case(f"Cast-{t}-{to}", "Cast", [x(7, low=0, high=99)], dict(to=code))
    for e in TYPES:
        exponent = draw(random, TYPES[e], (3,), 0, 3)
        if np.dtype(TYPES[e]).kind == "f":
            exponent = np.round(exponent)
        yield Case(f"Pow-{t}-{e}", "Pow", [x(2, 3, low=1, high=4), exponent])
        yield Case(f"PowConstant-{t}-{e}", "Pow", [x(2, 3, low=1, high=4), exponent], constants=(1,))
    for to in TYPES:
        yield Case(f"CastLike-{t}-{to}", "CastLike", [x(7, low=0, high=99), draw(random, TYPES[to], (1,))])
    yield Case(f"ConstantOfShape-{t}", "ConstantOfShape", [i64(2, 3)],
               dict(value=numpy_helper.from_array(x(1))), constants=(0,))
    yield Case(f"Dropout-{t}", "Dropout", [x(2, 3)])
    yield Case(f"Conv-{t}", "Conv", [x(2, 3, 6), x(4, 3, 3), x(4)], constants=(1, 2))
    yield Case(f"ConvTranspose-{t}", "ConvTranspose", [x(2, 3, 6), x(3, 4, 3), x(4)], constants=(1, 2))
    yield Case(f"ConvInteger-{t}", "ConvInteger",
               [x(1, 2, 6, low=-128, high=127), draw(random, np.int8, (3, 2, 3), -128, 127)], constants=(1,))
    yield Case(f"QLinearConv-{t}", "QLinearConv",
               [x(1, 2, 6, low=-9, high=9), np.array(0.5, np.float32), x(low=1, high=1),
                draw(random, np.int8, (3, 2, 3), -9, 9), np.array(0.25, np.float32), np.array(0, np.int8),
                np.array(0.5, np.float32), x(low=1, high=1)], constants=(1, 2, 3, 4, 5, 6, 7))
    yield Case(f"RotaryEmbedding-{t}", "RotaryEmbedding", [x(1, 3, 8), x(5, 2), x(5, 2), i64(0, 2, 4).reshape(1, 3)],
               dict(num_heads=2), constants=(1, 2), opset=23)
    yield Case(f"Attention-{t}", "Attention", [x(1, 3, 8), x(1, 3, 8), x(1, 3, 8)],
               dict(q_num_heads=2, kv_num_heads=2), opset=23)
    for op in "Gelu", "FastGelu", "QuickGelu":
        yield Case(f"com.microsoft.{op}-{t}", op, [x(2, 8)], domain="com.microsoft")
    yield Case(f"com.microsoft.BiasGelu-{t}", "BiasGelu", [x(2, 8), x(8)], domain="com.microsoft")
    yield Case(f"com.microsoft.SkipLayerNormalization-{t}", "SkipLayerNormalization",
               [x(1, 2, 8), x(1, 2, 8), x(8), x(8)], domain="com.microsoft")
    yield Case(f"com.microsoft.SkipSimplifiedLayerNormalization-{t}", "SkipSimplifiedLayerNormalization",
               [x(1, 2, 8), x(1, 2, 8), x(8)], domain="com.microsoft")
    yield Case(f"RMSNormalization-{t}", "RMSNormalization", [x(2, 8), x(8)], opset=23)


# Operators of one type variable of floats: what they are for bf16, too.
BF16 = {"Abs", "Neg", "Relu", "Ceil", "Floor", "Exp", "Tanh", "Sigmoid", "Erf", "Sqrt", "Identity", "Add", "Sub",
        "Mul", "Div", "Max", "Min", "ReduceSum", "ReduceMax", "ReduceMean", "Softmax", "MatMul", "Where",
        "Concat", "Transpose", "LayerNormalization", "RMSNormalization", "Pow", "Expand", "Pad"}


def cases():
    """All of them, the same in every run."""
    for t in TYPES:
        random = np.random.default_rng(zlib.crc32(t.encode()))
        for case in cases_of_type(t, random):
            yield case
            yield case.folded()
            if t == "f32" and case.op in BF16 and not case.constants:
                if all(x is None or x.dtype != np.float64 for x in case.inputs):
                    yield dataclasses.replace(case, name=case.name + "-bf16", bf16=True)
