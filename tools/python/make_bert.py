#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes BERT models with random weights as ONNX, in the spellings that exporters have used.

    tools/python/make_bert.py build/base.onnx --size base
    tools/python/make_bert.py build/tiny.onnx --size tiny --opset 11 --gelu tanh --mask where

Needs numpy and onnx only. The same arguments give the same bytes. The model answers questions:
inputs [batch, seq] ids, mask and token types, outputs [batch, seq] start and end logits. Weights
have the standard deviation of BERT's initialization (0.02 at 768 columns, so that activations keep
their size at other widths), LayerNorm has the few large channels that trained models have.
"""
import argparse
import dataclasses
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import output_files

#        layers, hidden, heads, intermediate, vocabulary
SIZES = {
    "tiny": (2, 64, 4, 128, 600),
    "mini": (4, 256, 4, 1024, 30522),
    "base": (12, 768, 12, 3072, 30522),
    "large": (24, 1024, 16, 4096, 30522),
}
CHOICES = {
    "layer_norm": ("decomposed", "whole"),
    "gelu": ("erf", "tanh", "whole"),
    "mask": ("-10000", "finfo", "where", "where-add"),
    "scale": ("scores", "operands"),
    "shapes": ("dynamic", "constant"),
    "mask_name": ("attention_mask", "input_mask"),
    "types_name": ("token_type_ids", "segment_ids"),
    "integers": ("int64", "int32"),
    "outputs": ("start_logits", "output_start_logits"),
}


@dataclasses.dataclass
class Spec:
    """What to write: the size, the opset, and one spelling for each thing (CHOICES)."""
    layers: int = 2
    hidden: int = 64
    heads: int = 4
    intermediate: int = 128
    vocabulary: int = 600
    positions: int = 512
    opset: int = 17
    seed: int = 0
    layer_norm: str = "decomposed"
    gelu: str = "erf"
    mask: str = "finfo"
    scale: str = "scores"
    shapes: str = "dynamic"
    mask_name: str = "attention_mask"
    types_name: str = "token_type_ids"
    integers: str = "int64"
    outputs: str = "start_logits"

    @classmethod
    def of_size(cls, size, **options):
        names = ("layers", "hidden", "heads", "intermediate", "vocabulary")
        return cls(**{**dict(zip(names, SIZES[size])), **options})

    def check(self):
        for name, choices in CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} is {getattr(self, name)!r} (choose from {', '.join(choices)})")
        for name, value, least in (("opset", True, 11), ("layer_norm", self.layer_norm == "whole", 17),
                                   ("gelu", self.gelu == "whole", 20)):
            if value and self.opset < least:
                raise ValueError(f"{name} {getattr(self, name)} needs opset {least}, not {self.opset}")
        if self.hidden % self.heads:
            raise ValueError(f"hidden size {self.hidden} is not a multiple of {self.heads} heads")


class Writer:
    """Collects nodes and initializers; its methods return names of values."""

    def __init__(self, spec):
        self.spec = spec
        self.nodes, self.initializers = [], []
        self.scope = ""
        self.random = np.random.default_rng(spec.seed)
        self._constants = {}
        self._used = set()

    # --- values -------------------------------------------------------------------------------
    def weight(self, name, array):
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def normal(self, *shape, std):
        values = self.random.standard_normal(shape, dtype=np.float32)
        return np.multiply(values, np.float32(std), out=values)

    def constant(self, value, dtype=np.float32):
        array = np.asarray(value, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._constants:
            self._constants[key] = self.weight(f"constant_{len(self._constants)}", array)
        return self._constants[key]

    def op(self, kind, *inputs, name=None, outputs=1, **attributes):
        path = f"{self.scope}/{name or kind}"
        unique, count = path, 0
        while unique in self._used:
            count += 1
            unique = f"{path}_{count}"
        self._used.add(unique)
        results = [f"{unique}_output_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), results, name=unique, **attributes))
        return results[0] if outputs == 1 else results

    # --- operators that changed with the opset ------------------------------------------------
    def with_axes(self, kind, x, axes, since, **attributes):
        if self.spec.opset < since:
            return self.op(kind, x, axes=axes, **attributes)
        return self.op(kind, x, self.constant(axes, np.int64), **attributes)

    def unsqueeze(self, x, axes):
        return self.with_axes("Unsqueeze", x, axes, 13)

    def squeeze(self, x, axes):
        return self.with_axes("Squeeze", x, axes, 13)

    def mean(self, x):
        return self.with_axes("ReduceMean", x, [-1], 18, keepdims=1)

    def halves(self, x):
        if self.spec.opset < 13:
            return self.op("Split", x, outputs=2, axis=-1, split=[1, 1])
        return self.op("Split", x, self.constant([1, 1], np.int64), outputs=2, axis=-1)

    def extent(self, x, axis):
        """Size of `x` along `axis` as int64[1]."""
        size = self.op("Gather", self.op("Shape", x), self.constant(axis, np.int64), axis=0)
        return self.unsqueeze(size, [0])

    # --- the parts of BERT --------------------------------------------------------------------
    def linear(self, x, name, rows, columns, std=None):
        std = std if std is not None else 0.02 * np.sqrt(768 / rows)
        w = self.weight(f"{name}.weight", self.normal(rows, columns, std=std))
        b = self.weight(f"{name}.bias", self.normal(columns, std=0.05))
        parts = name.split(".")
        matmul = self.op("MatMul", x, w, name=f"{parts[-1]}/MatMul")
        # torch writes the bias on the left
        return self.op("Add", b, matmul, name=f"{parts[-1]}/Add")

    def norm(self, x, name):
        hidden = self.spec.hidden
        gamma = 1.0 + self.normal(hidden, std=0.1)
        gamma[self.random.permutation(hidden)[:2]] *= 3
        gamma = self.weight(f"{name}.weight", gamma)
        beta = self.weight(f"{name}.bias", self.normal(hidden, std=0.1))
        if self.spec.layer_norm == "whole":
            return self.op("LayerNormalization", x, gamma, beta, axis=-1, epsilon=1e-12)
        d = self.op("Sub", x, self.mean(x))
        variance = self.mean(self.op("Pow", d, self.constant(2.0)))
        deviation = self.op("Sqrt", self.op("Add", variance, self.constant(1e-12)))
        normal = self.op("Div", d, deviation)
        return self.op("Add", self.op("Mul", normal, gamma), beta)

    def gelu(self, x):
        if self.spec.gelu == "whole":
            return self.op("Gelu", x)
        half, one = self.constant(0.5), self.constant(1.0)
        if self.spec.gelu == "erf":
            gate = self.op("Erf", self.op("Div", x, self.constant(np.sqrt(2.0))))
            product = self.op("Mul", x, self.op("Add", gate, one))
            return self.op("Mul", product, half)
        cube = self.op("Pow", x, self.constant(3.0))
        inner = self.op("Add", x, self.op("Mul", cube, self.constant(0.044715)))
        gate = self.op("Tanh", self.op("Mul", inner, self.constant(np.sqrt(2.0 / np.pi))))
        return self.op("Mul", self.op("Mul", x, half), self.op("Add", gate, one))

    def embeddings(self, ids, types):
        s = self.spec
        self.scope = "/bert/embeddings"
        words = self.weight("bert.embeddings.word_embeddings.weight",
                            self.normal(s.vocabulary, s.hidden, std=0.02))
        places = self.weight("bert.embeddings.position_embeddings.weight",
                             self.normal(s.positions, s.hidden, std=0.02))
        kinds = self.weight("bert.embeddings.token_type_embeddings.weight",
                            self.normal(2, s.hidden, std=0.02))
        everywhere = self.constant(np.arange(s.positions)[None], np.int64)
        position_ids = self.op("Slice", everywhere, self.constant([0], np.int64),
                               self.extent(ids, 1), self.constant([1], np.int64),
                               self.constant([1], np.int64))
        total = self.op("Add", self.op("Gather", words, ids), self.op("Gather", kinds, types))
        total = self.op("Add", total, self.op("Gather", places, position_ids))
        return self.norm(total, "bert.embeddings.LayerNorm")

    def mask(self, mask):
        """What is added to the scores, or (mask "where") where these are replaced."""
        s = self.spec
        self.scope = "/bert"
        low = -10000.0 if s.mask == "-10000" else float(np.finfo(np.float32).min)
        rows = self.unsqueeze(mask, [1, 2])
        if s.mask == "where":
            zero = self.constant(0, np.dtype(s.integers))
            return self.op("Equal", rows, zero)
        if s.mask == "where-add":
            return self.op("Where", self.op("Cast", rows, to=TensorProto.BOOL),
                           self.constant(0.0), self.constant(low))
        kept = self.op("Cast", rows, to=TensorProto.FLOAT)
        return self.op("Mul", self.op("Sub", self.constant(1.0), kept), self.constant(low))

    def shape(self, x, *last):
        """The operand of Reshape that keeps batch and sequence."""
        if self.spec.shapes == "constant":
            return self.constant([0, 0, *last], np.int64)
        sizes = [self.constant([n], np.int64) for n in last]
        return self.op("Concat", self.extent(x, 0), self.extent(x, 1), *sizes, axis=0)

    def attention(self, x, mask, prefix):
        s = self.spec
        size = s.hidden // s.heads
        operands = {}
        for role in ("query", "key", "value"):
            value = self.linear(x, f"{prefix}.self.{role}", s.hidden, s.hidden)
            value = self.op("Reshape", value, self.shape(value, s.heads, size))
            perm = [0, 2, 3, 1] if role == "key" else [0, 2, 1, 3]
            operands[role] = self.op("Transpose", value, perm=perm)
        if s.scale == "operands":
            for role in ("query", "key"):
                factor = self.constant(size ** -0.25)
                operands[role] = self.op("Mul", operands[role], factor)
        scores = self.op("MatMul", operands["query"], operands["key"])
        if s.scale == "scores":
            scores = self.op("Div", scores, self.constant(np.sqrt(size)))
        if s.mask == "where":
            low = self.constant(np.finfo(np.float32).min)
            scores = self.op("Where", mask, low, scores)
        else:
            scores = self.op("Add", scores, mask)
        context = self.op("MatMul", self.op("Softmax", scores, axis=-1), operands["value"])
        context = self.op("Transpose", context, perm=[0, 2, 1, 3])
        return self.op("Reshape", context, self.shape(context, s.hidden))

    def layer(self, x, mask, index):
        s = self.spec
        prefix = f"bert.encoder.layer.{index}"
        self.scope = f"/bert/encoder/layer.{index}/attention"
        context = self.attention(x, mask, f"{prefix}.attention")
        y = self.linear(context, f"{prefix}.attention.output.dense", s.hidden, s.hidden)
        x = self.norm(self.op("Add", y, x), f"{prefix}.attention.output.LayerNorm")
        self.scope = f"/bert/encoder/layer.{index}"
        wide = self.gelu(self.linear(x, f"{prefix}.intermediate.dense", s.hidden, s.intermediate))
        y = self.linear(wide, f"{prefix}.output.dense", s.intermediate, s.hidden)
        return self.norm(self.op("Add", y, x), f"{prefix}.output.LayerNorm")

    def model(self):
        s = self.spec
        inputs = ["input_ids", s.mask_name, s.types_name]
        start = s.outputs
        outputs = [start, start.replace("start", "end")]
        x = self.embeddings(inputs[0], inputs[2])
        mask = self.mask(inputs[1])
        for index in range(s.layers):
            x = self.layer(x, mask, index)
        self.scope = ""
        # Four times the usual size: logits that spread as those of a trained model do.
        logits = self.linear(x, "qa_outputs", s.hidden, 2, std=0.08 * np.sqrt(768 / s.hidden))
        for name, column in zip(outputs, self.halves(logits)):
            result = self.squeeze(column, [-1])
            self.nodes[-1].output[0] = name
            assert result != name

        integers = TensorProto.INT64 if s.integers == "int64" else TensorProto.INT32
        graph = helper.make_graph(
            self.nodes, "bert",
            [helper.make_tensor_value_info(n, integers, ["batch", "sequence"]) for n in inputs],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", "sequence"])
             for n in outputs],
            self.initializers)
        opset = helper.make_opsetid("", s.opset)
        return helper.make_model(graph, opset_imports=[opset], producer_name="make_bert",
                                 ir_version=helper.find_min_ir_version_for([opset]))


def build(spec):
    """The model of a Spec as onnx.ModelProto. Throws ValueError for a spelling its opset lacks."""
    spec.check()
    return Writer(spec).model()


def save(model, path):
    """Writes under a temporary name first."""
    with output_files.pending(path) as temporary, open(temporary, "wb") as file:
        file.write(model.SerializeToString())


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("output", help="file to write")
    parser.add_argument("--size", choices=SIZES, default="base")
    for field in dataclasses.fields(Spec):
        flag = "--" + field.name.replace("_", "-")
        if field.name in CHOICES:
            parser.add_argument(flag, choices=CHOICES[field.name], default=field.default)
        elif field.name in ("opset", "seed", "positions"):
            parser.add_argument(flag, type=int, default=field.default)
        else:
            parser.add_argument(flag, type=int, default=argparse.SUPPRESS, help="instead of the size's")
    options = vars(parser.parse_args(arguments))
    output, size = options.pop("output"), options.pop("size")
    try:
        save(build(Spec.of_size(size, **options)), output)
    except (ValueError, OSError) as error:
        print(f"make_bert: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
