# SPDX-License-Identifier: Apache-2.0
"""Sessions of ONNX Runtime with the execution provider, for its tests."""
import json
import os
import pathlib
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
from onnx import helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLUGIN = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR", ROOT / "build")) / "libonnxruntime_ep_bertcl.so"
MODEL = ROOT / "models" / "minilm-l6-squad" / "model.onnx"
NAME = "BertclExecutionProvider"


def devices():
    return [d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME]


def session(model, options=None, profile=None, without=None):
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    settings.add_provider_for_devices(devices()[:1], options or {})
    if profile:
        settings.enable_profiling = True
        settings.profile_file_prefix = str(profile)
    if without:
        settings.add_session_config_entry("optimization.disable_specified_optimizers", without)
    return onnxruntime.InferenceSession(model, settings, enable_fallback=0)


def batch(size, length, padded=True):
    random = np.random.default_rng(size * 1000 + length)
    mask = np.ones((size, length), np.int64)
    if padded:
        mask[0, (length + 1) // 2:] = 0
    return {"input_ids": random.integers(1000, 2000, (size, length)), "attention_mask": mask,
            "token_type_ids": np.zeros((size, length), np.int64)}


def run(runner, inputs):
    names = [o.name for o in runner.get_outputs()]
    return dict(zip(names, runner.run(names, inputs)))


def nodes_by_provider(model, inputs, options=None):
    """How many nodes of a run each provider computed."""
    with tempfile.TemporaryDirectory() as folder:
        runner = session(model, options, profile=pathlib.Path(folder) / "profile")
        run(runner, inputs)
        events = json.loads(pathlib.Path(runner.end_profiling()).read_text())
    counts = {}
    for event in events:
        provider = event.get("args", {}).get("provider")
        if provider and event["name"].endswith("_kernel_time"):
            counts[provider] = counts.get(provider, 0) + 1
    return counts


class ProviderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not PLUGIN.exists():
            raise unittest.SkipTest(f"{PLUGIN} is not built")
        if not any(d.ep_name == NAME for d in onnxruntime.get_ep_devices()):
            onnxruntime.register_execution_provider_library("bertcl", str(PLUGIN))
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def save(self, model, name="model.onnx"):
        path = self.folder / name
        onnx.save(model, path)
        return path

    def save_graph(self, graph):
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return self.save(model, f"{graph.name}.onnx")
