# SPDX-License-Identifier: Apache-2.0
"""Runs of a model by bertcl and by ONNX Runtime on the same inputs, and what makes such models."""
import importlib.util
import json
import logging
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from exact_gemms import with_exact_gemms
from onnx import helper, numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
BERTCL = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR", ROOT / "build")) / "bertcl"
sys.path.insert(0, str(ROOT / "tools" / "python"))
DEFAULT_MODEL = ROOT / "models" / "minilm-l6-squad"
MODEL, VOCABULARY = DEFAULT_MODEL / "model.onnx", DEFAULT_MODEL / "vocab.txt"
SAMPLE, CALIBRATION = ROOT / "data" / "sample-v2.0.json", ROOT / "data" / "calibration.json"


def scratch(test):
    """A folder until the end of a test or, given its class, of all of them."""
    enter = test.enterClassContext if isinstance(test, type) else test.enterContext
    return pathlib.Path(enter(tempfile.TemporaryDirectory()))


def shallow_model(test, layers=2):
    """The default model with its first layers only, until the end of `test` (see scratch)."""
    path = scratch(test) / "model.onnx"
    subprocess.run([sys.executable, ROOT / "tests" / "device" / "shallow_model", MODEL, path, str(layers)], check=True)
    return path


def silence(test):
    """Without the warnings of exporters and ONNX Runtime until the end of a test or, given its class, of all of them."""
    logging.disable(logging.WARNING)
    clean_up = test.addClassCleanup if isinstance(test, type) else test.addCleanup
    clean_up(logging.disable, logging.NOTSET)


def needs(*packages):
    """Skips the test file that calls it where one of these packages of torch's environment is absent."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise unittest.SkipTest(f"{package} is not installed: tools/python/make_venv build/venv-torch "
                                    "tools/python/requirements-torch.txt")


def bertcl(*arguments, expect=0):
    """Runs the program; returns the finished process, whose exit code is `expect`."""
    done = subprocess.run([BERTCL, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != expect:
        raise AssertionError(f"bertcl {' '.join(map(str, arguments))}: exit code {done.returncode}, "
                             f"expected {expect}\n{done.stdout}{done.stderr}")
    return done


def bertcl_run(model, inputs, *options):
    """Outputs of `bertcl run` by name."""
    with tempfile.TemporaryDirectory() as folder:
        given, made = pathlib.Path(folder) / "in.npz", pathlib.Path(folder) / "out.npz"
        np.savez(given, **inputs)
        bertcl("run", model, "--inputs", given, "--outputs", made, *options)
        with np.load(made) as arrays:
            return dict(arrays)


def inspect(model, *options, expect=0):
    """The report of `bertcl inspect`."""
    return json.loads(bertcl("inspect", model, "--json", "-", *options, expect=expect).stdout)


class Reference:
    """ONNX Runtime without graph optimizations: what the nodes of the file say, one by one, with exact
    int8 GEMMs on every CPU. With them (`optimized`) it is another implementation of the same file."""

    def __init__(self, model, optimized=False):
        options = onnxruntime.SessionOptions()
        if not optimized:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # other tests have the cores
        proto = onnx.load_from_string(model) if isinstance(model, bytes) else onnx.load(model)
        if with_exact_gemms(proto):
            model = proto.SerializeToString()
        self._session = onnxruntime.InferenceSession(model, options,
                                                     providers=["CPUExecutionProvider"])
        self.outputs = [o.name for o in self._session.get_outputs()]

    def run(self, inputs):
        return dict(zip(self.outputs, self._session.run(self.outputs, inputs)))


def optimize(source, target, level):
    """Writes the file as a session of ONNX Runtime optimizes it."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


class Batches:
    """What ONNX Runtime's calibrators read: the inputs of one run after the other."""

    def __init__(self, batches):
        self._batches = iter(batches)

    def get_next(self):
        return next(self._batches, None)


def model_of(nodes, inputs, outputs, constants=None, opset=17):
    """A model of nodes of ONNX and of com.microsoft. `inputs` and `constants`: arrays by name; an input with symbols:
    (type, shape). `outputs`: names, or shapes of f32 by name."""
    typed = {name: x if isinstance(x, tuple) else (x.dtype, x.shape) for name, x in inputs.items()}
    graph = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
         for name, (dtype, shape) in typed.items()],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, outputs[name]) if isinstance(outputs, dict)
         else helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(x, name) for name, x in (constants or {}).items()])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def worst(expected, found, mask):
    """Largest difference on real tokens, and the range of the expected values there. NaN counts."""
    assert expected.keys() == found.keys(), f"{sorted(expected)} and {sorted(found)}"
    real = mask.astype(bool)
    difference, low, high = 0.0, np.inf, -np.inf
    for name, values in expected.items():
        assert values.shape == found[name].shape, f"{name}: {values.shape} and {found[name].shape}"
        error = np.abs(values[real] - found[name][real]).max()
        difference = max(difference, error if np.isfinite(error) else np.inf)
        low, high = min(low, values[real].min()), max(high, values[real].max())
    return difference, high - low
