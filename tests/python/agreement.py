#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How near implementations of one Q/DQ file are to each other, and to its nodes computed in float64.

    build/venv-torch/bin/python tests/python/agreement.py MODEL... --data dev-v1.1.json --questions 500

Two implementations of an int8 file differ wherever a value lies next to a rounding tie. What the file says without
rounding errors of float is the measure of both: bertcl should be as near to it as ONNX Runtime is.
"""
import argparse
import pathlib

import onnx
import questions
import torch
from c_session import Session
from support import ROOT, Reference
from test_onnxruntime import MODEL, Closeness

import onnx_module
import onnx_operators


class Exact:
    """The nodes of the file, one by one, in float64."""

    def __init__(self, path):
        self._module = onnx_module.OnnxModule(path)
        self._module.double()
        self._module.constants = {name: x.double() if x.is_floating_point() else x
                                  for name, x in self._module.constants.items()}
        onnx_operators.DTYPES[onnx.TensorProto.FLOAT] = torch.float64  # what a Cast to float gives

    @torch.no_grad()
    def run(self, inputs):
        outputs = self._module({name: torch.from_numpy(x) for name, x in inputs.items()})
        return {name: x.numpy() for name, x in outputs.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--vocab", type=pathlib.Path, default=MODEL.parent / "vocab.txt")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data" / "sample-v2.0.json")
    parser.add_argument("--questions", type=int, default=200)
    options = parser.parse_args()
    vocabulary = questions.Vocabulary(options.vocab)
    examples = questions.load(options.data, options.questions, vocabulary, max_length=256)
    for model in options.models:
        runs = {"bertcl": Session(model).run, "ONNX Runtime": Reference(model).run,
                "ONNX Runtime, optimized": Reference(model, optimized=True).run, "float64": Exact(model).run}
        names = list(runs)
        pairs = {(a, b): Closeness() for i, a in enumerate(names) for b in names[:i]}
        for inputs, part in questions.batches(examples, 25):
            outputs = {name: run(inputs) for name, run in runs.items()}
            for (a, b), closeness in pairs.items():
                closeness.add(outputs[a], outputs[b], inputs, part)
        print(f"{model}: {len(examples)} questions of {options.data.name}")
        for (a, b), closeness in pairs.items():
            print(f"  {a} and {b}: {closeness}", flush=True)


if __name__ == "__main__":
    main()
