# SPDX-License-Identifier: Apache-2.0
"""Texts to vectors by bertcl compared with other engines: texts of mixed lengths, with tokenization, pooling and
normalization; seconds, peak memory, and the cosines with the vectors of sentence-transformers in fp32.

    bench/embeddings --source MODEL_FOLDER --onnx EXPORTED_FOLDER --data dev-v1.1.json

MODEL_FOLDER is that of sentence-transformers, EXPORTED_FOLDER has model.onnx and the same files beside it. Texts are
sentences of the paragraphs of a SQuAD file. Each engine runs in a process of its own; loading and a first batch are not
counted. int8 models are made here, calibrated on other sentences of the file. --out keeps the result as JSON.
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import statistics
import sys
import tempfile

import numpy as np

from compare import BERTCL, ROOT, cpu_name, run, version_of

WORKER = pathlib.Path(__file__).with_name("embed_worker.py")
CALIBRATION = 128  # sentences
# Name, precision, package, and what runs it: an engine of embed_worker.py with its model; bertcl by its command.
ENGINES = {"bertcl-int8": ("int8", None), "bertcl-fp32": ("fp32", None),
           "sentence-transformers": ("fp32", "sentence-transformers"), "st-onnx": ("fp32", "optimum-onnx"),
           "openvino-int8": ("int8", "openvino"), "openvino-fp32": ("fp32", "openvino"),
           "onnxruntime-int8": ("int8", "onnxruntime"), "onnxruntime-fp32": ("fp32", "onnxruntime"),
           "llama.cpp-q8_0": ("q8_0", "xllamacpp"), "fastembed": ("fp32", "fastembed")}


def arguments():
    parser = argparse.ArgumentParser(prog="bench/embeddings", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, required=True, help="folder of sentence-transformers")
    parser.add_argument("--onnx", type=pathlib.Path, required=True, help="folder with model.onnx and the same files")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="SQuAD file")
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--engines", default=",".join(name for name in ENGINES if name != "st-onnx"),
                        help=f"of {', '.join(ENGINES)}")
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build" / "bench-embeddings",
                        help="folder of the models that are made")
    parser.add_argument("--out", type=pathlib.Path, help="JSON file")
    options = parser.parse_args()
    options.engines = options.engines.split(",")
    for engine in options.engines:
        if engine not in ENGINES:
            parser.error(f"unknown engine '{engine}' (choose from {', '.join(ENGINES)})")
    if "sentence-transformers" not in options.engines:
        parser.error("--engines needs sentence-transformers, whose vectors are the reference")
    return options


def sentences(path):
    """Of all paragraphs, in their order, each once."""
    found = {}
    for article in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            text = " ".join(paragraph["context"].split())
            found |= dict.fromkeys(re.split(r'(?<=[.!?])\s+(?=["(A-Z])', text))
    return list(found)


def spread(items, count):
    count = min(count, len(items))
    return [items[i * len(items) // count] for i in range(count)]


def worker(engine, model, options, texts, out):
    return run([sys.executable, WORKER, engine, model, options.onnx, options.threads, texts, out])


def make_models(options, calibration):
    """Paths by engine; those that are there are taken as they are."""
    options.work.mkdir(parents=True, exist_ok=True)
    fp32, int8 = options.onnx / "model.onnx", options.work / "int8" / "model.onnx"
    openvino, llama = options.work / "openvino-int8.xml", options.work / "q8_0.gguf"
    if not int8.exists():
        int8.parent.mkdir(exist_ok=True)
        run([BERTCL, "quantize", fp32, "-o", int8, "--task", "text", "--calibration", calibration])
    if "openvino-int8" in options.engines and not openvino.exists():
        worker("nncf", fp32, options, calibration, openvino)
    if "llama.cpp-q8_0" in options.engines and not llama.exists():
        run([sys.executable, WORKER.with_name("bert_gguf.py"), options.source, llama])
    return {"bertcl-int8": ("bertcl", int8), "bertcl-fp32": ("bertcl", fp32),
            "sentence-transformers": ("st-torch", options.source), "st-onnx": ("st-onnx", fp32),
            "openvino-int8": ("openvino", openvino), "openvino-fp32": ("openvino", fp32),
            "onnxruntime-int8": ("onnxruntime", int8), "onnxruntime-fp32": ("onnxruntime", fp32),
            "llama.cpp-q8_0": ("llama.cpp", llama), "fastembed": ("fastembed", fp32)}


def measure(kind, model, options, texts, out):
    """Seconds and MiB."""
    if kind != "bertcl":
        printed, peak = worker(kind, model, options, texts, out)
        return json.loads(printed.strip().splitlines()[-1])["seconds"], peak
    os.environ["POCL_MAX_PTHREAD_COUNT"] = str(options.threads)
    printed, peak = run([BERTCL, "embed", model, texts, "-o", out, "--force", "--json", "-"])
    return json.loads(printed)["seconds"], peak


def report(rows, options, texts):
    cpu, flags = cpu_name()
    versions = {"bertcl": version_of("bertcl", options)}
    for engine in options.engines:
        if package := ENGINES[engine][1]:
            versions[package] = importlib.metadata.version(package)
    versions |= {package: importlib.metadata.version(package) for package in ("torch", "transformers", "tokenizers")}
    ours = next((row["seconds"] for row in rows if row["engine"] == "bertcl-int8"), None)
    print(f"{cpu}, {options.threads} threads, {', '.join(flags)}; {len(texts)} texts")
    print(f"{'engine':24}{'seconds':>9}{'texts/s':>9}{'peak MiB':>10}{'mean cosine':>13}{'least':>9}{'/ bertcl-int8':>15}")
    for row in rows:
        row["texts_per_second"] = len(texts) / row["seconds"]
        ratio = f"{row['seconds'] / ours:15.2f}" if ours else ""
        print(f"{row['engine']:24}{row['seconds']:9.2f}{row['texts_per_second']:9.1f}{row['peak_mib']:10}"
              f"{row['mean_cosine']:13.5f}{row['least_cosine']:9.5f}{ratio}")
    date = datetime.date.today().isoformat()
    result = {"date": date, "cpu": cpu, "flags": flags, "threads": options.threads, "data": options.data.name,
              "texts": len(texts), "characters": sum(map(len, texts)), "model": options.source.name,
              "versions": versions, "rows": rows}
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def main():
    options = arguments()
    every = sentences(options.data)
    texts = spread(every, options.texts)
    chosen = set(texts)
    others = spread([text for text in every if text not in chosen] or every, CALIBRATION)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for name, lines in (("texts", texts), ("calibration", others)):
            (folder / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
        models = make_models(options, folder / "calibration.txt")
        rows = [{"engine": engine, "precision": ENGINES[engine][0], "rounds_s": [], "peak_mib": 0}
                for engine in options.engines]
        for _ in range(options.rounds):
            for row in rows:
                seconds, peak = measure(*models[row["engine"]], options, folder / "texts.txt",
                                        folder / f"{row['engine']}.npy")
                row["rounds_s"].append(seconds)
                row["peak_mib"] = max(row["peak_mib"], round(peak))
        reference = np.load(folder / "sentence-transformers.npy").astype(np.float64)
        for row in rows:
            vectors = np.load(folder / f"{row['engine']}.npy").astype(np.float64)
            cosines = (vectors * reference).sum(1) / np.linalg.norm(vectors, axis=1) / np.linalg.norm(reference, axis=1)
            row |= {"seconds": statistics.median(row["rounds_s"]), "mean_cosine": cosines.mean(),
                    "least_cosine": cosines.min()}
    report(rows, options, texts)


if __name__ == "__main__":
    main()
