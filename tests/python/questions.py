# SPDX-License-Identifier: Apache-2.0
"""Questions with their texts as token ids, and the answers in logits.

Plain on purpose: both runtimes get the same ids, so this needs to be a tokenizer, not the tokenizer.
"""
import json
import re

import numpy as np


class Vocabulary:
    def __init__(self, path):
        words = path.read_text(encoding="utf-8").splitlines()
        self._ids = {word: i for i, word in enumerate(words)}
        self.cls, self.sep = self._ids["[CLS]"], self._ids["[SEP]"]

    def encode(self, text):
        ids = []
        for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", text.lower()):
            ids.extend(self._pieces(word))
        return ids

    def _pieces(self, word):
        ids, start = [], 0
        while start < len(word):
            prefix = "##" if start else ""
            end = next((e for e in range(len(word), start, -1) if prefix + word[start:e] in self._ids),
                       None)
            if end is None:
                return [self._ids["[UNK]"]]
            ids.append(self._ids[prefix + word[start:end]])
            start = end
        return ids


def load(path, count, vocabulary, max_length):
    """`count` questions spread evenly over a SQuAD file: (ids, first token of the text), shortest
    first, texts cut at `max_length` tokens."""
    data = json.loads(path.read_text(encoding="utf-8"))["data"]
    pairs = [(q["question"], p["context"]) for a in data for p in a["paragraphs"] for q in p["qas"]]
    examples = []
    for index in np.linspace(0, len(pairs) - 1, count).astype(int):
        question, context = (vocabulary.encode(text) for text in pairs[index])
        head = [vocabulary.cls, *question[:62], vocabulary.sep]
        examples.append((head + context[:max_length - len(head) - 1] + [vocabulary.sep], len(head)))
    return sorted(examples, key=lambda example: len(example[0]))


def batches(examples, size):
    """Padded inputs of `size` examples each, with the examples."""
    for first in range(0, len(examples), size):
        part = examples[first:first + size]
        shape = len(part), max(len(ids) for ids, _ in part)
        inputs = {name: np.zeros(shape, np.int64)
                  for name in ("input_ids", "attention_mask", "token_type_ids")}
        for row, (ids, text) in enumerate(part):
            inputs["input_ids"][row, :len(ids)] = ids
            inputs["attention_mask"][row, :len(ids)] = 1
            inputs["token_type_ids"][row, text:len(ids)] = 1
        yield inputs, part


def answers(outputs, part):
    """The best span of at most 30 tokens in the text of each example."""
    spans = []
    for row, (ids, text) in enumerate(part):
        real = slice(text, len(ids) - 1)
        total = outputs["start_logits"][row, real, None] + outputs["end_logits"][row, None, real]
        allowed = np.triu(np.ones_like(total)) - np.triu(np.ones_like(total), 30)
        total = np.where(allowed > 0, total, -np.inf)
        spans.append(divmod(int(total.argmax()), total.shape[1]))
    return spans


def scores(outputs, part, spans):
    """Start and end logit of a span in the text of each example, summed."""
    return np.array([outputs["start_logits"][row, text + first] + outputs["end_logits"][row, text + last]
                     for row, ((_, text), (first, last)) in enumerate(zip(part, spans))])
