# SPDX-License-Identifier: Apache-2.0
"""Latency of bertcl beside ONNX Runtime and OpenVINO: same files, same inputs, same threads.

    bench/compare                                   random-weight BERT-base, fp32 and Q/DQ
    bench/compare --fp32 my.onnx --int8 my-q.onnx   an own model and its Q/DQ twin

The engines take turns, round by round, each in a process of its own; a figure is the median over
the rounds of each round's median. No time counts unless the answers agree. The result goes to
bench/results with CPU, versions and date.
"""
import argparse
import datetime
import importlib.metadata
import json
import os
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BERTCL = ROOT / "build" / "bertcl"
VOCABULARY = ROOT / "models" / "minilm-l6-squad" / "vocab.txt"


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fp32", type=pathlib.Path, help="float model (default: random BERT-base)")
    parser.add_argument("--int8", type=pathlib.Path, help="its Q/DQ twin (default: made by bertcl quantize)")
    parser.add_argument("--size", default="base", help="size of the random model: tiny, mini, base, large")
    parser.add_argument("--shapes", default="1x128,1x384,8x128,8x384", help="batch x seq, comma-separated")
    parser.add_argument("--engines", default="bertcl,onnxruntime", help="also: openvino")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5, help="timed runs in each round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=pathlib.Path, help="JSON file (default: bench/results/DATE-CPU.json)")
    options = parser.parse_args()
    for path in filter(None, (options.fp32, options.int8)):
        if not path.is_file():
            parser.error(f"{path} is no file")
    return options


def run(command, **kwargs):
    command = [str(c) for c in command]
    done = subprocess.run(command, text=True, **kwargs)
    if done.returncode != 0:
        sys.exit(f"compare: {' '.join(command)}: exit code {done.returncode}\n{done.stderr or ''}")
    return done


def models(options):
    """The float model and its Q/DQ twin, made where they are not given."""
    folder = ROOT / "build" / "bench-models"
    folder.mkdir(parents=True, exist_ok=True)
    fp32 = options.fp32 or folder / f"bert-{options.size}.onnx"
    if not fp32.exists():  # none was named
        print(f"making {fp32}", file=sys.stderr)
        run([sys.executable, ROOT / "tools/python/make_bert.py", fp32, "--size", options.size,
             "--vocabulary", len(VOCABULARY.read_text(encoding="utf-8").splitlines())])
    int8 = options.int8 or folder / f"{fp32.stem}-int8.onnx"
    # One that an older program has made, or of an older model, is made anew.
    newest = max(path.stat().st_mtime for path in (BERTCL, fp32))
    if not options.int8 and not (int8.exists() and int8.stat().st_mtime > newest):
        print(f"making {int8}", file=sys.stderr)
        run([BERTCL, "quantize", fp32, "-o", int8, "--data", ROOT / "data/calibration.json",
             "--vocab", VOCABULARY, "--samples", "16"], stdout=subprocess.DEVNULL)
    return {"fp32": fp32, "int8": int8}


def inputs_for(model, batch, seq, path):
    """Random token ids, full rows: no engine gains from padding."""
    import onnx

    random = np.random.default_rng(batch * 1000 + seq)
    arrays = {}
    for value in onnx.load(str(model), load_external_data=False).graph.input:
        name = value.name
        dtype = {6: np.int32, 7: np.int64}[value.type.tensor_type.elem_type]
        if "mask" in name:
            array = np.ones((batch, seq))
        elif "type" in name or "segment" in name:
            array = np.zeros((batch, seq))
        else:
            array = random.integers(1000, 20000, (batch, seq))
        arrays[name] = array.astype(dtype)
    np.savez(path, **arrays)


class Measurement:
    """One engine on one model and shape."""

    def __init__(self, engine, model, batch, seq, inputs, options, folder):
        self.engine, self.model = engine, model
        self.batch, self.seq, self.inputs, self.options = batch, seq, inputs, options
        self.outputs = folder / f"{engine}.npz"
        self.medians = []

    def round(self):
        if self.engine == "bertcl":
            done = run([BERTCL, "bench", self.model, "--batch", self.batch, "--seq", self.seq, "--runs",
                        self.options.runs, "--threads", self.options.threads, "--json", "-"],
                       capture_output=True)
            self.medians.append(json.loads(done.stdout)["latency_ms"]["p50"])
        else:
            done = run([sys.executable, pathlib.Path(__file__).with_name("worker.py"), self.engine,
                        self.model, self.inputs, self.options.runs, self.options.threads, self.outputs],
                       capture_output=True)
            self.medians.append(statistics.median(json.loads(done.stdout)))

    def answers(self):
        if self.engine == "bertcl":
            run([BERTCL, "run", self.model, "--inputs", self.inputs, "--outputs", self.outputs],
                capture_output=True)
        return {k: v.astype(np.float64) for k, v in np.load(self.outputs).items()}

    @property
    def milliseconds(self):
        return statistics.median(self.medians)


def check_answers(measurements, precision):
    """Mean difference of the logits, relative to their range, from the first other engine; that of the
    output where it is largest."""
    reference = next((m for m in measurements if m.engine != "bertcl"), None)
    own = next((m for m in measurements if m.engine == "bertcl"), None)
    if not reference or not own:
        return None
    expected, given = reference.answers(), own.answers()
    worst = max(np.abs(given[k] - v).mean() / np.ptp(v) for k, v in expected.items())
    limit = 1e-3 if precision == "fp32" else 5e-2
    if not worst < limit:
        sys.exit(f"answers differ: {own.model} mean {worst:.2e} of the range from {reference.engine}")
    return worst


def cpu_name():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    flags = re.search(r"^flags\s*: (.*)$", text, re.M).group(1).split()
    name = re.search(r"^model name\s*: (.*)$", text, re.M).group(1)
    model = re.search(r"^cpu family\s*: (\d+)$", text, re.M).group(1)
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8")
    return f"{name} (family {model})", [f for f in wanted if f in flags]


def main():
    options = arguments()
    engines = options.engines.split(",")
    files = models(options)
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for shape in options.shapes.split(","):
            batch, seq = map(int, shape.split("x"))
            for precision, model in files.items():
                inputs = folder / "inputs.npz"
                inputs_for(model, batch, seq, inputs)
                measurements = [
                    Measurement(e, model, batch, seq, inputs, options, folder) for e in engines
                ]
                for number in range(options.rounds):
                    for m in measurements:
                        if sys.stderr.isatty():
                            print(f"\r{shape} {precision} round {number + 1} {m.engine:12}", end="",
                                  file=sys.stderr)
                        m.round()
                difference = check_answers(measurements, precision)
                rows += [{"shape": shape, "precision": precision, "engine": m.engine,
                          "ms": m.milliseconds, "rounds_ms": m.medians,
                          "difference_of_range": difference if m.engine == "bertcl" else None}
                         for m in measurements]
    if sys.stderr.isatty():
        print(file=sys.stderr)
    report(rows, options, files)


def report(rows, options, files):
    time = {(r["shape"], r["precision"], r["engine"]): r["ms"] for r in rows}
    spread = {(r["shape"], r["precision"], r["engine"]): r["rounds_ms"] for r in rows}
    cpu, flags = cpu_name()
    print(f"{cpu}, {options.threads} threads, {', '.join(flags)}")
    print(f"{'shape':8}{'precision':10}{'engine':14}{'ms':>9}  {'min..max of rounds':20}{'engine / bertcl':>16}")
    for key, ms in time.items():
        own = time.get((key[0], key[1], "bertcl"))
        ratio = f"{ms / own:.2f}" if own else ""
        rounds = spread[key]
        print(f"{key[0]:8}{key[1]:10}{key[2]:14}{ms:9.1f}  {min(rounds):.1f}..{max(rounds):<12.1f}{ratio:>16}")
    for shape in dict.fromkeys(r["shape"] for r in rows):
        if (shape, "int8", "bertcl") in time:
            gain = time[shape, "fp32", "bertcl"] / time[shape, "int8", "bertcl"]
            print(f"{shape}: own int8 is {gain:.2f} times own fp32")
    versions = {p: importlib.metadata.version(p) for p in options.engines.split(",") if p != "bertcl"}
    date = datetime.date.today().isoformat()
    result = {"date": date, "cpu": cpu, "flags": flags, "threads": options.threads,
              "kernel": platform.release(), "versions": versions,
              "models": {k: v.name for k, v in files.items()}, "rows": rows}
    slug = re.sub(r"[^a-z0-9]+", "-", (cpu + " " + "-".join(f for f in flags if "vnni" in f)).lower()).strip("-")
    out = options.out or ROOT / "bench" / "results" / f"{date}-{slug}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")
    print(f"written to {out}")


if __name__ == "__main__":
    main()
