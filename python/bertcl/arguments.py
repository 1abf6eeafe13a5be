# SPDX-License-Identifier: Apache-2.0
"""Arguments of quantize() and evaluate(): options of the program's commands, and files."""
from __future__ import annotations

import numbers
import os
import reprlib
from collections.abc import Iterable, Mapping

import numpy as np

from . import _bertcl

# Flags, each with the one that undoes it: False of the one is the other. Those with "" are off by default.
FLAGS = {**_bertcl.quantizer_flags(), "lower_case": "no_lower_case", "no_lower_case": "lower_case", "cased": "lower_case",
         "strip_accents": "no_strip_accents", "no_strip_accents": "strip_accents",
         **dict.fromkeys(("force", "model_only", "first_samples", "dynamic", "per_token", "sensitivity", "windows",
                          "allow_nonfinite", "keep_padding", "command_buffer"), "")}
FILES = {"read_table", "write_table", "overrides", "vocab"}
LARGEST = 2**31 - 1  # of an int in C++


def asked(options):
    """The options that are not None, those of several values as lists. False of a flag is the one that undoes it, or no
    option where there is none."""
    made = {}
    for name, value in options.items():
        if value is None:
            continue
        if name in FLAGS and isinstance(value, (numbers.Integral, np.bool_)):
            value = bool(value)
        elif name not in FILES and isinstance(value, Iterable) and not isinstance(value, (str, os.PathLike)):
            value = _listed(name, value)
        if value is not False:
            made[name] = device_text(value) if name == "device" else value
        elif name not in FLAGS:
            raise TypeError(f"{name} is False, but is not a flag; leave it out for its default")
        elif FLAGS[name]:
            made[FLAGS[name]] = True
    return made


def _listed(name, values):
    if isinstance(values, (bytes, Mapping)) or (name == "labels" and isinstance(values, (set, frozenset))):
        raise TypeError(f"{name} is {values!r}, expected a text or a list of texts")
    values = list(values)
    for value in values:
        if not isinstance(value, (str, os.PathLike, numbers.Real)):
            raise TypeError(f"{name} holds {value!r}, expected texts")
    return values


def file_name(**options):
    """The name of a file as a str, whose bytes need not be valid Unicode."""
    (value,) = options.values()
    check_type((str, os.PathLike), "the name of a file", **options)
    value = os.fsdecode(value)
    if "\0" in value:
        raise ValueError(f"{value!r}: the path contains a zero byte")
    return value


def check_type(wanted, words, **options):
    for name, value in options.items():
        if not isinstance(value, wanted):
            raise TypeError(f"{name} is {reprlib.repr(value)}, expected {words}")


def check_data(data):
    """Not the texts themselves."""
    if not isinstance(data, (str, os.PathLike)):
        raise TypeError(f"data is of type {type(data).__name__}, expected the name of a file; write what it holds into "
                        "one, for task='text' a text on each line")


def device_text(device):
    """The name of a device. A number is its index, or -1 for the CPU, as transformers has it."""
    if isinstance(device, numbers.Integral) and not isinstance(device, bool):
        if device < -1:
            raise ValueError(f"device is {device}, expected an index, or -1 for the CPU")
        return "cpu" if device == -1 else str(device)
    if type(device).__name__ == "device":  # torch's
        if device.type != "cpu":
            raise TypeError(f"device is {device!r}, a device of torch; give 'gpu', or its index as of bertcl devices")
        return "cpu"
    check_type(str, "a text or an index", device=device)
    check_texts(device=device)
    return device


def check_texts(**options):
    """Texts that C++ can read."""
    check_type(str, "a text", **options)
    for name, value in options.items():
        if "\0" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(f"{name} is {value!r}, which has a zero byte or a lone surrogate")


def check_flags(names, options):
    check_type(bool, "True or False", **{name: options[name] for name in names & options.keys()})


def flag(**options):
    """True or False, also as a number, as the flags of quantize() and evaluate()."""
    (value,) = options.values()
    check_type((numbers.Integral, np.bool_), "True or False", **options)
    return bool(value)


def check_counts(names, least, options, most=LARGEST):
    """Integers, `least` or more, that C++ can hold. True and False are none."""
    for name in names & options.keys():
        value = options[name]
        if isinstance(value, bool):
            raise TypeError(f"{name} is {value}, expected an integer")
        check_type(numbers.Integral, "an integer", **{name: value})
        if not least <= value <= most:
            wanted = f"{least} or more" if value < least and most >= LARGEST else f"{least} to {most}"
            raise _bertcl.Error(f"'{name}' is {value}, expected {wanted}")


def check_exist(models):
    """Before what they lack beside them is missed."""
    for model in models:
        if not os.path.exists(model):
            raise _bertcl.Error(f"{model}: no such file")


def load_tokenizer(vocab, models):
    """That of the file `vocab`, or else the first beside a model; "" is a model in memory."""
    files = [model for model in models if model]
    if not vocab and not files:
        raise _bertcl.Error("a model in memory has no vocabulary beside it; pass a file as 'vocab'")
    return _bertcl.Tokenizer(vocab, files)
