# SPDX-License-Identifier: Apache-2.0
"""Scores of pairs of texts, with the interface of sentence_transformers.CrossEncoder."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np

from . import _bertcl
from .pipelines.base import (PromptedModel, batches, check_batch_size, is_list, listed, no_tensors, sigmoid, softmax,
                             the_one)
from .transformers_options import SESSION, model_path, own_options

# Those that sentence-transformers writes beside a model, by the last part of their names.
ACTIVATIONS = {"Identity": lambda scores: scores, "Sigmoid": sigmoid}
OPTIONS = ["max_length", "activation_fn", "prompts", "default_prompt_name", "num_labels", "batch_tokens", *SESSION]


class CrossEncoder(PromptedModel):
    """A sequence-classification model that reads two texts together: a reranker, or a classifier of pairs.

    path: an .onnx file, or a folder with model.onnx, onnx/model.onnx or one .onnx file, beside or above which lie
    tokenizer.json or another vocabulary, and config.json.
    max_length: tokens of a pair; by default as many as the model takes. activation_fn: of arrays of logits
    [pairs, labels]; by default as config_sentence_transformers.json or config.json name it, else the sigmoid of a
    single label and none of several. prompts, default_prompt_name: texts before the first of a pair by their names, and
    the one to use; by default as config_sentence_transformers.json says. batch_tokens: tokens of a batch at most. Other
    options are those of bertcl.Session. num_labels: that of the model. model_name_or_path: another name of path.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, device: str | int | None = None,
                 max_length: int | None = None, activation_fn: Callable[[np.ndarray], np.ndarray] | None = None,
                 prompts: dict[str, str] | None = None, default_prompt_name: str | None = None,
                 num_labels: int | None = None, model_name_or_path: str | os.PathLike[str] | None = None, **session):
        path = model_path("CrossEncoder()", path, model_name_or_path)
        super().__init__(path, **own_options("CrossEncoder()", {"device": device, **session}, OPTIONS, path))
        if max_length:
            self.max_length = min(max_length, self.settings["max_length"] or max_length)
        self._logits = next(each for each in self.session.get_outputs() if each.name == self.output("logits"))
        if len(self._logits.shape) > 2 or None in self._logits.shape[1:]:
            raise ValueError(f"{path}: the output '{self._logits.name}' is {self._logits.shape}; a cross-encoder gives "
                             "[pairs, labels]")
        if num_labels not in (None, self.num_labels):
            raise ValueError(f"num_labels is {num_labels}, but {path} has {self.num_labels}")
        self.activation_fn = activation_fn or self._default_activation()
        files = _bertcl.embedding_settings(str(self.model))
        own = files if files["scores_pairs"] else {"prompts": {}, "default_prompt_name": ""}  # or they are of vectors
        self._set_prompts(own, prompts, default_prompt_name)

    @property
    def num_labels(self) -> int:
        return self._logits.shape[1] if len(self._logits.shape) > 1 else 1

    def predict(self, pairs: Sequence | None = None, batch_size: int = 32, show_progress_bar: bool | None = False,
                activation_fn: Callable[[np.ndarray], np.ndarray] | None = None, apply_softmax: bool | None = False,
                convert_to_numpy: bool = True, convert_to_tensor: bool = False, *, prompt_name: str | None = None,
                prompt: str | None = None, sentences: Sequence | None = None,
                inputs: Sequence | None = None) -> np.ndarray | np.float32 | list:
        """Scores of a list of pairs, as float32: [pairs], or [pairs, labels] of a model with several labels; those of
        a single pair without the first axis. Which pairs are in a batch changes nothing. apply_softmax: over several
        labels. show_progress_bar: draws it by tqdm. convert_to_numpy False: a list of the scores of each pair. prompt:
        before the first text of each pair; else that of prompt_name, else of default_prompt_name. sentences and inputs
        are other names of pairs, those of sentence-transformers 5 and 6."""
        check_batch_size(batch_size)
        no_tensors(convert_to_tensor)
        pairs = the_one(pairs=pairs, sentences=sentences, inputs=inputs)
        if not is_list(pairs):
            raise TypeError(f"pairs is {pairs!r}, expected a pair of texts or a list of pairs")
        pairs = listed(pairs)
        if len(pairs) == 2 and all(isinstance(each, str) for each in pairs):
            return self.predict([pairs], batch_size, False, activation_fn, apply_softmax, prompt_name=prompt_name,
                                prompt=prompt)[0]
        prompt = self._prompt(prompt_name, prompt)
        pairs = [_checked(pair, i) for i, pair in enumerate(pairs)]
        pairs = [(prompt + first, second) for first, second in pairs]
        if not pairs:
            return np.zeros(0, np.float32) if convert_to_numpy else []
        logits = np.zeros((len(pairs), self.num_labels), np.float32)
        # What is kept is small compared with the encodings.
        sequences = [(np.array(each.ids, np.int32), np.array(self.type_ids(each), np.int8))
                     for begin in range(0, len(pairs), 1024) for each in self.encodings(pairs[begin:begin + 1024])]
        order = sorted(range(len(pairs)), key=lambda i: -sequences[i][0].size)
        parts = list(batches([sequences[i][0].size for i in order], self.batch_tokens, batch_size))
        for part in _progress(parts, show_progress_bar):
            batch = order[part]
            ids, types = ([sequences[i][k].tolist() for i in batch] for k in (0, 1))
            made, = self.run(ids, types, [self._logits.name])
            logits[batch] = made.reshape(len(batch), -1)
        scores = np.asarray((activation_fn or self.activation_fn)(logits))
        if self.num_labels == 1 and scores.ndim > 1:
            scores = scores[:, 0]
        scores = softmax(scores) if apply_softmax and scores.ndim > 1 else scores
        return scores if convert_to_numpy else list(scores)

    def rank(self, query: str, documents: Sequence[str], top_k: int | None = None, return_documents: bool = False,
             batch_size: int = 32, show_progress_bar: bool | None = False,
             activation_fn: Callable[[np.ndarray], np.ndarray] | None = None, apply_softmax: bool | None = False,
             convert_to_numpy: bool = True, convert_to_tensor: bool = False, *, prompt_name: str | None = None,
             prompt: str | None = None) -> list[dict]:
        """{"corpus_id", "score"}, with return_documents also "text", of each document, or of top_k, the best first;
        equal ones in their order. Scores are numbers of Python, whatever convert_to_numpy says, and apply_softmax
        changes nothing, since there is one label."""
        no_tensors(convert_to_tensor)
        if top_k is not None and top_k < 0:
            raise ValueError(f"top_k is {top_k}, expected 0 or more")
        if self.num_labels != 1:
            raise ValueError(f"rank() needs a model with one label, this one has {self.num_labels}; use predict()")
        if not is_list(documents):
            raise TypeError(f"documents is {documents!r}, expected a list of texts")
        documents = listed(documents)
        scores = self.predict([(query, document) for document in documents], batch_size, show_progress_bar,
                              activation_fn, prompt_name=prompt_name, prompt=prompt)
        results = [{"corpus_id": int(i), "score": float(scores[i])} for i in np.argsort(-scores, kind="stable")][:top_k]
        if return_documents:
            for result in results:
                result["text"] = documents[result["corpus_id"]]
        return results

    def _default_activation(self):
        name = self.settings["activation"] or ("Sigmoid" if self.num_labels == 1 else "Identity")
        if name.rsplit(".", 1)[-1] not in ACTIVATIONS:
            raise ValueError(f"{self.model}: unknown activation {name} (choose from {', '.join(ACTIVATIONS)}); "
                             "give activation_fn")
        return ACTIVATIONS[name.rsplit(".", 1)[-1]]


def _checked(pair, index):
    if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2 or not all(isinstance(x, str) for x in pair):
        raise ValueError(f"pairs[{index}] is {pair!r}, expected two texts")
    return tuple(map(str, pair))


def _progress(steps, shown):
    if not shown:
        return steps
    import tqdm.auto

    return tqdm.auto.tqdm(steps, desc="Batches")
