# SPDX-License-Identifier: Apache-2.0
"""The program `bertcl` of this package: quantize and evaluate, as its commands do."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile

from ._bertcl import Error

PROGRAM = pathlib.Path(__file__).with_name("bertcl-program")


def quantize(model, output, data=None, *, progress: bool = True, **options) -> dict:
    """Calibrates the float `model` on the SQuAD file `data` and writes the int8 model `output` (ONNX with Q/DQ).
    `options` are those of `bertcl quantize` (preset="fast", samples=64, dynamic=True, ...); force=True replaces an
    output that exists. Returns its report, as --json gives it. progress: draw it on stderr. Raises bertcl.Error."""
    return _report("quantize", [model], progress, {"output": output, "data": data, **options})


def evaluate(*models, data, progress: bool = True, **options) -> dict:
    """Scores of one or several models on `data`, side by side: EM and F1 of a SQuAD file, or those of task="classify"
    and others. `options` are those of `bertcl eval` (limit=200, vocab=..., ...). Returns its report, as --json gives
    it. Raises bertcl.Error."""
    return _report("eval", models, progress, {"data": data, **options})


def main():
    """The command `bertcl`."""
    os.execv(PROGRAM, ["bertcl", *sys.argv[1:]])


def _report(command, positionals, progress, options):
    arguments = [command, *map(os.fspath, positionals)]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(option)
        elif value is not None and value is not False:
            arguments += [option, value if isinstance(value, str) else
                          os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        # What it draws on a terminal, it draws; its errors are the last lines of stderr.
        done = subprocess.run([PROGRAM, *arguments, "--json", report], stdout=subprocess.DEVNULL,
                              stderr=None if progress and sys.stderr.isatty() else subprocess.PIPE, text=True)
        if done.returncode:
            raise Error((done.stderr or "").strip() or f"bertcl {command} ended with {done.returncode}")
        return json.loads(report.read_text())
