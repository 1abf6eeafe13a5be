# SPDX-License-Identifier: Apache-2.0
"""Int8 GEMMs of a model computed in float64, which is exact.

ONNX Runtime's kernels for u8 x s8 saturate on CPUs without VNNI instructions: they add two products of
bytes into 16 bits (vpmaddubsw). What its operators mean is the exact sum, so that is what bertcl is
compared with, on every CPU. Sums of float64 are exact up to 2^53.
"""
from onnx import TensorProto, helper


def _difference(node, name, zero, made):
    """Nodes for float64(name) - float64(zero), and the name of the result."""
    result = f"{node.output[0]}_{name}_exact"
    made.append(helper.make_node("Cast", [name], [result + "_wide"], to=TensorProto.DOUBLE))
    if not zero:
        return result + "_wide"
    made.append(helper.make_node("Cast", [zero], [result + "_zero"], to=TensorProto.DOUBLE))
    made.append(helper.make_node("Sub", [result + "_wide", result + "_zero"], [result]))
    return result


def _matmul_integer(node):
    """y = MatMulInteger(a, b, a_zero, b_zero)"""
    a, b, a_zero, b_zero = [*node.input, "", ""][:4]
    made, y = [], node.output[0]
    operands = [_difference(node, a, a_zero, made), _difference(node, b, b_zero, made)]
    return [*made, helper.make_node("MatMul", operands, [y + "_sums"]),
            helper.make_node("Cast", [y + "_sums"], [y], to=TensorProto.INT32)]


def _scaled(node, a, b, scales, zeros, result):
    """Nodes for result = (a - a_zero) (b - b_zero) * a_scale * b_scale in float32."""
    made, name = [], node.output[0]
    operands = [_difference(node, a, zeros[0], made), _difference(node, b, zeros[1], made)]
    return made + [helper.make_node("MatMul", operands, [name + "_sums"]),
                   helper.make_node("Cast", [name + "_sums"], [name + "_float"], to=TensorProto.FLOAT),
                   helper.make_node("Mul", scales, [name + "_scale"]),
                   helper.make_node("Mul", [name + "_float", name + "_scale"], [result])]


def _matmul_integer_to_float(node):
    """y = MatMulIntegerToFloat(a, b, a_scale, b_scale, a_zero, b_zero, bias)"""
    a, b, a_scale, b_scale, a_zero, b_zero, bias = [*node.input, "", "", ""][:7]
    y = node.output[0]
    made = _scaled(node, a, b, [a_scale, b_scale], [a_zero, b_zero], y + "_scaled" if bias else y)
    return made + [helper.make_node("Add", [y + "_scaled", bias], [y])] if bias else made


def _qlinear_matmul(node):
    """y = QLinearMatMul(a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero)"""
    a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = node.input
    y = node.output[0]
    return [*_scaled(node, a, b, [a_scale, b_scale], [a_zero, b_zero], y + "_scaled"),
            helper.make_node("QuantizeLinear", [y + "_scaled", y_scale, y_zero], [y])]


REWRITES = {"MatMulInteger": _matmul_integer, "MatMulIntegerToFloat": _matmul_integer_to_float,
            "QLinearMatMul": _qlinear_matmul}


def with_exact_gemms(model):
    """Rewrites the nodes of `model` (a ModelProto) in place; True if there was one to rewrite."""
    nodes, found = [], False
    for node in model.graph.node:
        rewrite = REWRITES.get(node.op_type)
        nodes += rewrite(node) if rewrite else [node]
        found = found or rewrite is not None
    if found:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return found
