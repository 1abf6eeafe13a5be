# SPDX-License-Identifier: Apache-2.0
"""Labels of the tokens or words of a text, or the entities that they mark."""
import json
import numbers

import numpy as np

from ..arguments import check_type
from .base import Pipeline, softmax, texts_of, the_known

STRATEGIES = ["none", "simple", "first", "average", "max"]


class TokenClassification(Pipeline):
    """A text: a list of {"entity", "score", "index", "word", "start", "end"}, one for each token whose label is not
    of ignore_labels; with another aggregation_strategy than "none" of {"entity_group", "score", "word", "start",
    "end"}. A list of texts: a list of such lists.

    simple: neighbouring tokens of one label are one entity, by their B- and I- prefixes. first, average, max: words
    are labelled as a whole before, as their first token, by the mean of their scores, as their surest token.
    stride: a text longer than max_length is tagged in windows overlapping by that many tokens; else it is truncated."""

    def __init__(self, model, **options):
        super().__init__(model, **options)
        others = "feature-extraction", "fill-mask"
        self.logits = self.head("token-classification", "logits", form="[batch, seq, labels]",
                                fits=lambda shape, task: len(shape) == 3 and task not in others)
        self.unknown_id = _unknown_id(self.tokenizer)

    def results(self, texts, aggregation_strategy="none", ignore_labels=("O",), max_length=None, stride=None):
        strategy = the_known("aggregation strategy", aggregation_strategy, STRATEGIES)
        one, texts = texts_of(texts)
        windows = self._windows(texts, strategy, stride, max_length)
        rows = self.rows([window for of_text in windows for window in of_text], self.logits)
        results = []
        for text, of_text in zip(texts, windows):
            found = [each for window, (logits,) in zip(of_text, rows)
                     for each in self._entities(self._tokens(text, window, softmax(logits)), strategy)
                     if each.get("entity", each.get("entity_group")) not in ignore_labels]
            results.append(_without_overlaps(found) if len(of_text) > 1 else found)
        return results[0] if one else results

    def _windows(self, texts, strategy, stride, max_length):
        if stride is None:
            return [[each] for each in self.encodings(texts, max_length=max_length)]
        check_type(numbers.Integral, "an integer", stride=stride)
        if strategy == "none":
            raise ValueError("stride needs another aggregation_strategy than 'none'")
        return self.encode_windows(texts, stride, max_length)

    def _tokens(self, text, encoding, scores):
        marked = getattr(self.tokenizer.model, "continuing_subword_prefix", None)  # "##" of WordPiece
        for i, token_id in enumerate(encoding.ids):
            if encoding.special_tokens_mask[i]:
                continue
            token = self.tokenizer.id_to_token(token_id)  # encoding.tokens has white space that added tokens take along
            start, end = encoding.offsets[i]
            if token_id == self.unknown_id:
                token, continues = text[start:end], False
            elif marked:
                continues = len(token) != end - start
            else:
                continues = start > 0 and " " not in text[start - 1:start + 1]
            yield {"scores": scores[i], "index": i, "word": token, "start": start, "end": end, "continues": continues}

    def _entities(self, tokens, strategy):
        if strategy in ("none", "simple"):
            labelled = [self._labelled(token["scores"], index=token["index"], word=token["word"],
                                       start=token["start"], end=token["end"]) for token in tokens]
            return labelled if strategy == "none" else self._groups(labelled)
        words = []
        for token in tokens:
            if words and token["continues"]:
                words[-1].append(token)
            else:
                words.append([token])
        return self._groups([self._word(word, strategy) for word in words])

    def _word(self, tokens, strategy):
        scores = [token["scores"] for token in tokens]
        chosen = {"first": lambda: scores[0], "max": lambda: max(scores, key=np.max),
                  "average": lambda: np.mean(scores, axis=0)}[strategy]()
        return self._labelled(chosen, word=self.decode_tokens([token["word"] for token in tokens]),
                              start=tokens[0]["start"], end=tokens[-1]["end"])

    def _labelled(self, scores, **rest):
        best = int(np.argmax(scores))
        return {"entity": self.label(best), "score": float(scores[best]), **rest}

    def _groups(self, labelled):
        groups = []
        for each in labelled:
            begins, kind = _parts(each["entity"])
            if groups and not begins and _parts(groups[-1][-1]["entity"])[1] == kind:
                groups[-1].append(each)
            else:
                groups.append([each])
        return [{"entity_group": group[0]["entity"].split("-", 1)[-1],
                 "score": float(np.mean([each["score"] for each in group])),
                 "word": self.decode_tokens([each["word"] for each in group]),
                 "start": group[0]["start"], "end": group[-1]["end"]} for group in groups]


def _without_overlaps(entities):
    """Of entities that overlap in neighbouring windows the longest, and of these the likeliest, as in transformers."""
    kept = []
    for each in sorted(entities, key=lambda entity: entity["start"]):
        if not kept or not kept[-1]["start"] <= each["start"] < kept[-1]["end"]:
            kept.append(each)
        elif (each["end"] - each["start"], each["score"]) > (kept[-1]["end"] - kept[-1]["start"], kept[-1]["score"]):
            kept[-1] = each
    return kept


def _unknown_id(tokenizer):
    """Id of the token for what the vocabulary lacks: that of the model, else [UNK] or <unk>. None: there is none."""
    names = [getattr(tokenizer.model, "unk_token", None), "[UNK]", "<unk>"]
    if not hasattr(tokenizer.model, "unk_token"):  # Unigram has an id instead, and no attribute for it
        found = json.loads(tokenizer.to_str())["model"].get("unk_id")
        if found is not None:
            return found
    return next((found for name in names if name and (found := tokenizer.token_to_id(name)) is not None), None)


def _parts(label):
    """Whether an entity begins here, and of which kind it is."""
    return label.startswith("B-"), label[2:] if label[:2] in ("B-", "I-") else label
