# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts."""
from .base import Pipeline, texts_of


class FeatureExtraction(Pipeline):
    """A text: its vectors as nested lists [1][tokens][width], or [1][width] of a model that gives one for a text.
    A list of texts: a list of these. return_tensors: arrays in place of lists."""
    pads_rows = True

    def __init__(self, model, **options):
        super().__init__(model, **options)
        vectors = any(word in self.output("last_hidden_state") for word in ("hidden", "embed", "pool"))
        self.vectors = self.head("feature-extraction", "last_hidden_state", form="last_hidden_state [batch, seq, hidden]",
                                 fits=lambda shape, task: vectors or task in ("", "feature-extraction"))

    def results(self, texts, return_tensors=False, max_length=None):
        one, texts = texts_of(texts)
        results = [rows[None] if return_tensors else rows[None].tolist()
                   for rows, in self.rows(self.encodings(texts, max_length=max_length), self.vectors)]
        return results[0] if one else results
