# SPDX-License-Identifier: Apache-2.0
"""Answers to questions, as spans of a context."""
import dataclasses
import inspect

import numpy as np
import tokenizers

from .base import Pipeline, is_list, listed, softmax, unwrapped

FORM = '{"question": a, "context": b}'


class QuestionAnswering(Pipeline):
    """question and context, or {"question", "context"}, or a list of these, or a list of questions with one context or
    a list of them: {"score", "start", "end", "answer"} for each, or a list of them with top_k > 1.

    Contexts that are too long are read in windows of `max_seq_len` tokens that overlap by `doc_stride`; questions are
    truncated to `max_question_len` tokens. Scores are products of the probabilities of first and last token in a
    window, summed over equal answers.
    max_answer_len: tokens; handle_impossible_answer: "" may be the answer; align_to_words: answers are whole words.
    """

    def __init__(self, model, **options):
        super().__init__(model, **options)
        names = {port.name for port in self.session.get_outputs()}
        self.head("question-answering", "start_logits", form="start_logits [batch, seq] and end_logits",
                  fits=lambda shape, task: names >= {"start_logits", "end_logits"})

    def call_options(self):
        return inspect.signature(self._answer)

    def results(self, *inputs, question=None, context=None, **options):
        if question is not None:
            inputs = (_examples(question, context),)
        elif len(inputs) == 2 and isinstance(inputs[0], str):
            inputs = ({"question": inputs[0], "context": inputs[1]},)
        if len(inputs) != 1:
            raise ValueError("question-answering: give question=..., context=..., or a list of dictionaries")
        if isinstance(inputs[0], dict):
            return self._answer(inputs[0], **options)
        if not is_list(inputs[0]):
            raise TypeError(f"question-answering: the input is {inputs[0]!r}, expected {FORM}, or a list of these")
        return unwrapped([self._answer(each, **options) for each in listed(inputs[0])], inputs[0])

    def _answer(self, example, top_k=1, doc_stride=None, max_seq_len=None, max_question_len=64, max_answer_len=15,
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
        whole = self.encode_whole((example["question"], example["context"]))
        windows = _windows(whole, max_seq_len or min(self.max_length, 384), doc_stride, max_question_len)
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


@dataclasses.dataclass
class _Window:
    """Some tokens of the encoding `whole` of question and context: those at `places`."""
    whole: tokenizers.Encoding
    places: list
    ids: list
    type_ids: list
    sequences: list  # 0: of the question, 1: of the context, None: a special token
    offsets: list


def _windows(whole, longest, stride, longest_question):
    """The question's first tokens with parts of the context, as tokenizers' own truncation makes them, which leaves a
    long question whole, and ends in a panic where the stride exceeds what is left for the context."""
    if longest_question < 0:
        raise ValueError(f"question-answering: max_question_len is {longest_question}, expected 0 or more")
    sequences = whole.sequence_ids
    context = [i for i, sequence in enumerate(sequences) if sequence == 1]
    dropped = set([i for i, sequence in enumerate(sequences) if sequence == 0][longest_question:])
    others = [i for i, sequence in enumerate(sequences) if sequence != 1 and i not in dropped]
    room = longest - len(others)
    if room < 1:
        raise ValueError(f"question-answering: max_seq_len {longest} leaves no room for the context beside a question "
                         f"and special tokens of {len(others)}; raise it or lower max_question_len")
    if stride is None:
        stride = min(longest // 2, 128, room * 3 // 4)  # a quarter of a window is new, at least
    if not 0 <= stride < room:
        raise ValueError(f"question-answering: doc_stride is {stride}, expected less than the {room} tokens that "
                         f"max_seq_len {longest} leaves for the context")
    windows, columns = [], (whole.ids, whole.type_ids, sequences, whole.offsets)
    for begin in range(0, max(len(context) - stride, 1), room - stride):
        places = sorted(others + context[begin:begin + room])
        windows.append(_Window(whole, places, *([values[i] for i in places] for values in columns)))
    return windows


def _examples(question, context):
    if not is_list(question):
        return {"question": question, "context": context}
    questions = listed(question)
    contexts = listed(context) if is_list(context) else [context] * len(questions)
    if len(contexts) != len(questions):
        raise ValueError(f"question-answering: {len(questions)} questions and {len(contexts)} contexts; give one text "
                         "for all questions, or a list of as many")
    return [{"question": one, "context": other} for one, other in zip(questions, contexts)]


def _probabilities(window, start, end):
    """Of each token to be the first and the last, and of there being no answer, which [CLS] stands for."""
    allowed = np.array([sequence == 1 for sequence in window.sequences])
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
        if {window.sequences[first], window.sequences[last]} <= {1} or first == last == 0:
            yield int(first), int(last), float(scores[first, last])


def _characters(window, first, last, whole_words):
    if whole_words:
        words = [window.whole.token_to_word(window.places[token]) for token in (first, last)]
        if None not in words:
            return window.whole.word_to_chars(words[0], 1)[0], window.whole.word_to_chars(words[1], 1)[1]
    return window.offsets[first][0], window.offsets[last][1]
