# SPDX-License-Identifier: Apache-2.0
"""ONNX operators by torch: a function for each, `f(node, *inputs)`, for the operators of BERT graphs.

Integer tensors that shapes are computed from stay on the CPU; what is given to an operator together
with a tensor on another device is moved there by the caller (onnx_module.py).
"""
import math

import numpy as np
import onnx
import torch
import torch.nn.functional as F
from onnx import TensorProto, numpy_helper

DTYPES = {
    TensorProto.FLOAT: torch.float32, TensorProto.FLOAT16: torch.float16,
    TensorProto.BFLOAT16: torch.bfloat16, TensorProto.DOUBLE: torch.float64,
    TensorProto.INT64: torch.int64, TensorProto.INT32: torch.int32, TensorProto.INT8: torch.int8,
    TensorProto.UINT8: torch.uint8, TensorProto.BOOL: torch.bool,
}
OPERATORS = {}


class Node:
    """A node with its attributes as Python values and the opset it is written for."""

    def __init__(self, proto, opset):
        self.kind, self.opset = proto.op_type, opset
        self.name = proto.name or f"{proto.op_type} that makes {proto.output[0]}"
        self.inputs, self.outputs = list(proto.input), list(proto.output)
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in proto.attribute}

    def get(self, name, default=None):
        return self.attributes.get(name, default)

    def error(self, problem):
        return ValueError(f"node {self.name} ({self.kind}): {problem}")


def operator(function):
    OPERATORS[function.__name__.rstrip("_")] = function
    return function


def _elementwise(**functions):
    for name, function in functions.items():
        OPERATORS[name] = lambda node, *x, f=function: f(*x)


def _divide(a, b):
    return a / b if a.is_floating_point() else torch.div(a, b, rounding_mode="trunc")


def _fold(function):
    """Of any number of inputs."""
    def folded(*x):
        result = x[0]
        for other in x[1:]:
            result = function(result, other)
        return result
    return folded


_elementwise(
    Add=torch.add, Sub=torch.sub, Mul=torch.mul, Div=_divide, Pow=lambda a, b: a.pow(b.to(a.dtype)),
    Sqrt=torch.sqrt, Erf=torch.erf, Tanh=torch.tanh, Exp=torch.exp, Log=torch.log, Neg=torch.neg,
    Abs=torch.abs, Reciprocal=torch.reciprocal, Sigmoid=torch.sigmoid, Relu=torch.relu,
    Cos=torch.cos, Sin=torch.sin, Sign=torch.sign, Ceil=torch.ceil, Floor=torch.floor, Round=torch.round,
    Softplus=F.softplus, Sum=_fold(torch.add),
    MatMul=torch.matmul, Identity=lambda x: x, Where=torch.where, IsNaN=torch.isnan,
    Equal=torch.eq, Less=torch.lt, Greater=torch.gt, LessOrEqual=torch.le, GreaterOrEqual=torch.ge,
    And=torch.logical_and, Or=torch.logical_or, Not=torch.logical_not,
    Min=_fold(torch.minimum), Max=_fold(torch.maximum))


# --- matmuls, activations, norms ----------------------------------------------------------------
@operator
def Gemm(node, a, b, c=None):
    a = a.T if node.get("transA", 0) else a
    b = b.T if node.get("transB", 0) else b
    matmul = node.get("alpha", 1.0) * (a @ b)
    return matmul if c is None else matmul + node.get("beta", 1.0) * c


@operator
def Gelu(node, x):
    return F.gelu(x, approximate=node.get("approximate", b"none").decode())


@operator
def Softmax(node, x):
    axis = node.get("axis", -1 if node.opset >= 13 else 1)
    if node.opset < 13 and axis % x.dim() != x.dim() - 1:
        raise node.error(f"axis {axis}: Softmax before opset 13 is supported along the last axis only; convert the "
                         "model to opset 13")
    return torch.softmax(x, axis)


@operator
def LayerNormalization(node, x, gamma, beta=None):
    axis = node.get("axis", -1) % x.dim()
    return F.layer_norm(x, x.shape[axis:], gamma, beta, node.get("epsilon", 1e-5))


@operator
def RMSNormalization(node, x, gamma):
    axis = node.get("axis", -1) % x.dim()
    return F.rms_norm(x, x.shape[axis:], gamma, node.get("epsilon", 1e-5))


@operator
def Conv(node, x, weight, bias=None):
    dimensions = x.dim() - 2
    if node.get("auto_pad", b"NOTSET") not in (b"NOTSET", b"VALID"):
        raise node.error(f"auto_pad {node.get('auto_pad').decode()} is not supported")
    pads = node.get("pads", [0] * 2 * dimensions)
    x = F.pad(x, [n for axis in reversed(range(dimensions)) for n in (pads[axis], pads[axis + dimensions])])
    convolve = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[dimensions]
    return convolve(x, weight, bias, node.get("strides", [1] * dimensions), 0, node.get("dilations", [1] * dimensions),
                    node.get("group", 1))


@operator
def Einsum(node, *x):
    return torch.einsum(node.attributes["equation"].decode(), *x)


@operator
def Clip(node, x, low=None, high=None):
    low, high = node.get("min", low), node.get("max", high)
    return x if low is None and high is None else torch.clamp(x, low, high)


@operator
def Dropout(node, x, *_):
    return x


def _reduce(function):
    def reduce(node, x, axes=None):
        axes = node.get("axes", axes.tolist() if axes is not None else None)
        keep = bool(node.get("keepdims", 1))
        if not axes:
            if node.get("noop_with_empty_axes", 0):
                return x
            axes = list(range(x.dim()))
        return function(x, axes, keep)
    return reduce


OPERATORS["ReduceMean"] = _reduce(lambda x, axes, keep: x.mean(axes, keepdim=keep))
OPERATORS["ReduceSum"] = _reduce(lambda x, axes, keep: x.sum(axes, keepdim=keep))
OPERATORS["ReduceMax"] = _reduce(lambda x, axes, keep: x.amax(axes, keepdim=keep))
OPERATORS["ReduceMin"] = _reduce(lambda x, axes, keep: x.amin(axes, keepdim=keep))
OPERATORS["ReduceL2"] = _reduce(lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep))


@operator
def ArgMax(node, x):
    axis = node.get("axis", 0)
    if node.get("select_last_index", 0):
        return x.shape[axis] - 1 - x.flip(axis).argmax(axis, bool(node.get("keepdims", 1)))
    return x.argmax(axis, bool(node.get("keepdims", 1)))


# --- shapes and places --------------------------------------------------------------------------
@operator
def Constant(node):
    for name in ("value_int", "value_ints"):
        if name in node.attributes:
            return torch.tensor(node.attributes[name], dtype=torch.int64)
    for name in ("value_float", "value_floats"):
        if name in node.attributes:
            return torch.tensor(node.attributes[name], dtype=torch.float32)
    return from_tensor(node.attributes["value"])


@operator
def Shape(node, x):
    return torch.tensor(x.shape, dtype=torch.int64)[node.get("start", 0):node.get("end", x.dim())]


@operator
def Size(node, x):
    return torch.tensor(x.numel(), dtype=torch.int64)


@operator
def ConstantOfShape(node, shape):
    value = from_tensor(node.attributes["value"]) if "value" in node.attributes else torch.zeros(1)
    return value.reshape(()).expand(shape.tolist()).clone()


@operator
def Range_(node, start, limit, delta):
    return torch.arange(start.item(), limit.item(), delta.item(), dtype=start.dtype)


@operator
def Cast(node, x):
    return x.to(DTYPES[node.attributes["to"]])


@operator
def CastLike(node, x, like):
    return x.to(like.dtype)


@operator
def Transpose(node, x):
    return x.permute(node.get("perm", list(range(x.dim()))[::-1]))


@operator
def Reshape(node, x, shape):
    sizes = shape.tolist()
    if not node.get("allowzero", 0):
        sizes = [x.shape[i] if size == 0 else size for i, size in enumerate(sizes)]
    return x.reshape(sizes)


@operator
def Flatten(node, x):
    axis = node.get("axis", 1)
    axis = axis + x.dim() if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:axis]), -1)


@operator
def Squeeze(node, x, axes=None):
    axes = node.get("axes", axes.tolist() if axes is not None else None)
    return x.squeeze() if axes is None else x.squeeze(tuple(axes))


@operator
def Unsqueeze(node, x, axes=None):
    axes = node.get("axes", axes.tolist() if axes is not None else None)
    rank = x.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        x = x.unsqueeze(axis)
    return x


@operator
def Concat(node, *parts):
    return torch.cat(parts, node.attributes["axis"])


@operator
def Split(node, x, sizes=None):
    axis = node.get("axis", 0)
    sizes = node.get("split", sizes.tolist() if sizes is not None else None)
    if sizes is None:
        sizes = -(-x.shape[axis] // len(node.outputs))
    return torch.split(x, sizes, axis)


@operator
def Slice(node, x, starts=None, ends=None, axes=None, steps=None):
    def given(name, tensor):
        return tensor.tolist() if tensor is not None else node.get(name)
    starts, ends = given("starts", starts), given("ends", ends)
    axes = given("axes", axes) or list(range(len(starts)))
    steps = given("steps", steps) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps):
        places = range(x.shape[axis])[start:end:step] if step > 0 else range(x.shape[axis])[
            start:None if end < -x.shape[axis] else end:step]
        if step > 0:
            x = x.narrow(axis, places.start, max(0, places.stop - places.start))
            x = x if step == 1 else x[(slice(None),) * (axis % x.dim()) + (slice(None, None, step),)]
        else:
            x = x.index_select(axis, torch.tensor(list(places), device=x.device))
    return x


@operator
def Gather(node, x, indices):
    axis = node.get("axis", 0) % x.dim()
    indices = torch.where(indices < 0, indices + x.shape[axis], indices).long()
    if axis == 0:
        return F.embedding(indices, x) if x.dim() == 2 else x[indices]
    flat = x.index_select(axis, indices.reshape(-1))
    return flat.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])


@operator
def GatherND(node, x, indices):
    if node.get("batch_dims", 0):
        raise node.error("batch_dims other than 0 is not supported")
    return x[tuple(indices.long().unbind(-1))]


@operator
def GatherElements(node, x, indices):
    axis = node.get("axis", 0) % x.dim()
    # torch wants the other axes as long as those of the indices, or longer; ONNX wants them equal.
    return torch.gather(x, axis, torch.where(indices < 0, indices + x.shape[axis], indices).long())


@operator
def ScatterND(node, x, indices, updates):
    if node.get("reduction", b"none") != b"none":
        raise node.error(f"reduction {node.get('reduction').decode()} is not supported")
    return x.index_put(tuple(indices.long().unbind(-1)), updates)


@operator
def Pad(node, x, pads=None, value=None, axes=None):
    if node.get("mode", b"constant") != b"constant":
        raise node.error(f"mode {node.get('mode').decode()} is not supported")
    pads = node.get("pads", pads.tolist() if pads is not None else None)
    axes = list(range(x.dim())) if axes is None else [axis % x.dim() for axis in axes.tolist()]
    of_axis = {axis: (pads[i], pads[i + len(axes)]) for i, axis in enumerate(axes)}
    sizes = [n for axis in reversed(range(x.dim())) for n in of_axis.get(axis, (0, 0))]
    return F.pad(x, sizes, value=node.get("value", 0) if value is None else value.item())


@operator
def Expand(node, x, shape):
    return x.expand(torch.broadcast_shapes(x.shape, tuple(shape.tolist())))


@operator
def Tile(node, x, repeats):
    return x.repeat(repeats.tolist())


@operator
def Trilu(node, x, k=None):
    diagonal = 0 if k is None else int(k)
    return x.triu(diagonal) if node.get("upper", 1) else x.tril(diagonal)


@operator
def CumSum(node, x, axis):
    if node.get("exclusive", 0) or node.get("reverse", 0):
        raise node.error("exclusive and reverse are not supported")
    return x.cumsum(int(axis), dtype=x.dtype)


def from_tensor(proto):
    """A TensorProto as torch tensor."""
    array = numpy_helper.to_array(proto)
    if proto.data_type == TensorProto.BFLOAT16:  # NumPy has no such type
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    try:
        return torch.from_numpy(array.copy())
    except TypeError as error:
        raise ValueError(f"constant {proto.name}: type {TensorProto.DataType.Name(proto.data_type)} is not "
                         "supported") from error
