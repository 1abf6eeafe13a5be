# SPDX-License-Identifier: Apache-2.0
"""The architectures of tests/python/architecture_models.py, and decoders that serve as encoders, in the width of BERT-base
with random weights, four layers of each, fp32 and as `bertcl quantize` calibrates them: bertcl, ONNX Runtime and
OpenVINO on the same files, by bench/compare. Prints a table and writes it to --out.

    bench/architectures --shape 8x128
    bench/architectures --only modernbert,gte --rounds 5
"""
import argparse
import json
import logging
import pathlib
import subprocess
import sys
import tempfile

import architecture_models

ROOT = pathlib.Path(__file__).resolve().parents[2]
BERTCL = ROOT / "build" / "bertcl"
ENGINES = "bertcl", "onnxruntime", "openvino"
# Ids of bench/compare are below 20,000. ModernBERT has three layers, so that one of them is global.
architecture_models.SIZES.update(vocab_size=20000, hidden_size=768, num_hidden_layers=4, num_attention_heads=12,
                                 intermediate_size=3072, max_position_embeddings=514)
architecture_models.OTHER_SIZES.update(embedding_size=128, local_attention=128, position_buckets=256, head_size=64)


def parse(arguments):
    refused = "deberta"
    names = [*(name for name in architecture_models.ARCHITECTURES if name != refused), *architecture_models.DECODERS]
    parser = argparse.ArgumentParser(prog="bench/architectures", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(names), help="architectures, comma-separated")
    parser.add_argument("--shape", default="8x128", help="batch x tokens of a sequence")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5, help="timed runs in each round")
    parser.add_argument("--out", type=pathlib.Path, help="file of the table")
    options = parser.parse_args(arguments)
    options.only = options.only.split(",")
    for name in options.only:
        if name not in names:
            parser.error(f"unknown architecture {name} (choose from {', '.join(names)})")
    return options


def make(name, folder):
    """The model and its int8 twin, calibrated on texts of random words."""
    fp32, int8 = folder / "fp32.onnx", folder / "int8.onnx"
    architecture_models.Architecture(name).export(fp32, captured=False)
    subprocess.run([BERTCL, "quantize", fp32, "-o", int8, "--model-only",
                    *architecture_models.calibration(folder, texts=8, words=100)], check=True, stdout=subprocess.DEVNULL)
    return fp32, int8


def launches(model, shape):
    batch, seq = shape.split("x")
    report = subprocess.run([BERTCL, "inspect", model, "--batch", batch, "--seq", seq, "--json", "-"], check=True,
                            capture_output=True, text=True)
    return json.loads(report.stdout)["launches"]


def compare(name, options):
    """The row of an architecture: milliseconds of bertcl, and times of the others in those of bertcl."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        fp32, int8 = make(name, folder)
        result = folder / "result.json"
        subprocess.run([ROOT / "bench" / "compare", "--fp32", fp32, "--int8", int8, "--shapes", options.shape, "--engines",
                        ",".join(ENGINES), "--rounds", str(options.rounds), "--runs", str(options.runs), "--out", result],
                       check=True, stdout=sys.stderr)
        found = json.loads(result.read_text())
        rows = {(row["precision"], row["engine"]): row for row in found["rows"]}
        cells = [name]
        for precision, model in ("fp32", fp32), ("int8", int8):
            cells += [str(launches(model, options.shape)), f"{rows[precision, 'bertcl']['ms']:.1f}"]
            cells += [f"{rows[precision, engine]['ratio'][0]:.2f}" for engine in ENGINES[1:]]
        return cells, found


def main(arguments):
    options = parse(arguments)
    logging.disable(logging.WARNING)
    table, head = [], ""
    for name in options.only:
        cells, found = compare(name, options)
        table.append("| " + " | ".join(cells) + " |")
        versions = ", ".join(f"{engine} {version}" for engine, version in found["versions"].items() if engine != "bertcl")
        head = (f"{found['cpu']} ({', '.join(found['flags'])}), {found['threads']} threads, {found['date']}; {versions}; "
                f"{options.shape}, {options.rounds} rounds of {options.runs} runs")
    text = "\n".join(["# Architectures compared with other engines", "", head + ".", "",
                      "Milliseconds of bertcl; relative times of the others (bertcl = 1).", "",
                      "| architecture | launches, fp32 | ms | onnxruntime | openvino | launches, int8 | ms | onnxruntime | openvino |",
                      "| --- |" + " ---: |" * 8, *table, ""])
    print(text)
    if options.out:
        options.out.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
