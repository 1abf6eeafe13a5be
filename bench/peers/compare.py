# SPDX-License-Identifier: Apache-2.0
"""Latency of bertcl compared with ONNX Runtime, OpenVINO and torch: same files, inputs and threads.

    bench/compare                                   random-weight BERT-base, fp32 and Q/DQ
    bench/compare --size default --shapes grid      the default model, batch 1, 8, 32, seq 16, 128, 384
    bench/compare --fp32 my.onnx --int8 my-q.onnx   an own model and its Q/DQ twin
    bench/compare --stream 200 --shapes ""          windows of real lengths, 8 at a time

The engines take turns, round by round, each in a process of its own; a figure is the median over
the rounds of each round's median, a ratio the median over the rounds of the ratio in each. No time
counts unless the answers agree: on a CPU without VNNI, where sums of the other engines saturate, the
Q/DQ twin that is made has weights of 7 bits. The result goes to bench/results with CPU, versions and date, as
JSON and as a plot; where the file of this machine and day is there already, the cases of this call
are added to it; with --add-rounds its rounds follow those of the same cases, which otherwise are replaced.
"""
import argparse
import datetime
import hashlib
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

import plot
from worker import padded_batches

ROOT = pathlib.Path(__file__).resolve().parents[2]
BERTCL = ROOT / "build" / "bertcl"
DEFAULT = ROOT / "models" / "minilm-l6-squad"
VOCABULARY = DEFAULT / "vocab.txt"
GRID = ",".join(f"{batch}x{seq}" for batch in (1, 8, 32) for seq in (16, 128, 384))
# What an engine cannot run is left out.
PRECISIONS = {"bertcl": {"fp32", "bf16", "int8"}, "openvino": {"fp32", "bf16", "int8"},
              "onnxruntime": {"fp32", "int8"}, "torch": {"fp32"}}


def arguments():
    parser = argparse.ArgumentParser(
        prog="bench/compare", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fp32", type=pathlib.Path, help="float model (default: random BERT-base)")
    parser.add_argument("--int8", type=pathlib.Path, help="its Q/DQ twin (default: made by bertcl quantize)")
    parser.add_argument("--size", default="base",
                        help="size of the random model: tiny, mini, base, large; or default, the default model")
    parser.add_argument("--shapes", default="1x128,1x384,8x128,8x384",
                        help="batch x seq, comma-separated; grid is 1, 8, 32 x 16, 128, 384")
    parser.add_argument("--stream", type=int, default=0, metavar="N",
                        help="also about N windows of --data: batches of 8 as read, at equal distances")
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data" / "sample-v2.0.json",
                        help="SQuAD file of --stream")
    parser.add_argument("--engines", default="bertcl,onnxruntime", help="also: openvino, torch")
    parser.add_argument("--precisions", default="fp32,int8", help="also: bf16")
    parser.add_argument("--torch-python", type=pathlib.Path,
                        help="Python that has torch (default: an environment made in build/)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=5, help="timed runs in each round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--add-rounds", action="store_true",
                        help="add the rounds of this call to those that the file has of the same cases")
    parser.add_argument("--out", type=pathlib.Path, help="JSON file (default: bench/results/DATE-CPU.json)")
    options = parser.parse_args()
    options.shapes = [s for s in (GRID if options.shapes == "grid" else options.shapes).split(",") if s]
    options.engines, options.precisions = options.engines.split(","), options.precisions.split(",")
    for engine in options.engines:
        if engine not in PRECISIONS:
            parser.error(f"unknown engine '{engine}' (choose from {', '.join(PRECISIONS)})")
    for path in filter(None, (options.fp32, options.int8)):
        if not path.is_file():
            parser.error(f"{path}: no such file")
    return options


def run(command):
    """What the command prints, and its largest resident set in MiB. Its failure ends this program."""
    command = [str(c) for c in command]
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=errors)
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            sys.exit(f"compare: {' '.join(command)}: exit code {process.returncode}\n{errors.read()}")
    return printed, usage.ru_maxrss / 1024


def models(options):
    """The float model and its Q/DQ twin, made where they are not given."""
    folder = ROOT / "build" / "bench-models"
    folder.mkdir(parents=True, exist_ok=True)
    default = DEFAULT / "model.onnx" if options.size == "default" else folder / f"bert-{options.size}.onnx"
    fp32 = options.fp32 or default
    if not fp32.exists():  # none was named
        print(f"making {fp32}", file=sys.stderr)
        run([sys.executable, ROOT / "tools/python/make_bert.py", fp32, "--size", options.size,
             "--vocabulary", len(VOCABULARY.read_text(encoding="utf-8").splitlines())])
    # Without VNNI sums of two products saturate in the other engines, and their answers differ.
    reduced = not any("vnni" in flag for flag in cpu_name()[1])
    stem = "default" if fp32 == DEFAULT / "model.onnx" else fp32.stem
    int8 = options.int8 or folder / f"{stem}-int8{'-reduced-range' if reduced else ''}.onnx"
    # One that an older program has made, or of an older model, is made anew.
    newest = max(path.stat().st_mtime for path in (BERTCL, fp32))
    if "int8" in options.precisions and not options.int8 and not (int8.exists() and int8.stat().st_mtime > newest):
        print(f"making {int8}", file=sys.stderr)
        run([BERTCL, "quantize", fp32, "-o", int8, "--force", "--data", ROOT / "data/calibration.json",
             "--vocab", VOCABULARY, "--samples", "16", *(["--reduce-range"] if reduced else [])])
    files = {"fp32": fp32, "bf16": fp32, "int8": int8}
    return {precision: files[precision] for precision in options.precisions}


def python_of(engine, options):
    if engine != "torch":
        return sys.executable
    if not options.torch_python:
        environment = ROOT / "build" / "venv-bench-torch"
        run([ROOT / "tools/python/make_venv", environment, ROOT / "tools/python/requirements-torch.txt"])
        options.torch_python = environment / "bin" / "python"
    return options.torch_python


class Measurement:
    """One engine on one model and shape."""

    def __init__(self, engine, model, precision, shape, inputs, options, folder):
        self.engine, self.model, self.precision, self.shape = engine, model, precision, shape
        self.inputs, self.options = inputs, options
        self.outputs = folder / f"{engine}.npz"
        self.rounds, self.peak = [], 0

    def measured(self, command):
        printed, peak = run(command)
        self.peak = max(self.peak, peak)
        return json.loads(printed)

    def worker(self, kind, *rest):
        return self.measured([python_of(self.engine, self.options), pathlib.Path(__file__).with_name("worker.py"),
                              self.engine, self.model, self.precision, self.options.threads, kind, *rest])

    def round(self):
        batch, seq = self.shape.split("x")
        if self.engine == "bertcl":
            result = self.measured([
                BERTCL, "bench", self.model, "--batch", batch, "--seq", seq, "--runs", self.options.runs, "--threads",
                self.options.threads, "--warmup", 2, "--profiled", 1, "--json", "-", *own_precision(self.precision)])
            self.rounds.append(result["rows"][0]["latency_ms"]["p50"])
        else:
            self.rounds.append(statistics.median(self.worker("shape", self.inputs, self.options.runs, self.outputs)))

    def answers(self):
        if self.engine == "bertcl":
            run([BERTCL, "run", self.model, "--inputs", self.inputs, "--outputs", self.outputs, "--force",
                 *own_precision(self.precision)])
        return {k: v.astype(np.float64) for k, v in np.load(self.outputs).items()}


# How an engine gets the windows of a stream: bertcl as they are, the others in batches padded to the
# longest of 8, as read and sorted by length; bertcl once more as an engine of one shape would.
ORDERS = {"bertcl": ("as read", "padded to 384")}
PADDED_ORDERS = ("as read", "sorted")


class Stream(Measurement):
    """One engine over sequences of real lengths: seconds, as milliseconds."""

    def __init__(self, engine, model, precision, order, lengths, options, folder):
        super().__init__(engine, model, precision, f"stream {order}", lengths, options, folder)
        self.order = order

    def round(self):
        if self.engine == "bertcl":
            os.environ["POCL_MAX_PTHREAD_COUNT"] = str(self.options.threads)
            result = self.measured([
                ROOT / "build/bench/bench_stream", self.model, self.options.data, VOCABULARY,
                "--windows", self.options.stream, "--rounds", 1, *own_precision(self.precision),
                *(["--keep-padding"] if self.order == "padded to 384" else [])])
            self.inputs.write_text(json.dumps(result["lengths"]))
            self.rounds.append(1e3 * result["seconds"][0])
        else:
            self.rounds.append(1e3 * self.worker("stream", self.inputs, 8, int(self.order == "sorted")))

    def tokens(self):
        """Those of the windows, and those that are computed for them."""
        lengths = json.loads(self.inputs.read_text())
        if self.engine == "bertcl":
            return sum(lengths), 384 * len(lengths) if self.order == "padded to 384" else sum(lengths)
        batches = padded_batches(lengths, 8, ["mask"], self.order == "sorted")
        return sum(lengths), sum(batch["mask"].size for batch in batches)


def own_precision(precision):
    return [] if precision == "int8" else ["--precision", precision]


def check_answers(measurements, precision):
    """The largest mean difference of an output's logits from those of another engine, relative to their range.
    Differences beyond the limit, NaN and infinity end the program."""
    others = [m for m in measurements if m.engine != "bertcl"]
    own = next((m for m in measurements if m.engine == "bertcl"), None)
    if not others or not own:
        return None
    given, worst = own.answers(), 0
    limit = 1e-3 if precision == "fp32" else 5e-2  # bf16 keeps 8 bits
    for other in others:
        with np.errstate(invalid="ignore"):  # of infinities, told below
            # Unlike Python's max(), np.max() gives NaN where there is one.
            difference = np.max([np.abs(given[k] - v).mean() / (np.ptp(v) or 1) for k, v in other.answers().items()])
        if not difference < limit:
            sys.exit(f"answers differ: {own.model} mean {difference:.2e} of the range from {other.engine}")
        worst = max(worst, difference)
    return worst


def cpu_name():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    flags = re.search(r"^flags\s*: (.*)$", text, re.M).group(1).split()
    name = re.search(r"^model name\s*: (.*)$", text, re.M).group(1)
    model = re.search(r"^cpu family\s*: (\d+)$", text, re.M).group(1)
    wanted = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "avx512_bf16", "amx_int8")
    return f"{name} (family {model})", [f for f in wanted if f in flags]


def row_of(measurement, difference):
    m = measurement
    return {"shape": m.shape, "precision": m.precision, "engine": m.engine,
            "ms": statistics.median(m.rounds), "rounds_ms": m.rounds, "peak_mib": round(m.peak),
            "difference_of_range": difference if m.engine == "bertcl" else None}


def take_turns(measurements, rounds):
    for number in range(rounds):
        for m in measurements:
            if sys.stderr.isatty():
                print(f"\r{m.shape} {m.precision} round {number + 1} {m.engine}\033[K", end="", file=sys.stderr,
                      flush=True)
            m.round()
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)


def told(rows):
    """The rows, each with a line on standard error once it is measured."""
    for row in rows:
        print(f"measured {row['shape']} {row['precision']} {row['engine']}: {row['ms']:.1f} ms", file=sys.stderr)
        yield row


def measure_shapes(options, files, folder):
    for shape in options.shapes:
        for precision, model in files.items():
            inputs = folder / "inputs.npz"
            # In a process of its own: what this one holds would count as memory of those it starts.
            run([sys.executable, pathlib.Path(__file__).with_name("inputs.py"), model, *shape.split("x"), inputs])
            measurements = [Measurement(e, model, precision, shape, inputs, options, folder)
                            for e in options.engines if precision in PRECISIONS[e]]
            take_turns(measurements, options.rounds)
            difference = check_answers(measurements, precision)
            yield from (row_of(m, difference) for m in measurements)


def measure_stream(options, files, folder):
    """The others follow bertcl, which writes the lengths that they read."""
    for precision, model in files.items():
        engines = [e for e in options.engines if precision in PRECISIONS[e]]
        measurements = [Stream(e, model, precision, order, folder / "lengths.json", options, folder)
                        for e in sorted(engines, key=lambda e: e != "bertcl")
                        for order in ORDERS.get(e, PADDED_ORDERS)]
        take_turns(measurements, options.rounds)
        yield from (row_of(m, None) | dict(zip(("tokens", "computed_tokens"), m.tokens())) for m in measurements)


def main():
    options = arguments()
    files = models(options)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        rows = list(told(measure_shapes(options, files, folder)))
        if options.stream:
            rows += told(measure_stream(options, files, folder))
    report(rows, options, files)


def add_ratios(rows):
    """Times of the others in own times: median, least and largest over the rounds."""
    own = {(r["shape"], r["precision"]): r["rounds_ms"] for r in rows if r["engine"] == "bertcl"}
    for row in rows:
        shape = "stream as read" if row["shape"].startswith("stream ") else row["shape"]
        ours = own.get((shape, row["precision"]))
        if ours:
            ratios = [theirs / mine for theirs, mine in zip(row["rounds_ms"], ours)]
            row["ratio"] = [statistics.median(ratios), min(ratios), max(ratios)]


def text_of(result):
    """JSON with one line for each key, and for each row."""
    rows = ",\n  ".join(json.dumps(row) for row in result["rows"])
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in result.items() if key != "rows"]
    return ",\n".join([*lines, f' "rows": [\n  {rows}\n ]']).join(["{\n", "\n}\n"])


def report(rows, options, files):
    add_ratios(rows)
    cpu, flags = cpu_name()
    print(f"{cpu}, {options.threads} threads, {', '.join(flags)}")
    print(f"{'shape':22}{'precision':10}{'engine':14}{'ms':>9}{'peak MiB':>10}  {'engine / bertcl':>16}  of rounds")
    for row in rows:
        ratio = "{:16.2f}  {:.2f}..{:.2f}".format(*row["ratio"]) if "ratio" in row else ""
        print(f"{row['shape']:22}{row['precision']:10}{row['engine']:14}{row['ms']:9.1f}{row['peak_mib']:10}  {ratio}")
    own = {(r["shape"], r["precision"]): r["ms"] for r in rows if r["engine"] == "bertcl"}
    for (shape, precision), ms in own.items():
        if precision != "fp32" and (shape, "fp32") in own:
            print(f"{shape}: own {precision} is {own[shape, 'fp32'] / ms:.2f} times own fp32")
    versions = {e: version_of(e, options) for e in options.engines}
    date = datetime.date.today().isoformat()
    result = {"date": date, "cpu": cpu, "flags": flags, "threads": options.threads,
              "kernel": platform.release(), "versions": versions,
              "models": {k: v.name for k, v in files.items()}, "rows": rows}
    slug = re.sub(r"[^a-z0-9]+", "-", (cpu + " " + "-".join(f for f in flags if "vnni" in f)).lower()).strip("-")
    size = "" if options.size == "base" else f"-{options.size}"
    out = options.out or ROOT / "bench" / "results" / f"{date}-{slug}{size}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    if out.exists():
        result = joined(json.loads(out.read_text()), result, out, options.add_rounds)
    out.write_text(text_of(result))
    plot.draw(out)
    print(f"written to {out} and {out.with_suffix('.svg').name}")


def case_of(row):
    return row["shape"], row["precision"]


def prepend_rounds(older, newer, path):
    """Rows of the same cases get the older rounds first. A ratio needs the rounds of all engines."""
    before = {(*case_of(r), r["engine"]): r for r in older}
    if before.keys() != {(*case_of(r), r["engine"]) for r in newer}:
        sys.exit(f"compare: {path} has these cases of other engines; name another --out")
    for row in newer:
        earlier = before[*case_of(row), row["engine"]]
        if earlier.get("tokens") != row.get("tokens"):
            sys.exit(f"compare: {path} has {row['shape']} of other windows; name another --out")
        row["rounds_ms"] = earlier["rounds_ms"] + row["rounds_ms"]
        row["ms"] = statistics.median(row["rounds_ms"])
        row["peak_mib"] = max(earlier["peak_mib"], row["peak_mib"])
    add_ratios(newer)


def joined(older, newer, path, add_rounds):
    """The older result with the cases of the newer one; its cases of the same name are replaced, or
    get the newer rounds."""
    for key in ("date", "cpu", "threads", "kernel"):
        if older[key] != newer[key]:
            sys.exit(f"compare: {path} has {key} {older[key]}, this run {newer[key]}; name another --out")
    for key in ("versions", "models"):
        changed = [k for k in older[key].keys() & newer[key].keys() if older[key][k] != newer[key][k]]
        if changed:
            sys.exit(f"compare: {path} was measured with other {key} ({', '.join(changed)}); name another --out")
        newer[key] = older[key] | newer[key]
    both = set(map(case_of, older["rows"])) & set(map(case_of, newer["rows"]))
    if add_rounds:
        older_rows, newer_rows = ([row for row in of["rows"] if case_of(row) in both] for of in (older, newer))
        prepend_rounds(older_rows, newer_rows, path)
    newer["rows"] = [row for row in older["rows"] if case_of(row) not in both] + newer["rows"]
    return newer


def version_of(engine, options):
    if engine == "bertcl":  # every build is one of its own
        return hashlib.sha256(BERTCL.read_bytes()).hexdigest()[:12]
    if engine != "torch":
        return importlib.metadata.version(engine)
    return run([python_of(engine, options), "-c", "import torch; print(torch.__version__)"])[0].strip()


if __name__ == "__main__":
    main()
