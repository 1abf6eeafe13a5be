#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Python adds to a run: bertcl.Session.run and `bertcl bench` on the same model, round by round.

    PYTHONPATH=build/python-package build/venv/bin/python bench/python_overhead.py build/base.onnx

Prints the medians of both in milliseconds and the median of the rounds' ratios. Needs a machine without other work.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile
import time

import numpy as np

import bertcl

PROGRAM = pathlib.Path(__file__).resolve().parents[1] / "build" / "bertcl"


def program_ms(model, batch, seq, runs):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "bench.json"
        subprocess.run([PROGRAM, "bench", model, "--batch", str(batch), "--seq", str(seq), "--runs", str(runs),
                        "--json", report], check=True, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text())["rows"][0]["latency_ms"]["p50"]


def python_ms(session, feeds, runs):
    times = []
    for _ in range(runs):
        begin = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - begin)
    return 1000 * statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    session = bertcl.Session(options.model)
    ids = np.random.default_rng(0).integers(1, session.info.vocab_size or 30522, (options.batch, options.seq))
    given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    feeds = {each.name: given[each.name] for each in session.get_inputs()}
    python_ms(session, feeds, 3)
    rounds = [(program_ms(options.model, options.batch, options.seq, options.runs),
               python_ms(session, feeds, options.runs)) for _ in range(options.rounds)]
    program, python = (statistics.median(times) for times in zip(*rounds))
    ratio = statistics.median(b / a for a, b in rounds)
    print(f"{options.batch} x {options.seq} on {session.info.device}: bertcl bench {program:.2f} ms, "
          f"Python {python:.2f} ms, {100 * (ratio - 1):+.1f} %")


if __name__ == "__main__":
    main()
