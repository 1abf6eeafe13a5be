# SPDX-License-Identifier: Apache-2.0
"""bench/accuracy makes its table, keeps finished rows, and changes nothing else in the file."""
import json
import subprocess
import sys
import unittest

from support import BERTCL, ROOT, scratch

import make_bert

SAMPLE, CALIBRATION = ROOT / "data" / "sample-v2.0.json", ROOT / "data" / "calibration.json"


class AccuracyTable(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        spec = make_bert.Spec.of_size("tiny", vocabulary=30522)
        make_bert.save(make_bert.build(spec), self.folder / "model.onnx")

    def run_bench(self, *options, program=BERTCL):
        command = [ROOT / "bench" / "accuracy", "--model", self.folder / "model.onnx", "--vocab",
                   ROOT / "models" / "minilm-l6-squad" / "vocab.txt", "--calibrate", CALIBRATION, "--data", SAMPLE,
                   "--samples", 4, "--limit", 6, "--cache", self.folder / "cache.json", "--bertcl", program, *options]
        return subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True)

    def test_table(self):
        output = self.folder / "table.md"
        output.write_text("before\n<!-- bench/accuracy: begin -->\nold\n<!-- bench/accuracy: end -->\nafter\n")
        options = "--rows", "minmax$|tensorrt$", "-o", output, "--data", CALIBRATION
        done = self.run_bench(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = output.read_text()
        self.assertTrue(text.startswith("before\n") and text.endswith("\nafter\n"), text)
        self.assertNotIn("\nold\n", text)
        rows = [line for line in text.splitlines() if line.startswith(("| (fp32)", "| `--"))]
        self.assertEqual(len(rows), 5, text)
        self.assertEqual({row.count("|") for row in rows}, {11}, text)
        self.assertIn("| sample-v2.0: EM | F1 | best F1 | threshold | to fp32 | calibration: EM | F1 | to fp32 | s |",
                      text)
        self.assertIn("the first 6 questions of sample-v2.0.json and 6 questions of calibration.json", text)
        self.assertIn("There is no seed", text)

        before = (self.folder / "cache.json").read_bytes()
        self.assertGreater(len(json.loads(before)), 5)
        again = self.run_bench(*options)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual((self.folder / "cache.json").read_bytes(), before, "finished rows are not measured again")
        self.assertEqual(output.read_text(), text)

    def test_a_row_that_fails_does_not_stop_the_others(self):
        program = self.folder / "program"
        program.write_text(f'#!/bin/sh\ncase "$*" in *ort-migraphx*) exit 1;; esac\nexec "{BERTCL}" "$@"\n')
        program.chmod(0o755)
        done = self.run_bench("--rows", "migraphx", program=program)
        self.assertEqual(done.returncode, 1)
        self.assertIn("`--preset ort-migraphx` | failed", done.stdout)
        self.assertRegex(done.stdout, r"`--preset migraphx-native` \| [0-9]")

    def test_refuses_a_file_without_its_lines(self):
        output = self.folder / "other.md"
        output.write_text("words\n")
        done = self.run_bench("--rows", "no such row", "-o", output)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("has no lines", done.stderr)
        self.assertEqual(output.read_text(), "words\n")
