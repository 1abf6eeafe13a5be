# SPDX-License-Identifier: Apache-2.0
"""Scores of models on data sets."""
from __future__ import annotations

import json
import numbers
import os
import pathlib

from . import _bertcl
from .arguments import (asked, check_counts, check_data, check_exist, check_flags, check_texts, check_type, file_name,
                        load_tokenizer)
from .program import report_of
from .progress import Progress, drawer
from .session import Session

# What the library takes. The program has more: pages, files of answers, choices of kernels and passes.
SESSION_OPTIONS = {"device", "precision", "max_memory", "allow_nonfinite", "require"}
COMMON_OPTIONS = {"task", "vocab", "limit", "max_seq_length", "batch_tokens"}
SQUAD_OPTIONS = {"doc_stride", "max_query_length", "max_answer_length", "n_best", "null_threshold"}
TASK_OPTIONS = {"labels", "windows"}
SQUAD = "question-answering"


def evaluate(*models: str | os.PathLike[str] | Session, data: str | os.PathLike[str],
             progress: bool | Progress = True, **options) -> dict:
    """Scores of one or several models on `data`, side by side: EM and F1 of a SQuAD file, or those of task="classify"
    and others. A model is a file or a bertcl.Session. `options` are those of `bertcl eval` (limit=200, vocab=...,
    labels=["no", "yes"], lower_case=False, ...). Returns its report, as --json gives it; only with compare=, of
    files, does it count equal answers and compare vectors. Other threads run meanwhile. progress: draw it on a
    terminal or in a notebook, by tqdm where that is installed; or a function of (what, done, total, unit). Raises
    bertcl.Error."""
    if not models:
        raise TypeError("evaluate: no model is given")
    check_data(data)
    data = file_name(data=data)
    models = [model if isinstance(model, Session) else file_name(model=model) for model in models]
    options = asked(options)
    _check(options)
    others = _unknown_to_library(models, options, data)
    if others and any(isinstance(model, Session) for model in models):
        raise ValueError(f"evaluate: {', '.join(others)}: not supported for a Session; give the model's file")
    if others:
        labels = options.get("labels")
        if isinstance(labels, (list, tuple)):
            if with_comma := [label for label in labels if "," in label]:
                raise ValueError(f"evaluate: the label '{with_comma[0]}' has a comma; give labels='FILE' with one on "
                                 "each line")
            options["labels"] = ",".join(labels)
        return report_of("eval", models, progress, {"data": data, **options})
    task = options.pop("task", SQUAD)
    check_exist(model for model in models if not isinstance(model, Session))
    tokenizers = _load_tokenizers(file_name(vocab=options.pop("vocab", "")), [_path_of(model) for model in models])
    draw = drawer(progress)
    reports = [_scores(model, tokenizer, task, data, draw, dict(options))
               for model, tokenizer in zip(models, tokenizers)]
    return {**reports[0], "models": [report["models"][0] for report in reports]}


def _check(options):
    check_flags({"windows", "allow_nonfinite"}, options)
    check_counts({"limit"}, 0, options, 2**63 - 1)
    check_counts({"max_seq_length", "batch_tokens", "doc_stride", "max_query_length", "max_answer_length", "n_best"}, 1,
                 options)
    check_texts(**{name: options[name] for name in {"task", "precision"} & options.keys()})
    if "null_threshold" in options:
        check_type(numbers.Real, "a number", null_threshold=options["null_threshold"])


def _unknown_to_library(models, options, data):
    """Names of the arguments for which the program is needed."""
    task = options.get("task", SQUAD)
    known = SESSION_OPTIONS | COMMON_OPTIONS | (SQUAD_OPTIONS if task == SQUAD else TASK_OPTIONS)
    made = any(isinstance(model, Session) for model in models)
    if made:
        known = known - SESSION_OPTIONS | {"allow_nonfinite"}
    others = [name for name in options if name not in known]
    if isinstance(options.get("labels"), str):  # names between commas, or a file of them
        others.append("labels")
    if isinstance(options.get("max_memory"), str):  # "4G"
        others.append("max_memory")
    if data == "-":  # standard input
        others.append("data")
    if task in ("classify", "tag") and len(models) > 1 and "labels" not in options and not made:
        others.append("task")  # the models share the labels of one of them
    return others


def _path_of(model):
    return model.path if isinstance(model, Session) else model


def _load_tokenizers(vocab, paths):
    """That of each model, by `vocab`, or else the files beside it, or the first model that has them."""
    if vocab:
        return [load_tokenizer(vocab, paths)] * len(paths)
    # A model may be a folder; in memory it is "".
    folders = [path if not path or os.path.isdir(path) else os.path.dirname(path) or "." for path in paths]
    made = {}
    for path, folder in zip(paths, folders):
        if folder not in made:
            made[folder] = load_tokenizer(vocab, [path, *paths])
    return [made[folder] for folder in folders]


def _scores(model, tokenizer, task, data, draw, options):
    session = model if isinstance(model, Session) else _load(model, task, options)
    name = f"{'int8' if session.info.int8 else session.info.precision} {pathlib.Path(session.path).name}"
    unit = "questions" if task == SQUAD else "sequences"
    tell = None if draw is None else lambda done, total: draw(name, done, total, unit)
    try:
        if task == SQUAD:
            return json.loads(_bertcl.evaluate_squad(session._session, tokenizer, data, tell, **options))
        return json.loads(_bertcl.evaluate_task(session._session, tokenizer, task, data, tell, **options))
    except _bertcl.Error as error:
        if session.path in str(error) or data in str(error):
            raise
        raise _bertcl.Error(f"{session.path}: {error}") from None


def _load(path, task, options):
    """A session of a file, with the options that are for it, which it takes out."""
    own = {name: options.pop(name) for name in ("device", "precision", "max_memory") if name in options}
    if "require" in options:
        required = options.pop("require")
        if required != "int8":
            raise ValueError(f"unknown requirement '{required}' (choose from int8)")
        own["require_int8"] = True
    if "allow_nonfinite" in options:
        own["allow_nonfinite"] = True
    if task in ("similarity", "retrieval"):
        files = _bertcl.embedding_settings(path)
        if files["pooling"] or task == "retrieval":
            own.update(pooling=files["pooling"], or_own=True,
                       **{name: files[name] for name in ("normalize", "dimensions", "dense")})
    return Session(path, **own)
