# SPDX-License-Identifier: Apache-2.0
"""OpenCL C to PTX by clang with libclc, as tests/layout/check_gpu_kernels does it. NVIDIA's own compiler, which the
driver has, makes other PTX of the same source: what runs here is the source, its assembly and its layouts."""
import contextlib
import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

import banks
from machine import Program
from parser import parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "kernels_cl"
LIBCLC = pathlib.Path("/usr/lib/clc/nvptx64--nvidiacl.bc")
CLANG = "clang-15"
BUILD = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR", ROOT / "build"))


def require_tools():
    """Skips where the compiler is absent."""
    absent = [name for name, there in ((CLANG, shutil.which(CLANG)), ("libclc-15", LIBCLC.exists())) if not there]
    if absent:
        raise unittest.SkipTest(f"absent: {' '.join(absent)} (tools/install_dependencies tests installs them)")


def for_sm_90a(ptx):
    """PTX with its comments `sm_90a:` opened, as engine/opencl/program/ptx.cpp does it."""
    return re.sub(r"/\*sm_90a: (.*?)\*/", r"\1", ptx)


@functools.cache
def cache_folder():
    """Where what clang gives is kept, for all that it is made of but the arguments: with another compiler, library or
    kernel it is another folder; one that was not used for a week goes."""
    digest = hashlib.sha256(pathlib.Path(__file__).read_bytes())
    for tool in pathlib.Path(shutil.which(CLANG)).resolve(), LIBCLC:
        digest.update(repr((str(tool), tool.stat().st_size, tool.stat().st_mtime_ns)).encode())
    for file in sorted(f for f in KERNELS.glob("**/*") if f.is_file()):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(KERNELS)} {len(content)}\n".encode() + content)
    base = pathlib.Path(os.environ.get("BERTCL_COMPILED_KERNELS", BUILD / "cache" / "compiled"))
    all_folders = base / "ptx"
    folder = all_folders / digest.hexdigest()
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in all_folders.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process was first
            if time.time() - other.stat().st_mtime > 7 * 86_400:
                shutil.rmtree(other, ignore_errors=True)
    return folder


@functools.cache
def ptx_of(program, defines=(), sm=80, edits=()):
    """The PTX of kernels_cl/**/PROGRAM.cl; `sm` 90: for sm_90a. `edits` are (file, old, new): planted faults, each of
    which must change something. The tests share what has been compiled."""
    arguments = repr((program, defines, sm, edits))
    kept = cache_folder() / f"{hashlib.sha256(arguments.encode()).hexdigest()}.ptx"
    if kept.exists():
        return kept.read_text()
    ptx = _compile(program, defines, sm, edits)
    kept.parent.mkdir(parents=True, exist_ok=True)  # gone if kernels have changed since the tests began
    with tempfile.NamedTemporaryFile("w", dir=kept.parent, delete=False) as file:
        file.write(ptx)
    os.replace(file.name, kept)
    return ptx


def _compile(program, defines, sm, edits):
    with tempfile.TemporaryDirectory() as folder:
        edited = pathlib.Path(folder)  # files here hide those of the same name in KERNELS
        for name, old, new in edits:
            file = edited / name
            text = (file if file.exists() else KERNELS / name).read_text()
            if text.count(old) != 1:
                raise AssertionError(f"{name}: {text.count(old)} places with '{old}', 1 is expected")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace(old, new))
        (source,) = [*edited.glob(f"**/{program}.cl")] or KERNELS.glob(f"**/{program}.cl")
        done = subprocess.run(
            [CLANG, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", "-I", edited, "-I", KERNELS,
             "-Wno-linker-warnings", "-target", "nvptx64-nvidia-nvcl", "-Xclang", "-target-cpu", "-Xclang",
             f"sm_{min(sm, 86)}", "-Xclang", "-target-feature", "-Xclang", "+ptx75", "-Xclang", "-mlink-bitcode-file",
             "-Xclang", LIBCLC, "-O2", "-S", *(f"-D{d}" for d in defines), source, "-o", "-"],
            capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"{program} {defines}: {done.stderr}")
        return for_sm_90a(done.stdout) if sm == 90 else done.stdout


programs = {}  # that have been asked for
counts_banks = False  # whether those that are translated count conflicts between banks


def program_of(program, entry, defines=(), sm=80, edits=()):
    """The program, translated once."""
    key = program, entry, defines, sm, edits
    if key not in programs:
        programs[key] = Program(parse(ptx_of(program, defines, sm, edits)), entry)
        programs[key].faulty = bool(edits)
        programs[key].wavefronts = banks.counter() if counts_banks else None
    return programs[key]
