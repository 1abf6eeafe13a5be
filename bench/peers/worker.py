# SPDX-License-Identifier: Apache-2.0
"""Runs one model in one engine: worker.py ENGINE MODEL INPUTS.npz RUNS THREADS OUTPUTS.npz

Prints the milliseconds of each run as JSON and writes the outputs. A process of its own for each
measurement, so that no engine's idle threads take time from another.
"""
import json
import sys
import time

import numpy as np


def onnxruntime_runner(model, inputs, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda: dict(zip(names, session.run(names, inputs)))


def openvino_runner(model, inputs, threads):
    import openvino

    core = openvino.Core()
    # By itself OpenVINO computes float models in bf16 where the CPU can, and says nothing of it.
    compiled = core.compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32",
        },
    )
    request = compiled.create_infer_request()

    def run():
        request.infer(inputs)
        return {
            output.get_any_name(): request.get_tensor(output).data.copy()
            for output in compiled.outputs
        }

    return run


def main():
    engine, model, inputs, runs, threads, outputs = sys.argv[1:]
    arrays = dict(np.load(inputs))
    make = {"onnxruntime": onnxruntime_runner, "openvino": openvino_runner}[engine]
    run = make(model, arrays, int(threads))
    for _ in range(2):
        result = run()
    milliseconds = []
    for _ in range(int(runs)):
        start = time.perf_counter()
        run()
        milliseconds.append(1e3 * (time.perf_counter() - start))
    np.savez(outputs, **result)
    print(json.dumps(milliseconds))


if __name__ == "__main__":
    main()
