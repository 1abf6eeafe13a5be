# SPDX-License-Identifier: Apache-2.0
"""Answers to questions, as spans of a context."""
from collections.abc import Iterable

import numpy as np

from .base import Pipeline, softmax

FORM = '{"question": a, "context": b}'


class QuestionAnswering(Pipeline):
    """question and context, or {"question", "context"}, or a list of these:
    {"score", "start", "end", "answer"} for each, or a list of them with top_k > 1.

    Contexts that are too long are read in windows of `max_seq_len` tokens that overlap by `doc_stride`. Scores are
    products of the probabilities of first and last token in a window, summed over equal answers.
    max_answer_len: tokens; handle_impossible_answer: "" may be the answer; align_to_words: answers are whole words.
    """

    def __init__(self, model, **options):
        super().__init__(model, **options)
        names = {port.name for port in self.session.get_outputs()}
        self.head("question-answering", "start_logits", form="start_logits [batch, seq] and end_logits",
                  fits=lambda shape, task: names >= {"start_logits", "end_logits"})

    def __call__(self, *inputs, question=None, context=None, **options):
        if question is not None:
            inputs = ({"question": question, "context": context},)
        elif len(inputs) == 2 and isinstance(inputs[0], str):
            inputs = ({"question": inputs[0], "context": inputs[1]},)
        if len(inputs) != 1:
            raise ValueError("question-answering: give question=..., context=..., or a list of dictionaries")
        if isinstance(inputs[0], dict):
            return self._answer(inputs[0], **options)
        if isinstance(inputs[0], str) or not isinstance(inputs[0], Iterable):
            raise TypeError(f"question-answering: the input is {inputs[0]!r}, expected {FORM}, or a list of these")
        results = [self._answer(each, **options) for each in inputs[0]]
        return results[0] if len(results) == 1 else results

    def _answer(self, example, top_k=1, doc_stride=None, max_seq_len=None, max_answer_len=15,
                handle_impossible_answer=False, align_to_words=True):
        if not isinstance(example, dict):
            raise TypeError(f"question-answering: an input is {example!r}, expected {FORM}")
        for key in ("question", "context"):
            if not example.get(key):
                raise ValueError(f"question-answering: '{key}' is empty or missing")
            if not isinstance(example[key], str):
                raise TypeError(f"question-answering: '{key}' is {example[key]!r}, expected a text")
        if top_k < 1 or max_answer_len < 1:
            raise ValueError("question-answering: top_k and max_answer_len must be at least 1")
        longest = max_seq_len or min(self.max_length, 384)
        stride = min(longest // 2, 128) if doc_stride is None else doc_stride
        first, = self.encode([(example["question"], example["context"])], longest, stride=stride,
                             strategy="only_second")
        windows = [first, *first.overflowing]
        candidates = top_k * 2 + 10 if align_to_words else top_k  # spans of the same words become one
        answers, null_score = {}, 1e6
        for window, (start, end) in zip(windows, self.rows(windows, "start_logits", "end_logits")):
            start, end, null = _probabilities(window, start, end)
            null_score = min(null_score, null)
            for first_token, last_token, score in _spans(window, start, end, candidates, max_answer_len):
                begin, after = _characters(window, first_token, last_token, align_to_words)
                text = example["context"][begin:after]
                known = answers.setdefault(text.lower(), {"score": 0.0, "start": begin, "end": after, "answer": text})
                known["score"] += score
        ranked = list(answers.values())
        if handle_impossible_answer:
            ranked.append({"score": null_score, "start": 0, "end": 0, "answer": ""})
        ranked = sorted(ranked, key=lambda answer: -answer["score"])[:top_k]
        return ranked[0] if len(ranked) == 1 else ranked


def _probabilities(window, start, end):
    """Of each token to be the first and the last, and of there being no answer, which [CLS] stands for."""
    allowed = np.array([sequence == 1 for sequence in window.sequence_ids])
    allowed[0] = True
    start, end = (softmax(np.where(allowed, logits, -10000.0).astype(np.float32)) for logits in (start, end))
    null = float(start[0] * end[0])
    start[0] = end[0] = 0
    return start, end, null


def _spans(window, start, end, count, longest):
    """The `count` likeliest spans of the window, (first, last, score); those outside the context are left out."""
    scores = np.tril(np.triu(np.outer(start, end)), longest - 1)
    if count < scores.size:
        best = np.argpartition(-scores, count, axis=None)[:count]
        best = best[np.argsort(-scores.flat[best])]
    else:
        best = np.argsort(-scores, axis=None)
    for first, last in zip(*np.unravel_index(best, scores.shape)):
        if {window.sequence_ids[first], window.sequence_ids[last]} <= {1} or first == last == 0:
            yield int(first), int(last), float(scores[first, last])


def _characters(window, first, last, whole_words):
    if whole_words:
        words = window.token_to_word(first), window.token_to_word(last)
        if None not in words:
            return window.word_to_chars(words[0], 1)[0], window.word_to_chars(words[1], 1)[1]
    return window.offsets[first][0], window.offsets[last][1]
