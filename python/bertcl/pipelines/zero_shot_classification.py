# SPDX-License-Identifier: Apache-2.0
"""Classes that are named by the caller, scored by a model of natural language inference."""
import numpy as np

from .base import Pipeline, is_list, listed, softmax, texts_of


class ZeroShotClassification(Pipeline):
    """A text: {"sequence", "labels", "scores"}, the best label first; a list of texts: a list of results.
    candidate_labels: a list, or a text with commas between them; hypothesis_template: a sentence with {} for a label;
    multi_label: each score is that of entailment against contradiction, instead of 1 together. ValueError: the model
    has no class whose name begins with "entail"."""

    def __init__(self, model, **options):
        super().__init__(model, **options)
        self.logits = self.head("zero-shot-classification", "logits", form="[batch, classes]",
                                fits=lambda shape, task: len(shape) == 2 and task in ("", "text-classification"))
        entail = [i for i, name in enumerate(self.classes) if name.lower().startswith("entail")]
        if not entail:
            raise ValueError(f"{self.session.path}: zero-shot-classification needs a class 'entailment'; the model has "
                             f"{', '.join(self.classes) or 'none with a name'}")
        self.entailment = entail[0]
        self.contradiction = -1 if self.entailment == 0 else 0

    def results(self, sequences, candidate_labels=(), hypothesis_template="This example is {}.", multi_label=False,
                max_length=None):
        one, texts = texts_of(sequences)
        labels = candidate_labels
        if isinstance(labels, str):
            labels = [label.strip() for label in labels.split(",") if label.strip()]
        if not is_list(labels):
            raise TypeError(f"candidate_labels is {labels!r}, expected the names of classes")
        labels = listed(labels)
        if not labels:
            raise ValueError("candidate_labels is empty, expected the names of classes")
        try:
            hypotheses = [hypothesis_template.format(label) for label in labels]
        except (IndexError, KeyError):
            hypotheses = [hypothesis_template]
        if hypotheses[0] == hypothesis_template:
            raise ValueError(f"hypothesis_template is '{hypothesis_template}', expected a sentence with {{}} for a "
                             "label")
        longest = min(max_length or self.max_length, self.max_length)
        self._check_lengths(labels, hypotheses, longest)
        encodings = self.encodings([(text, each) for text in texts for each in hypotheses], "only_first", longest)
        logits = np.array([row for row, in self.rows(encodings, self.logits)], np.float32)
        results = [self._result(text, labels, scores, multi_label)
                   for text, scores in zip(texts, np.split(logits, len(texts)) if texts else ())]
        return results[0] if one else results

    def _check_lengths(self, labels, hypotheses, longest):
        """A hypothesis stays whole; ValueError where it leaves a text no room."""
        for label, hypothesis in zip(labels, hypotheses):
            tokens = len(self.encode_whole(("", hypothesis)).ids)
            if tokens > longest:
                what = "the model takes at most" if longest == self.max_length else "max_length is"
                raise ValueError(f"the hypothesis for '{label}' has {tokens} tokens with the special ones, {what} "
                                 f"{longest}")

    def _result(self, text, labels, logits, multi_label):
        if multi_label or len(labels) == 1:
            scores = softmax(logits[:, [self.contradiction, self.entailment]])[:, 1]
        else:
            scores = softmax(logits[:, self.entailment])
        order = np.argsort(-scores, kind="stable")
        return {"sequence": text, "labels": [labels[i] for i in order], "scores": [float(scores[i]) for i in order]}
