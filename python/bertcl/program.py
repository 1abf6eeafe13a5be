# SPDX-License-Identifier: Apache-2.0
"""The program `bertcl` of this package: quantize and evaluate, as its commands do."""
from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable

from ._bertcl import Error

PROGRAM = pathlib.Path(__file__).with_name("bertcl-program")


Progress = Callable[[str, int, int, str], None]


def quantize(model, output, data=None, *, progress: bool | Progress = True, **options) -> dict:
    """Calibrates the float `model` on the SQuAD file `data` and writes the int8 model `output` (ONNX with Q/DQ).
    `options` are those of `bertcl quantize` (preset="fast", samples=64, dynamic=True, ...); force=True replaces an
    output that exists. Returns its report, as --json gives it. progress: draw it on a terminal or in a notebook, by
    tqdm where that is installed; or a function of (what, done, total, unit). Raises bertcl.Error."""
    return _report("quantize", [model], progress, {"output": output, "data": data, **options})


def evaluate(*models, data, progress: bool | Progress = True, **options) -> dict:
    """Scores of one or several models on `data`, side by side: EM and F1 of a SQuAD file, or those of task="classify"
    and others. `options` are those of `bertcl eval` (limit=200, vocab=..., ...). Returns its report, as --json gives
    it. progress: as of quantize(). Raises bertcl.Error."""
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
        code, messages = _run([PROGRAM, *arguments, "--json", report], progress)
        if code:
            raise Error(messages.strip() or f"bertcl {command} ended with {code}")
        sys.stderr.write(messages)  # warnings
        return json.loads(report.read_text())


def _run(command, progress):
    """Its exit code, and what it says on stderr beside its progress."""
    draw = progress if callable(progress) else _bars() if progress else None
    if progress and not draw and sys.stderr.isatty():  # the program draws
        return subprocess.run(command, stdout=subprocess.DEVNULL).returncode, ""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                               env={**os.environ, "BERTCL_PROGRESS": "lines" if draw else ""})
    messages = []
    try:
        for line in process.stderr:
            if draw and line.startswith('{"progress":'):
                now = json.loads(line)
                draw(now["progress"], now["done"], now["total"], now["unit"])
            else:
                messages.append(line)
    except BaseException:  # of the function, or an interrupt
        process.kill()
        raise
    finally:
        process.stderr.close()
        code = process.wait()
    return code, "".join(messages)


def _bars():
    """Draws by tqdm, a bar for each step; None where that is absent, or nobody would see it."""
    try:
        import tqdm.auto
    except ImportError:
        return None
    kind = tqdm.auto.tqdm
    if not (sys.stderr.isatty() or any(each.__module__ == "tqdm.notebook" for each in kind.__mro__)):
        return None
    bar = None

    def draw(what, done, total, unit):
        nonlocal bar
        if bar is None or (bar.desc, bar.total) != (f"{what}: ", total):
            if bar is not None:
                bar.close()
            bar = kind(total=total, desc=what, unit=f" {unit}")
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return draw
