# SPDX-License-Identifier: Apache-2.0
"""The program `bertcl` of this package, and what it does for Python."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from ._bertcl import Error
from .progress import drawer

PROGRAM = pathlib.Path(__file__).with_name("bertcl-program")


def main():
    """The command `bertcl`."""
    os.execv(PROGRAM, ["bertcl", *sys.argv[1:]])


def report_of(command, positionals, progress, options):
    """What a command of the program writes by --json, and a copy in the file options["json"]."""
    copy = options.pop("json", None)
    arguments = [command, *map(os.fspath, positionals)]
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if value is True:
            arguments.append(option)
        elif isinstance(value, (list, tuple)):
            for each in value:
                arguments += [option, str(each)]
        elif value is not None:
            arguments += [option, value if isinstance(value, str) else
                          os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        code, messages = _run([PROGRAM, *arguments, "--json", report], progress)
        if code:
            raise Error(_in_python(messages.strip()) or f"bertcl {command} ended with {code}")
        sys.stderr.write(messages)  # warnings
        if copy is not None:
            shutil.copyfile(report, copy)
        return json.loads(report.read_text())


def _in_python(message):
    """A message of the program about an option that it lacks, by the name of the argument."""
    found = re.fullmatch(r"bertcl: unknown option '--([^']+)'(?: \(did you mean --(.+)\?\))?; see bertcl .*", message)
    if not found:
        return message
    option, nearest = (each and each.replace("-", "_") for each in found.groups())
    return f"unknown option '{option}'" + (f" (did you mean '{nearest}'?)" if nearest else "")


def _run(command, progress):
    """Its exit code, and what it says on stderr apart from its progress."""
    draw = drawer(progress)
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
