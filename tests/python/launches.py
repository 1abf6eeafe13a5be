#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One model in the spellings that quantizers and optimizers give it, and what bertcl launches for each.

    build/venv/bin/python tests/python/launches.py [--questions 50]

prints the table of docs/compiler.md. The spellings are files of ONNX Runtime's quantizers and optimizers, made of
the default model, and the one that bertcl's quantizer writes.
"""
import argparse
import collections
import dataclasses
import logging
import pathlib
import tempfile

import onnx
import onnxruntime
import questions
from onnxruntime.quantization import QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from onnxruntime.transformers import optimizer
from support import ROOT, Batches, Reference, bertcl, bertcl_run, inspect, optimize
from test_onnxruntime import MODEL, Closeness

SAMPLE = ROOT / "data" / "sample-v2.0.json"
CALIBRATION = ROOT / "data" / "calibration.json"
HEADS, HIDDEN = 12, 384  # of the default model
U8, S8 = QuantType.QUInt8, QuantType.QInt8
# Inputs of MatMuls only: what bertcl quantizes by default, and ONNX Runtime's example for GPUs
MATMULS = dict(op_types_to_quantize=["MatMul"])
INPUTS_ONLY = dict(OpTypesToExcludeOutputQuantization=["MatMul"])
# Tells the quantizers the type of what the operators of com.microsoft give
FLOAT = dict(DefaultTensorType=onnx.TensorProto.FLOAT)


class Spellings:
    """Files of `model`, a BERT of the default model's sizes, in `folder`; each method writes one and gives its path."""

    def __init__(self, model, folder, examples):
        self.model, self.folder, self.examples = model, pathlib.Path(folder), examples
        self.source = self._optimized_by_runtime(model, "folded",  # weights without Cast and Transpose
                                                 onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC)

    def path(self, name):
        return self.folder / (name.replace(" ", "_") + ".onnx")

    def _optimized_by_runtime(self, source, name, level):
        optimize(source, self.path(name), level)
        return self.path(name)

    def own(self):
        bertcl("quantize", self.model, "-o", self.path("own"), "--force", "--data", CALIBRATION, "--samples", 16)
        return self.path("own")

    def preprocessed(self):
        if not self.path("preprocessed").exists():
            quant_pre_process(self.source, self.path("preprocessed"), skip_symbolic_shape=True)
        return self.path("preprocessed")

    def fused(self):
        """The operators of com.microsoft, by ONNX Runtime's optimizer of transformers."""
        if not self.path("fused").exists():
            optimizer.optimize_model(str(self.source), "bert", HEADS, HIDDEN,
                                     opt_level=0).save_model_to_file(str(self.path("fused")))
        return self.path("fused")

    def static(self, name, source=None, activations=U8, per_channel=True, options=None, **settings):
        samples = Batches(inputs for inputs, _ in questions.batches(self.examples, 4))
        quantize_static(source or self.source, self.path(name), samples, quant_format=QuantFormat.QDQ,
                        activation_type=activations, weight_type=S8, per_channel=per_channel,
                        extra_options=options or {}, **settings)
        return self.path(name)

    def matmuls(self, name, dedicated=False, **settings):
        options = dict(INPUTS_ONLY, DedicatedQDQPair=dedicated,
                       ActivationSymmetric=settings.get("activations") == S8)
        return self.static(name, options=options, **MATMULS, **settings)

    def dynamic(self, name, source=None):
        quantize_dynamic(source or self.source, self.path(name), weight_type=S8, per_channel=True,
                         extra_options=FLOAT)
        return self.path(name)

    def all(self):
        """Name and path of each; the first is the measure of the others."""
        yield "bertcl", self.own()
        yield "ONNX Runtime, u8, per tensor", self.matmuls("u8", per_channel=False)
        yield "ONNX Runtime, i8, per channel", self.matmuls("s8", activations=S8)
        yield ("ONNX Runtime, u8, per channel, dedicated pairs, preprocessed",
               self.matmuls("u8 dedicated", dedicated=True, source=self.preprocessed()))
        yield ("ONNX Runtime, i8, per tensor, dedicated pairs, preprocessed",
               self.matmuls("s8 dedicated", activations=S8, per_channel=False, dedicated=True,
                             source=self.preprocessed()))
        yield ("ONNX Runtime, u8, then optimized by it",
               self._optimized_by_runtime(self.path("u8"), "u8 optimized",
                                          onnxruntime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED))
        yield "ONNX Runtime, dynamic", self.dynamic("dynamic")
        yield "fused operators, dynamic", self.dynamic("fused dynamic", self.fused())
        yield "ONNX Runtime, every operator", self.static("all")


@dataclasses.dataclass
class Launches:
    """What a file compiles to, and how near its results are to ONNX Runtime's of the same file."""
    name: str
    report: dict
    closeness: Closeness
    peer: Closeness  # ONNX Runtime with its graph optimizations, against itself without them

    @property
    def count(self):
        return self.report["launches"]

    @property
    def operators(self):
        return collections.Counter(op["op"] for op in self.report["ops"])

    @property
    def integer_linears(self):
        return sum(op["type"].startswith("int8") and op["operations"] > 0 for op in self.report["ops"])

    def more_than(self, other):
        """Launches beyond those of `other`, with the first reason that the report gives for each operator."""
        more = {}
        for op, count in (self.operators - other.operators).items():
            reasons = [o["why_not_faster"] for o in self.report["ops"] if o["op"] == op and o["why_not_faster"]]
            more[op] = (count, reasons[0] if reasons else "")
        return more


def measure(name, path, examples):
    closeness, peer = Closeness(), Closeness()
    reference, optimized = Reference(path), Reference(path, optimized=True)
    for inputs, part in questions.batches(examples, 10):
        expected = reference.run(inputs)
        closeness.add(expected, bertcl_run(path, inputs, "--keep-padding"), inputs, part)
        peer.add(expected, optimized.run(inputs), inputs, part)
    return Launches(name, inspect(path), closeness, peer)


def all_launches(model, folder, count):
    vocabulary = questions.Vocabulary(MODEL.parent / "vocab.txt")
    examples = questions.load(SAMPLE, count, vocabulary, max_length=200)
    spellings = Spellings(model, folder, questions.load(CALIBRATION, 16, vocabulary, max_length=128))
    for name, path in spellings.all():
        yield measure(name, path, examples)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--questions", type=int, default=50)
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    print("| file | launches | MatMuls in int8 | equal answers (ONNX Runtime, optimized) | rms of logits | "
          "more launches than the first, and why |")
    print("| --- | --- | --- | --- | --- | --- |")
    first = None
    with tempfile.TemporaryDirectory() as folder:
        for launches in all_launches(MODEL, folder, options.questions):
            first = first or launches
            more = "; ".join(f"{count} {op}: {why}" for op, (count, why) in launches.more_than(first).items())
            print(f"| {launches.name} | {launches.count} | {launches.integer_linears} | "
                  f"{launches.closeness.equal:.0%} ({launches.peer.equal:.0%}) | "
                  f"{launches.closeness.rms:.2f} ({launches.peer.rms:.2f}) | {more} |", flush=True)


if __name__ == "__main__":
    main()
