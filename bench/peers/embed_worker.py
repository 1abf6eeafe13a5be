# SPDX-License-Identifier: Apache-2.0
"""Turns texts into vectors by one engine, in a process of its own: tokens, model, pooling and normalization.

    embed_worker.py ENGINE MODEL FOLDER THREADS TEXTS.txt VECTORS.npy   prints {"seconds": ..}; a warm-up is not counted
    embed_worker.py nncf MODEL.onnx FOLDER THREADS TEXTS.txt OUT.xml    quantizes for OpenVINO, calibrated on the texts

FOLDER has the files of sentence-transformers; MODEL is what the engine reads.
"""
import json
import pathlib
import sys
import time

import numpy as np

BATCH = 32  # as sentence-transformers has it by default
LONGEST = 256


def tokenizer_of(folder):
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_truncation(LONGEST)
    tokenizer.enable_padding()
    return tokenizer


def padded(tokenizer, texts):
    encodings = tokenizer.encode_batch(texts)
    ids = np.array([each.ids for each in encodings])
    mask = np.array([each.attention_mask for each in encodings])
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def pooled_encoder(folder, run):
    """Batches of similar length, as sentence-transformers forms them, the mean of their tokens, and length 1."""
    tokenizer = tokenizer_of(folder)

    def encode(texts):
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        vectors = [None] * len(texts)
        for first in range(0, len(order), BATCH):
            chosen = order[first:first + BATCH]
            inputs = padded(tokenizer, [texts[i] for i in chosen])
            mask = inputs["attention_mask"][..., None].astype(np.float32)
            sums = (run(inputs) * mask).sum(1) / mask.sum(1)
            for i, vector in zip(chosen, sums / np.linalg.norm(sums, axis=1, keepdims=True)):
                vectors[i] = vector
        return np.array(vectors)

    return encode


def onnxruntime_encoder(model, folder, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    names = {"ids": "input_ids", "mask": "attention_mask", "types": "token_type_ids"}
    given = [i.name for i in session.get_inputs()]
    return pooled_encoder(folder, lambda inputs: session.run(
        None, {name: inputs[names.get(name, name)] for name in given})[0])


def openvino_encoder(model, folder, threads):
    import openvino

    compiled = openvino.Core().compile_model(model, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"})
    request = compiled.create_infer_request()
    given = [i.get_any_name() for i in compiled.inputs]
    return pooled_encoder(folder, lambda inputs: request.infer({name: inputs[name] for name in given})[0])


def sentence_transformers_encoder(folder, threads, **options):
    import sentence_transformers
    import torch

    torch.set_num_threads(threads)
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu", local_files_only=True, **options)
    return lambda texts: model.encode(texts, batch_size=BATCH)


def onnx_backend(model, folder, threads):
    import onnxruntime

    session = onnxruntime.SessionOptions()
    session.intra_op_num_threads = threads
    return sentence_transformers_encoder(folder, threads, backend="onnx", model_kwargs={
        "file_name": pathlib.Path(model).name, "provider": "CPUExecutionProvider", "session_options": session})


def fastembed_encoder(model, folder, threads):
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    TextEmbedding.add_custom_model(model="local", pooling=PoolingType.MEAN, normalization=True,
                                   sources=ModelSource(hf="local"), dim=384, model_file=pathlib.Path(model).name)
    made = TextEmbedding("local", specific_model_path=str(folder), threads=threads)
    return lambda texts: np.array(list(made.embed(texts, batch_size=BATCH)))


def llama_encoder(model, threads):
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.embedding = True
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_parallel = BATCH
    params.n_ctx = BATCH * 512
    params.n_batch = params.n_ubatch = 2048
    server = xllamacpp.Server(params)

    def encode(texts):
        vectors = []
        for first in range(0, len(texts), BATCH):
            answer = server.handle_embeddings({"input": texts[first:first + BATCH], "model": "m"})
            data = sorted(answer["data"], key=lambda each: each["index"])
            vectors += [np.asarray(each["embedding"], np.float32) for each in data]
        return np.array(vectors)

    return encode


def quantize_for_openvino(model, folder, texts, out):
    import nncf
    import openvino

    tokenizer = tokenizer_of(folder)
    renamed = {"ids": "input_ids", "mask": "attention_mask", "types": "token_type_ids"}
    float_model = openvino.convert_model(model)
    given = [i.get_any_name() for i in float_model.inputs]
    samples = [padded(tokenizer, [text]) for text in texts]
    data = nncf.Dataset([{name: each[renamed.get(name, name)] for name in given} for each in samples])
    openvino.save_model(nncf.quantize(float_model, data, model_type=nncf.ModelType.TRANSFORMER,
                                      subset_size=len(samples)), out)


def encoder_of(engine, model, folder, threads):
    makers = {"onnxruntime": lambda: onnxruntime_encoder(model, folder, threads),
              "openvino": lambda: openvino_encoder(model, folder, threads),
              "st-torch": lambda: sentence_transformers_encoder(pathlib.Path(model), threads),
              "st-onnx": lambda: onnx_backend(model, folder, threads),
              "fastembed": lambda: fastembed_encoder(model, folder, threads),
              "llama.cpp": lambda: llama_encoder(model, threads)}
    return makers[engine]()


def main():
    engine, model, folder, threads, texts, out = sys.argv[1:]
    folder, texts = pathlib.Path(folder), pathlib.Path(texts).read_text(encoding="utf-8").splitlines()
    if engine == "nncf":
        quantize_for_openvino(model, folder, texts, out)
        return
    encode = encoder_of(engine, model, folder, int(threads))
    encode(texts[:BATCH])
    start = time.perf_counter()
    vectors = encode(texts)
    print(json.dumps({"seconds": time.perf_counter() - start}))
    np.save(out, vectors)


if __name__ == "__main__":
    main()
