# SPDX-License-Identifier: Apache-2.0
"""Times of models in ONNX Runtime by its CPU provider and by bertcl's, in turns: the median of each, after a warm-up. Shapes
are BATCHxLENGTH without padding.

    bench/onnxruntime_ep models/minilm-l6-squad/model.onnx int8/model.onnx --shapes 1x128 8x128
"""
import argparse
import os
import pathlib
import statistics
import time

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "BertclExecutionProvider"


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL", help="a BERT in ONNX, fp32 or Q/DQ")
    parser.add_argument("--shapes", nargs="+", default=["1x128", "8x128"])
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="of the CPU provider")
    parser.add_argument("--plugin", default=ROOT / "build" / "libonnxruntime_ep_bertcl.so", type=pathlib.Path)
    return parser.parse_args()


def cpu_session(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Or its threads go on spinning while the other provider is measured.
    options.add_session_config_entry("session.intra_op.allow_spinning", "1")
    options.add_session_config_entry("session.force_spinning_stop", "1")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def bertcl_session(model):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_provider_for_devices([d for d in onnxruntime.get_ep_devices() if d.ep_name == NAME][:1],
                                     {"device": "cpu"})
    session = onnxruntime.InferenceSession(model, options, enable_fallback=0)
    assert session.get_providers()[0] == NAME
    return session


def inputs_of(session, batch, length):
    ids = np.random.default_rng(1).integers(1000, 2000, (batch, length))
    values = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    return {i.name: values[i.name] for i in session.get_inputs()}


def medians(sessions, inputs, seconds):
    """Milliseconds of each session; they take turns, so that what else the machine does meets both."""
    times = [[] for _ in sessions]
    for session in sessions:
        session.run(None, inputs)
    end = time.perf_counter() + seconds * len(sessions)
    while time.perf_counter() < end or len(times[0]) < 5:
        for session, own in zip(sessions, times):
            for _ in range(3):
                begin = time.perf_counter()
                session.run(None, inputs)
                own.append(1000 * (time.perf_counter() - begin))
    return [statistics.median(own) for own in times]


def main():
    options = parse()
    onnxruntime.register_execution_provider_library("bertcl", str(options.plugin))
    print(f"onnxruntime {onnxruntime.__version__}, {options.threads} threads\n")
    print("| model | shape | CPU provider, ms | bertcl, ms | times as fast |")
    print("| --- | --- | ---: | ---: | ---: |")
    for model in options.models:
        sessions = [cpu_session(model, options.threads), bertcl_session(model)]
        name = "/".join(pathlib.Path(model).parts[-2:])
        for shape in options.shapes:
            batch, length = map(int, shape.split("x"))
            cpu, bertcl = medians(sessions, inputs_of(sessions[0], batch, length), options.seconds)
            print(f"| {name} | {shape} | {cpu:.1f} | {bertcl:.1f} | {cpu / bertcl:.2f} |", flush=True)


if __name__ == "__main__":
    main()
