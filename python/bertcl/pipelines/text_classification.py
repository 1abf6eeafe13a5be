# SPDX-License-Identifier: Apache-2.0
"""A class, or a score, of a text or of a pair of texts."""
import numpy as np

from .base import Pipeline, is_list, listed, sigmoid, softmax, the_known

FORM = 'a text, {"text": a, "text_pair": b}, or a list of these'
FUNCTIONS = {"softmax": softmax, "sigmoid": sigmoid, "none": lambda x: x}


class TextClassification(Pipeline):
    """{"text": a, "text_pair": b}: {"label", "score"}; a list of inputs: a list of results. A text: a list of its
    result, unless top_k is given to the call.
    top_k: the best K of each input, or all with None, as a list; function_to_apply: "softmax", "sigmoid" or
    "none", by default as config.json says (problem_type), else softmax, or sigmoid of a single output."""

    with_none = ("top_k",)

    def __init__(self, model, **options):
        super().__init__(model, **options)
        self.logits = self.head("text-classification", "logits", form="[batch, classes]",
                                fits=lambda shape, task: len(shape) <= 2 and task in ("", "text-classification"))

    def results(self, inputs, top_k="one", function_to_apply=None, max_length=None):
        one = isinstance(inputs, (str, dict))
        if not one and not is_list(inputs):
            raise TypeError(f"the input is {inputs!r}, expected {FORM}")
        texts = [_pair(each) for each in ([inputs] if one else listed(inputs))]
        results = [self._result(logits, top_k, function_to_apply)
                   for logits, in self.rows(self.encodings(texts, max_length=max_length), self.logits)]
        return results[0] if one else results

    def nested(self, results, given):
        return [results] if isinstance(given["inputs"], str) and "top_k" not in given else results

    def _result(self, logits, top_k, function):
        scores = self._function(function, logits.size)(logits.reshape(-1).astype(np.float32))
        order = np.argsort(-scores, kind="stable")
        ranked = [{"label": self.label(i), "score": float(scores[i])} for i in order]
        return ranked[0] if top_k == "one" else ranked[:top_k]

    def _function(self, name, labels):
        if name is None:
            sigmoid_fits = self.settings["multi_label"] or labels == 1
            name = "none" if self.settings["is_regression"] else "sigmoid" if sigmoid_fits else "softmax"
        return FUNCTIONS[the_known("function", name, FUNCTIONS)]


def _pair(given):
    if isinstance(given, dict):
        if given.get("text") is None:
            raise ValueError(f"text-classification: 'text' is missing in {given!r}")
        pair = given["text"], given.get("text_pair")
        given = pair[0] if pair[1] in (None, "") else pair  # as the tokenizers of transformers
    for text in given if isinstance(given, (tuple, list)) and len(given) == 2 else (given,):
        if not isinstance(text, str):
            raise TypeError(f"text-classification: an input is {text!r}, expected {FORM}")
    return given if isinstance(given, str) else tuple(given)
