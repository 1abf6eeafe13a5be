# SPDX-License-Identifier: Apache-2.0
"""A model on a device, with the interface of onnxruntime.InferenceSession."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from . import _bertcl
from .arguments import check_counts, check_texts, device_text, file_name, flag


class NodeArg(NamedTuple):
    """An input or output: its name, extents (None where free) and type as "tensor(int64)"."""

    name: str
    shape: list[int | None]
    type: str


class ModelInfo(NamedTuple):
    """max_length: tokens of the longest sequence; vocab_size: rows of the word table; heads: of attention (0: not
    known, each); int8: whether linears or attention compute in int8; device: its name; precision: of float linears
    and attention, "fp32", "fp16" or "bf16"; task: what the model is for, as pipelines name it, by the names and shapes
    of its outputs ("": they do not tell); metadata: metadata_props of the file."""

    max_length: int
    vocab_size: int
    heads: int
    int8: bool
    device: str
    precision: str
    task: str
    metadata: dict[str, str]


class Session:
    """An ONNX model, compiled for a device: a file, or its content as bytes. Any thread may call it: weights and
    programs are shared, each run in flight has memory of its own, and runs release the interpreter's lock.

    device: part of a name, or "gpu", "cpu"; or an index, -1 for the CPU; by default the first GPU, else the CPU.
    precision: of float linears and attention: "fp32", "fp16" or "bf16".
    requests: most runs in flight, at least 1; further callers wait.
    max_memory: bytes of weights and values; 0: what the device has.
    require_int8: Error where a MatMul that the file quantizes would run in float.
    allow_nonfinite: weights may hold NaN and infinity.
    pooling: "mean", "max", "cls" or "last" of the hidden states, or "" of a model that pools itself: one output
    "sentence_embedding" in place of the model's; normalize: its vectors to length 1; dimensions: how many to keep,
    the first ones (0: all); dense: folders of Dense modules of sentence-transformers, whose layers follow the
    pooling. A model without hidden states pools itself, whatever the pooling, with or_own.
    Raises bertcl.Error, which names file, node and reason.
    """

    def __init__(self, path: str | os.PathLike[str] | bytes, *, device: str | int = "", precision: str = "fp32",
                 requests: int = 4, max_memory: int = 0, require_int8: bool = False, allow_nonfinite: bool = False,
                 pooling: str | None = None, normalize: bool = False, dimensions: int = 0, or_own: bool = False,
                 dense: Sequence[str | os.PathLike[str]] = ()):
        device = device_text(device)
        check_texts(precision=precision, **{} if pooling is None else {"pooling": pooling})
        check_counts({"requests"}, 1, {"requests": requests}, _bertcl.max_requests)
        check_counts({"max_memory", "dimensions"}, 0, {"max_memory": max_memory, "dimensions": dimensions}, 2**63 - 1)
        require_int8, allow_nonfinite = flag(require_int8=require_int8), flag(allow_nonfinite=allow_nonfinite)
        normalize, or_own = flag(normalize=normalize), flag(or_own=or_own)
        if pooling is None and (normalize or dimensions or dense):
            raise ValueError("normalize, dimensions and dense need pooling")
        model = path if isinstance(path, bytes) else file_name(path=path)
        self.path = "" if isinstance(path, bytes) else model
        self._session = _bertcl.Session(model, device, precision, requests, max_memory, require_int8, allow_nonfinite,
                                        pooling, normalize, dimensions, or_own,
                                        [file_name(dense=folder) for folder in dense])
        self._inputs = [NodeArg(*port) for port in self._session.inputs()]
        self._outputs = [NodeArg(*port) for port in self._session.outputs()]

    @property
    def info(self) -> ModelInfo:
        return ModelInfo(**self._session.info())

    def get_inputs(self) -> list[NodeArg]:
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        return list(self._outputs)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, np.ndarray],
            run_options: None = None) -> list[np.ndarray]:
        """One batch of padded sequences; outputs in the order of `output_names`, or all of them (None). Token types
        may be left out (zeros), and so may the mask (ones). Rows of padding in the outputs are 0, or
        what operators after the encoder make of 0. Integers may have another integer type than the model's, if it
        holds them; floats in their place are an Error. run_options: None, onnxruntime's default."""
        if run_options is not None:
            raise TypeError(f"run_options is {run_options!r}, expected None: bertcl has no options of a run")
        names = self._names(output_names)
        if not isinstance(input_feed, Mapping):
            raise TypeError(f"input_feed is of type {type(input_feed).__name__}, expected arrays by the names of "
                            "inputs")
        for name in input_feed:
            check_texts(**{"a name of input_feed": name})
        made = self._session.run({name: _numbers(name, array) for name, array in input_feed.items()}, names)
        return [made[name] for name in names]

    def run_sequences(self, ids: Sequence[Sequence[int]], token_type_ids: Sequence[Sequence[int]] | None = None, *,
                      output_names: Sequence[str] | None = None) -> list[np.ndarray]:
        """Sequences of token ids of any lengths, without padding. An output [batch, seq, ...] of the model is
        [tokens, ...]: the rows of the first sequence, then those of the second, and so on. Other axes of tokens, as
        of attention [batch, heads, seq, seq], are as long as the longest sequence. Several runs, where the file fixes
        the batch or has no mask to tell padding by, are put together."""
        names = self._names(output_names)
        all_ids, offsets = _concat("ids", ids)
        all_types, type_offsets = None, offsets
        if token_type_ids is not None:
            all_types, type_offsets = _concat("token_type_ids", token_type_ids)
        _check_same_lengths(np.diff(type_offsets), np.diff(offsets))
        made = self._session.run_sequences(all_ids, all_types, offsets, names)
        return [made[name] for name in names]

    def _names(self, wanted):
        known = [output.name for output in self._outputs]
        if isinstance(wanted, str):
            raise TypeError(f"output names must be a list, such as ['{wanted}']")
        wanted = [] if wanted is None else list(wanted)
        if not wanted:
            return known
        for name in wanted:
            if name not in known:
                raise ValueError(f"unknown output '{name}' (choose from {', '.join(known)})")
        return wanted


def _check_same_lengths(types, ids):
    if len(types) != len(ids):
        raise ValueError(f"run_sequences: token_type_ids and ids have different lengths, {len(types)} and {len(ids)}")
    different = np.flatnonzero(types != ids)
    if different.size:
        i = different[0]
        raise ValueError(f"run_sequences: token_type_ids[{i}] and ids[{i}] have different lengths, {types[i]} and "
                         f"{ids[i]}")


def _numbers(name, values):
    array = np.asarray(values, order="C")
    if array.dtype.kind not in "biuf":
        wanted = "real numbers" if array.dtype.kind == "c" else "numbers"
        raise _bertcl.Error(f"input '{name}' has dtype {array.dtype}, expected {wanted}")
    if array.dtype.itemsize > 8:
        raise _bertcl.Error(f"input '{name}' has dtype {array.dtype}, expected numbers of at most 64 bits")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _concat(name, sequences):
    """All of their numbers, one after the other, and where each begins, with the end of the last."""
    if isinstance(sequences, (str, bytes, Mapping)):
        raise TypeError(f"run_sequences: {name} is of type {type(sequences).__name__}, expected sequences of numbers")
    sequences = list(sequences)
    arrays = [np.asarray(sequence) for sequence in sequences]
    for i, array in enumerate(arrays):
        if not array.ndim:
            raise TypeError(f"run_sequences: {name}[{i}] is {sequences[i]!r}, expected a sequence of numbers; give a "
                            f"single sequence as [{name}]")
        if array.size != array.shape[-1]:
            raise TypeError(f"run_sequences: {name}[{i}] has shape {list(array.shape)}, expected a sequence of numbers; "
                            "give each row as a sequence")
        if array.size and array.dtype.kind not in "biu":
            raise _bertcl.Error(f"{name}[{i}] has dtype {array.dtype}, expected integers")
        if array.size and array.dtype.kind == "u" and array.max() > np.iinfo(np.int64).max:
            raise _bertcl.Error(f"{name}[{i}] holds {array.max()}, beyond the range of int64")
    offsets = np.zeros(len(arrays) + 1, np.int64)
    np.cumsum([array.size for array in arrays], out=offsets[1:])
    arrays = [array.astype(np.int64, copy=False).reshape(-1) for array in arrays]
    return np.concatenate(arrays) if arrays else np.zeros(0, np.int64), offsets
