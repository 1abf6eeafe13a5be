# SPDX-License-Identifier: Apache-2.0
"""From a float model to one in int8."""
from __future__ import annotations

import json
import os

from . import _bertcl
from .arguments import (FILES, asked, check_counts, check_data, check_exist, check_flags, check_texts, file_name,
                        load_tokenizer)
from .program import report_of
from .progress import Progress, drawer
from .session import Session

# What the library takes in addition to the options of the quantizer, which it knows by name.
SAMPLE_OPTIONS = {"samples", "first_samples", "max_seq_length", "max_query_length"}
FILE_OPTIONS = {"preset", "device", "dynamic", "per_token", "read_table", "write_table", "table_format", "model_only"}
# What only the program has: the choice of ops by their cost, and other readings of a vocabulary.
PROGRAM_OPTIONS = {"sensitivity", "sensitivity_plot", "sensitivity_samples", "max_drop", "max_error", "drop_data",
                   "drop_samples", "labels", "lower_case", "no_lower_case", "cased", "strip_accents",
                   "no_strip_accents", "max_memory", "json", "config"}
SQUAD = "question-answering"
USUAL_LENGTH = 384


def quantize(model: str | os.PathLike[str], output: str | os.PathLike[str],
             data: str | os.PathLike[str] | None = None, *, progress: bool | Progress = True, **options) -> dict:
    """Calibrates the float `model` on the SQuAD file `data`, or that of another `task`, and writes the int8 model
    `output` (ONNX with Q/DQ). `options` are those of `bertcl quantize` (preset="fast", samples=64, dynamic=True,
    exclude=["*query*"], head=False, ...); force=True replaces an output that exists. Returns its report, as --json
    gives it. Other threads run meanwhile. progress: draw it on a terminal or in a notebook, by tqdm where that is
    installed; or a function of (what, done, total, unit). Raises bertcl.Error."""
    options = asked(options)
    check_flags({"force", "first_samples", "dynamic", "per_token", "model_only"}, options)
    check_counts({"samples"}, 0, options, 2**63 - 1)
    check_counts({"max_seq_length", "max_query_length"}, 1, options)
    for name in "op_types", "places":
        if options.get(name) == []:  # the program would get an empty option, which it refuses
            raise _bertcl.Error(f"'{name}' is empty; name one or more, or leave it out for the default")
    model, output = file_name(model=model), file_name(output=output)
    if data is not None:
        check_data(data)
        data = file_name(data=data)
    options.update({name: file_name(**{name: options[name]}) for name in FILES & options.keys()})
    if PROGRAM_OPTIONS & options.keys():
        return report_of("quantize", [model], progress, {"output": output, "data": data, **options})
    task = options.pop("task", SQUAD)
    vocab = options.pop("vocab", "")
    force = options.pop("force", False)
    ways = {name: options.pop(name) for name in SAMPLE_OPTIONS & options.keys()}
    files = {name: _text(value) if not isinstance(value, bool) else value
             for name, value in ((name, options.pop(name)) for name in FILE_OPTIONS & options.keys())}
    settings = [(name, "" if each is True else _text(each))
                for name, value in options.items() for each in (value if isinstance(value, (list, tuple)) else [value])]
    for name, value in [("task", task), *settings, *files.items()]:
        if name not in FILES and not isinstance(value, bool):
            check_texts(**{name: value})
    _check_source(data, ways, files, task)
    _check_files({"output": output, "write_table": files.get("write_table", "")},
                 {"data": data, "read_table": files.get("read_table"), "overrides": options.get("overrides"),
                  "vocab": vocab}, force)
    samples = _bertcl.Samples()
    if data is not None:
        check_exist([model])
        tokenizer = load_tokenizer(vocab, [model])
        ways["max_seq_length"] = _sample_length(model, tokenizer, ways.get("max_seq_length"), files.get("device", ""))
        samples = _bertcl.read_samples(data, tokenizer, task, **ways)
    draw, total = drawer(progress), len(samples)
    unit = "questions" if task == SQUAD else "texts"
    tell = None if draw is None else lambda what, done: draw(what, done, total, unit)
    report = json.loads(_bertcl.quantize(model, output, samples, settings, tell, vocab=vocab, force=force, **files))
    return {**report, "data": data or "", "task": task}


def _text(value):
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _check_source(data, ways, files, task):
    """Refuses two sources of ranges, none, and what says how to sample where nothing is."""
    table, dynamic = files.get("read_table"), files.get("dynamic")
    if dynamic and (data is not None or table or files.get("write_table")):
        raise _bertcl.Error("'dynamic' cannot be combined with 'data' or tables: activation ranges are computed at "
                            "run time")
    if not dynamic and data is None and not table:
        raise _bertcl.Error("no source of ranges: give calibration data as 'data', a table of ranges as 'read_table', "
                            "or 'dynamic' to compute them at run time")
    if data is not None and table:
        raise _bertcl.Error("'data' and 'read_table' cannot be combined: ranges are either calibrated or read from the "
                            "table")
    if ways and data is None:
        reason = "'dynamic' takes no samples" if dynamic else "a table of ranges has no samples"
        raise _bertcl.Error(f"'{min(ways)}' has no effect here: {reason}")
    if "max_query_length" in ways and task != SQUAD:
        raise _bertcl.Error(f"'max_query_length' is for task='{SQUAD}', not '{task}'")


def _check_files(made, read, force):
    """Refuses outputs that are there, that are one file, or that are read."""
    for name, path in made.items():
        for other, source in read.items():
            if path and source and (_is_same(path, source) or _is_review(path, source)):
                raise _bertcl.Error(f"'{name}' would overwrite {path}, which is read as '{other}'; give another file")
        if os.path.isfile(path) and not force:
            raise _bertcl.Error(f"'{name}': {path} already exists; name another file, or replace it with 'force'")
    output, table = made.values()
    if table and _is_same(table, output):
        raise _bertcl.Error(f"'write_table' and 'output' name the same file {output}")


def _is_review(path, folder):
    """True for one of the files neg/*.txt and pos/*.txt of a folder of movie reviews."""
    return os.path.isfile(path) and any(
        os.path.samefile(path, os.path.join(place, name)) for place, _, names in os.walk(folder)
        if os.path.basename(place) in ("neg", "pos") for name in names if name.endswith(".txt"))


def _is_same(one, other):
    if os.path.isfile(one) and os.path.isfile(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _sample_length(model, tokenizer, wanted, device):
    """Tokens of the longest sample: as wanted, which the model has to take, or the usual number within what it takes."""
    session = Session(model, device=device)
    info, most = session.info, session.info.max_length
    if 0 < info.vocab_size < tokenizer.model_size():
        raise _bertcl.Error(f"{model}: the tokenizer has {tokenizer.model_size():,} tokens, the model's embedding table "
                            f"{info.vocab_size:,} rows; use the tokenizer that belongs to this model (vocab=FILE)")
    if wanted and most and most < wanted:
        raise _bertcl.Error(f"{model}: sequences of {wanted} tokens exceed the model's maximum of {most}; "
                            f"use max_seq_length={most}")
    return wanted or min(USUAL_LENGTH, most or USUAL_LENGTH)
