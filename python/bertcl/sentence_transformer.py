# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts, with the interface of sentence_transformers.SentenceTransformer. Needs the package tokenizers."""
from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import numpy as np
from tokenizers import normalizers

from . import _bertcl
from .files import model_file
from .pipelines.base import PromptedModel, batches, check_batch_size, no_tensors, texts_of, the_known, the_one
from .transformers_options import SESSION, model_path, own_options

SIMILARITIES = ("cosine", "dot", "euclidean", "manhattan")
OPTIONS = ["pooling", "normalize", "prompts", "default_prompt_name", "truncate_dim", "similarity_fn_name",
           "batch_tokens", *(name for name in SESSION if name not in ("pooling", "normalize", "or_own", "dense"))]


class SentenceTransformer(PromptedModel):
    """A model in ONNX with sentence-transformers' files beside it, or in the folder above its folder `onnx`.

    path: the .onnx file, or the folder with model.onnx, onnx/model.onnx or one .onnx file.
    device: part of a name, or "gpu", "cpu"; or an index, -1 for the CPU; by default the first GPU, else the CPU.
    pooling: "mean", "cls", "max" or "last"; by default as the files say, else the model has to pool itself.
    normalize: vectors to length 1; by default as the files say.
    truncate_dim: dimensions that are kept; they are not normalized again.
    batch_tokens: tokens of a batch at most. Further options are those of bertcl.Session. model_name_or_path: another
    name of path.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, device: str | int | None = None, *,
                 pooling: str | None = None, normalize: bool | None = None,
                 prompts: dict[str, str] | None = None, default_prompt_name: str | None = None,
                 truncate_dim: int | None = None, similarity_fn_name: str | None = None, batch_tokens: int = 4096,
                 model_name_or_path: str | os.PathLike[str] | None = None, **session):
        path = model_path("SentenceTransformer()", path, model_name_or_path)
        session = own_options("SentenceTransformer()", session, OPTIONS, path)
        model = model_file(path)
        files = _bertcl.embedding_settings(str(model))
        told = files["pooling"] if pooling is None else pooling
        self.normalize = files["normalize"] if normalize is None else normalize
        super().__init__(model, batch_tokens=batch_tokens, device="" if device is None else device, pooling=told,
                         normalize=self.normalize, or_own=pooling is None, dense=files["dense"], **session)
        if files["lower_case"]:
            self.tokenizer.normalizer = _lower_casing(self.tokenizer.normalizer)
        self._set_prompts(files, prompts, default_prompt_name)
        self.pools_prompt = files["pools_prompt"]
        self.truncate_dim = truncate_dim or files["dimensions"] or None
        self.similarity_fn_name = similarity_fn_name or files["similarity"] or "cosine"
        limits = [limit for limit in (files["max_length"], self.session.info.max_length) if limit]
        self.max_length = min(limits, default=512)

    @property
    def similarity_fn_name(self) -> str:
        return self._similarity

    @similarity_fn_name.setter
    def similarity_fn_name(self, name):
        self._similarity = the_known("similarity", name, SIMILARITIES)

    @property
    def max_seq_length(self):
        return self.max_length

    @max_seq_length.setter
    def max_seq_length(self, tokens):
        self.max_length = tokens

    def encode(self, sentences: str | Sequence[str] | None = None, prompt_name: str | None = None,
               prompt: str | None = None, batch_size: int = 32, show_progress_bar: bool | None = False,
               output_value: str | None = "sentence_embedding", precision: str = "float32",
               convert_to_numpy: bool = True, convert_to_tensor: bool = False, device: str | None = None,
               normalize_embeddings: bool = False, truncate_dim: int | None = None, pool: None = None,
               chunk_size: int | None = None, *, inputs: str | Sequence[str] | None = None):
        """float32 [sentences, dimensions], or [dimensions] of one string; a list of arrays without convert_to_numpy.
        output_value, precision, convert_to_tensor and pool take their defaults only; the device is chosen at
        construction, and chunk_size changes nothing. inputs: another name of sentences, that of sentence-transformers
        6. Sentences of similar length run together, `batch_size` at most and batch_tokens tokens; the vector of a
        sentence does not depend on those beside it. One without tokens, of a tokenizer that adds none, is 0."""
        check_batch_size(batch_size)
        no_tensors(convert_to_tensor)
        for name, value, only in (("output_value", output_value, "sentence_embedding"),
                                  ("precision", precision, "float32"), ("device", device, None),
                                  ("pool", pool, None)):
            if value != only:
                raise ValueError(f"encode() supports only {name}={only!r}" + (
                    "; give device to SentenceTransformer()" if name == "device" else f", not {value!r}"))
        one, texts = texts_of(the_one(sentences=sentences, inputs=inputs))
        prompt = self._prompt(prompt_name, prompt)
        if prompt and not self.pools_prompt:
            raise ValueError("the model excludes prompt tokens from pooling (include_prompt in "
                             "1_Pooling/config.json), which is not supported")
        texts = [prompt + text for text in texts]
        encodings = self.encodings(texts)
        vectors = np.zeros((len(texts), self.session.get_outputs()[0].shape[1]), np.float32)
        done = 0
        order = sorted(range(len(texts)), key=lambda i: -len(encodings[i].ids))
        for part in batches([len(encodings[i].ids) for i in order], self.batch_tokens, batch_size):
            batch = order[part]
            filled = [i for i in batch if encodings[i].ids]
            if filled:
                vectors[filled] = self.session.run_sequences([encodings[i].ids for i in filled],
                                                             [self.type_ids(encodings[i]) for i in filled])[0]
            done += len(batch)
            if show_progress_bar:
                print(f"\rembedding {done}/{len(texts)}", end="" if done < len(texts) else "\n", file=sys.stderr)
        vectors = vectors[:, :truncate_dim or self.truncate_dim]
        if normalize_embeddings:
            vectors = _unit(vectors)
        result = vectors if convert_to_numpy else list(vectors)
        return result[0] if one else result

    def encode_query(self, sentences=None, **options):
        """encode() with the prompt "query" where the model has one."""
        return self.encode(sentences, **self._with_prompt(options, ["query"]))

    def encode_document(self, sentences=None, **options):
        """encode() with the prompt "document", "passage" or "corpus" where the model has one."""
        return self.encode(sentences, **self._with_prompt(options, ["document", "passage", "corpus"]))

    def similarity(self, one, other) -> np.ndarray:
        """[vectors of one, vectors of other] by similarity_fn_name."""
        a, b = np.atleast_2d(np.asarray(one, np.float32)), np.atleast_2d(np.asarray(other, np.float32))
        if self.similarity_fn_name == "cosine":
            a, b = _unit(a), _unit(b)
        if self.similarity_fn_name in ("cosine", "dot"):
            return a @ b.T
        order = 2 if self.similarity_fn_name == "euclidean" else 1
        rows = [-np.linalg.norm(row - b, ord=order, axis=1) for row in a]
        return np.array(rows, np.float32).reshape(len(a), len(b))

    def similarity_pairwise(self, one, other) -> np.ndarray:
        """float32 [n]: the similarity of one[i] and other[i], both [n, dimensions]; a number of two single vectors. By
        similarity_fn_name."""
        a, b = np.asarray(one, np.float32), np.asarray(other, np.float32)
        if self.similarity_fn_name == "cosine":
            a, b = _unit(a), _unit(b)
        if self.similarity_fn_name in ("cosine", "dot"):
            return (a * b).sum(axis=-1)
        return -np.linalg.norm(a - b, ord=2 if self.similarity_fn_name == "euclidean" else 1, axis=-1)

    def tokenize(self, texts: str | Sequence[str]) -> dict[str, np.ndarray]:
        """The model's inputs of that name, int64 [texts, tokens of the longest], as encode() gives them to it, padded on
        the right."""
        encodings = self.encodings(texts_of(texts)[1])
        longest = max((len(each.ids) for each in encodings), default=0)

        def padded(rows, value):
            full = [row + [value] * (longest - len(row)) for row in rows]
            return np.array(full, np.int64).reshape(len(rows), longest)

        inputs = {"input_ids": padded([each.ids for each in encodings], max(self.pad_id, 0)),
                  "token_type_ids": padded([each.type_ids for each in encodings], 0),
                  "attention_mask": padded([each.attention_mask for each in encodings], 0)}
        if not self.settings["has_token_types"] or all(port.name != "token_type_ids" for port in self.session.get_inputs()):
            del inputs["token_type_ids"]
        return inputs

    def get_max_seq_length(self) -> int:
        """Tokens of the longest text; longer ones are truncated."""
        return self.max_seq_length

    @property
    def device(self) -> str:
        """The name of the device."""
        return self.session.info.device

    def get_sentence_embedding_dimension(self) -> int:
        whole = self.session.get_outputs()[0].shape[1]
        return min(self.truncate_dim or whole, whole)

    get_embedding_dimension = get_sentence_embedding_dimension

    def _with_prompt(self, options, names):
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt_name"] = next((name for name in names if name in self.prompts), None)
        return options


def _lower_casing(normalizer):
    """Lowercase first, as sentence-transformers 6.2.0 does it: special tokens in a text stay as they are."""
    stages = [normalizers.Lowercase(), *([normalizer] if normalizer else [])]
    return normalizers.Sequence(stages)


def _unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), np.float32(1e-12))
