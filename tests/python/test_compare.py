# SPDX-License-Identifier: Apache-2.0
"""How bench/compare joins the cases of a call with those that its file has already."""
import io
import json
import pathlib
import subprocess
import sys
import types
import unittest
from unittest import mock

import numpy as np
from support import BERTCL, ROOT, scratch

import make_bert

sys.path.insert(0, str(ROOT / "bench" / "peers"))
import compare

PATH = pathlib.Path("results.json")


def row(shape, engine, *rounds_ms, peak_mib=1):
    return {"shape": shape, "precision": "int8", "engine": engine, "ms": 0, "rounds_ms": list(rounds_ms),
            "peak_mib": peak_mib}


def result(*rows, **others):
    rows = list(rows)
    compare.add_ratios(rows)
    return {"date": "2026-01-02", "cpu": "a cpu", "threads": 2, "kernel": "6.1", "versions": {}, "models": {},
            "rows": rows} | others


class JoinedResults(unittest.TestCase):
    def setUp(self):
        self.older = result(row("1x16", "bertcl", 1.0, 2.0, peak_mib=7), row("1x16", "openvino", 3.0, 4.0),
                            row("8x16", "bertcl", 5.0))

    def rows_of(self, newer, add_rounds):
        joined = compare.joined(self.older, newer, PATH, add_rounds)
        return {(r["shape"], r["engine"]): r for r in joined["rows"]}

    def test_the_same_cases_are_replaced_and_others_stay(self):
        rows = self.rows_of(result(row("1x16", "bertcl", 9.0)), add_rounds=False)
        self.assertEqual(list(rows), [("8x16", "bertcl"), ("1x16", "bertcl")])
        self.assertEqual(rows["1x16", "bertcl"]["rounds_ms"], [9.0])

    def test_rounds_follow_the_older_ones_and_ratios_are_made_of_all(self):
        rows = self.rows_of(result(row("1x16", "bertcl", 3.0, peak_mib=5), row("1x16", "openvino", 9.0),
                                   row("1x384", "bertcl", 2.0)), add_rounds=True)
        own, other = rows["1x16", "bertcl"], rows["1x16", "openvino"]
        self.assertEqual(own["rounds_ms"], [1.0, 2.0, 3.0])
        self.assertEqual((own["ms"], own["peak_mib"]), (2.0, 7))
        self.assertEqual(other["ratio"], [3.0, 2.0, 3.0])
        self.assertEqual(rows["8x16", "bertcl"]["rounds_ms"], [5.0])
        self.assertEqual(rows["1x384", "bertcl"]["rounds_ms"], [2.0])

    def test_rounds_of_some_engines_alone_are_refused(self):
        with self.assertRaisesRegex(SystemExit, "these cases of other engines"):
            self.rows_of(result(row("1x16", "bertcl", 9.0)), add_rounds=True)

    def test_rounds_of_other_windows_are_refused(self):
        self.older["rows"] = [row("stream as read", "bertcl", 1.0) | {"tokens": 10}]
        with self.assertRaisesRegex(SystemExit, "stream as read of other windows"):
            self.rows_of(result(row("stream as read", "bertcl", 1.0) | {"tokens": 11}), add_rounds=True)

    def test_results_of_another_machine_day_or_version_are_refused(self):
        with self.assertRaisesRegex(SystemExit, "has cpu a cpu, this run another"):
            self.rows_of(result(cpu="another"), add_rounds=False)
        self.older["versions"] = {"openvino": "1"}
        with self.assertRaisesRegex(SystemExit, "other versions \\(openvino\\)"):
            self.rows_of(result(versions={"openvino": "2"}), add_rounds=False)


class Text(unittest.TestCase):
    def test_a_row_is_a_line(self):
        written = result(row("1x16", "bertcl", 1.0), row("1x16", "openvino", 2.0))
        text = compare.text_of(written)
        self.assertEqual(json.loads(text), written)
        self.assertEqual(text.count("\n"), len(written) + 2 + len(written["rows"]) + 1)


class Models(unittest.TestCase):
    @mock.patch("sys.stderr", io.StringIO())  # "making ..."
    def test_weights_have_7_bits_where_sums_of_other_engines_saturate(self):
        for flags, reduced in (["avx2"], True), (["avx2", "avx_vnni"], False), (["avx512_vnni"], False):
            with self.subTest(flags=flags):
                options = types.SimpleNamespace(size="default", fp32=None, int8=None, precisions=["int8"])
                with mock.patch.multiple(compare, ROOT=scratch(self), run=mock.DEFAULT,
                                         cpu_name=lambda: ("a cpu", flags)) as patched:
                    files = compare.models(options)
                command = patched["run"].call_args.args[0]
                self.assertIn(files["int8"], command)
                self.assertEqual("--reduce-range" in command, reduced)
                self.assertEqual("reduced" in files["int8"].name, reduced)


class Progress(unittest.TestCase):
    def test_a_row_is_told_once_it_is_measured(self):
        rows = (row(shape, "bertcl") | {"ms": 1.25} for shape in ("1x16", "8x16"))
        with mock.patch("sys.stderr", io.StringIO()) as shown:
            told = compare.told(rows)
            self.assertEqual(next(told)["shape"], "1x16")
            self.assertEqual(shown.getvalue(), "measured 1x16 int8 bertcl: 1.2 ms\n")
            self.assertEqual([r["shape"] for r in told], ["8x16"])


class Answers(unittest.TestCase):
    """No time counts unless the answers of all engines agree."""

    def difference(self, precision="fp32", **answers):
        measurements = [types.SimpleNamespace(engine=engine, model="m.onnx", answers=lambda a=a: a)
                        for engine, a in answers.items()]
        return compare.check_answers(measurements, precision)

    def setUp(self):
        self.right = {"start": np.arange(4.0), "end": np.arange(4.0)}

    def test_the_largest_difference_of_all_engines_is_told(self):
        off = self.right | {"end": np.arange(4.0) + 0.0003}
        self.assertEqual(self.difference(bertcl=self.right, onnxruntime=self.right), 0)
        self.assertAlmostEqual(self.difference(onnxruntime=self.right, bertcl=self.right, torch=off), 1e-4)
        self.assertIsNone(self.difference(bertcl=self.right))
        self.assertIsNone(self.difference(onnxruntime=self.right))

    def test_constant_outputs_have_no_range(self):
        constant = {"start": np.full(4, 2.0)}
        self.assertEqual(self.difference(bertcl=constant, onnxruntime=constant), 0)

    def test_no_value_may_be_nan_or_infinite(self):
        for value in np.nan, np.inf:
            for output in "start", "end":
                wrong = self.right | {output: np.array([0, 1, value, 3])}
                for answers in ({"bertcl": wrong, "onnxruntime": self.right},
                                {"bertcl": self.right, "onnxruntime": wrong}):
                    with self.subTest(value=value, output=output), self.assertRaisesRegex(SystemExit, "answers differ"):
                        self.difference(**answers)

    def test_every_engine_is_compared(self):
        wrong = self.right | {"start": 100 * np.arange(4.0)}
        with self.assertRaisesRegex(SystemExit, "from openvino"):
            self.difference(bertcl=self.right, onnxruntime=self.right, openvino=wrong)


class Streams(unittest.TestCase):
    def test_batches_lie_at_equal_distances(self):
        model = scratch(self) / "model.onnx"
        make_bert.save(make_bert.build(make_bert.Spec.of_size("tiny", vocabulary=30522)), model)
        lengths = {}
        for windows in (1, 40, 100000):
            done = subprocess.run(
                [BERTCL.parent / "bench" / "bench_stream", model, ROOT / "data" / "sample-v2.0.json",
                 ROOT / "models" / "minilm-l6-squad" / "vocab.txt", "--windows", str(windows), "--rounds", "1"],
                capture_output=True, text=True, check=True)
            lengths[windows] = json.loads(done.stdout)["lengths"]
        batches = [lengths[100000][first:first + 8] for first in range(0, len(lengths[100000]), 8)]
        self.assertGreater(len(batches), 10)
        self.assertEqual(lengths[1], batches[0])
        self.assertEqual(lengths[40], sum((batches[i * len(batches) // 5] for i in range(5)), []))

    def test_tokens_are_those_of_the_batches(self):
        folder = scratch(self)
        lengths = folder / "lengths.json"
        lengths.write_text(json.dumps([5, 9, 1, 1, 1, 1, 1, 1, 9, 2]))
        tokens = {(engine, order): compare.Stream(engine, None, "int8", order, lengths, None, folder).tokens()
                  for engine, order in (("bertcl", "as read"), ("bertcl", "padded to 384"),
                                        ("openvino", "as read"), ("openvino", "sorted"))}
        self.assertEqual(tokens, {("bertcl", "as read"): (31, 31), ("bertcl", "padded to 384"): (31, 3840),
                                  ("openvino", "as read"): (31, 8 * 9 + 2 * 9),
                                  ("openvino", "sorted"): (31, 8 * 9 + 2 * 1)})

    def test_ratios_are_to_own_batches_as_read(self):
        rows = [row("stream as read", "bertcl", 2.0), row("stream padded to 384", "bertcl", 6.0),
                row("stream sorted", "openvino", 3.0)]
        compare.add_ratios(rows)
        self.assertEqual([r["ratio"][0] for r in rows], [1.0, 3.0, 1.5])
