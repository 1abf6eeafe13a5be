# SPDX-License-Identifier: Apache-2.0
"""Runs one model in one engine, in a process of its own, so that no engine's idle threads take time
from another.

    worker.py ENGINE MODEL PRECISION THREADS shape INPUTS.npz RUNS OUTPUTS.npz
        prints the milliseconds of each run as JSON and writes the outputs
    worker.py ENGINE MODEL PRECISION THREADS stream LENGTHS.json BATCH SORTED
        prints the seconds that sequences of these lengths take, in batches padded to their longest,
        as they stand or (SORTED 1) ordered by length
"""
import json
import pathlib
import sys
import time

import numpy as np


def onnxruntime_runner(model, precision, threads):
    import onnxruntime

    if precision == "bf16":
        raise ValueError("onnxruntime has no bf16 GEMMs on a CPU")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs)))


def openvino_runner(model, precision, threads):
    import openvino

    core = openvino.Core()
    # By itself OpenVINO computes float models in bf16 where the CPU can, and says nothing of it.
    compiled = core.compile_model(
        model,
        "CPU",
        {
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
        },
    )
    request = compiled.create_infer_request()

    def run(inputs):
        request.infer(inputs)
        return {
            output.get_any_name(): request.get_tensor(output).data.copy()
            for output in compiled.outputs
        }

    return run


def torch_runner(model, precision, threads):
    """transformers' BertForQuestionAnswering (scaled_dot_product_attention) with the weights of a model
    that tools/python/make_bert.py has made: they have its names."""
    import onnx
    import torch
    import transformers

    if precision != "fp32":
        raise ValueError("torch runs the float graph only")
    torch.set_num_threads(threads)
    weights = {i.name: onnx.numpy_helper.to_array(i) for i in onnx.load(model).graph.initializer}
    config = bert_config(weights)
    module = transformers.BertForQuestionAnswering(config).eval()
    # Linear keeps [out, in], MatMul [in, out].
    linear = {name + ".weight" for name, m in module.named_modules() if isinstance(m, torch.nn.Linear)}
    state = {name: torch.from_numpy(weights[name].T.copy() if name in linear else weights[name].copy())
             for name in module.state_dict() if name in weights}
    missing = module.load_state_dict(state, strict=False).missing_keys
    if missing:
        raise ValueError(f"{model} has no {', '.join(missing)}: torch runs models of make_bert.py only")

    def run(inputs):
        tensors = {name: torch.from_numpy(array.astype(np.int64)) for name, array in inputs.items()}
        with torch.inference_mode():
            outputs = module(**tensors)
        return {name: outputs[name].numpy() for name in ("start_logits", "end_logits")}

    return run


def bert_config(weights):
    import transformers

    words = weights["bert.embeddings.word_embeddings.weight"]
    layers = {name.split(".")[3] for name in weights if name.startswith("bert.encoder.layer.")}
    return transformers.BertConfig(
        vocab_size=words.shape[0],
        hidden_size=words.shape[1],
        num_hidden_layers=len(layers),
        # 64 columns a head, as make_bert.py's mini, base and large have; MiniLM has 32. With other heads the
        # answers differ, which compare.py finds.
        num_attention_heads=words.shape[1] // 64,
        intermediate_size=weights["bert.encoder.layer.0.intermediate.dense.bias"].shape[0],
        max_position_embeddings=weights["bert.embeddings.position_embeddings.weight"].shape[0],
    )


def measure_shape(run, inputs_file, runs, outputs_file):
    inputs = dict(np.load(inputs_file))
    for _ in range(2):
        result = run(inputs)
    milliseconds = []
    for _ in range(runs):
        start = time.perf_counter()
        run(inputs)
        milliseconds.append(1e3 * (time.perf_counter() - start))
    np.savez(outputs_file, **result)
    return milliseconds


def padded_batches(lengths, batch, names, is_sorted):
    """Random ids in rows of these lengths, padded to the longest of each batch."""
    random = np.random.default_rng(1)
    lengths = sorted(lengths, reverse=True) if is_sorted else lengths
    for first in range(0, len(lengths), batch):
        group = np.array(lengths[first:first + batch])
        mask = (np.arange(group.max()) < group[:, None]).astype(np.int64)
        ids = random.integers(1000, 20000, mask.shape) * mask
        yield {name: mask if "mask" in name else np.zeros_like(mask) if "type" in name else ids
               for name in names}


def measure_stream(run, model, lengths_file, batch, is_sorted):
    import onnx

    names = [value.name for value in onnx.load(model, load_external_data=False).graph.input]
    lengths = json.loads(pathlib.Path(lengths_file).read_text())
    batches = list(padded_batches(lengths, batch, names, is_sorted))
    for inputs in batches:  # shapes that come for the first time cost more
        run(inputs)
    start = time.perf_counter()
    for inputs in batches:
        run(inputs)
    return time.perf_counter() - start


def main():
    engine, model, precision, threads, kind, *rest = sys.argv[1:]
    make = {"onnxruntime": onnxruntime_runner, "openvino": openvino_runner, "torch": torch_runner}
    run = make[engine](model, precision, int(threads))
    if kind == "shape":
        print(json.dumps(measure_shape(run, rest[0], int(rest[1]), rest[2])))
    else:
        print(json.dumps(measure_stream(run, model, rest[0], int(rest[1]), rest[2] == "1")))


if __name__ == "__main__":
    main()
