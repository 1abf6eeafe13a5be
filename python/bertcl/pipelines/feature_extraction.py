# SPDX-License-Identifier: Apache-2.0
"""Vectors of texts."""
from .base import Pipeline


class FeatureExtraction(Pipeline):
    """A text: its vectors as nested lists [1][tokens][width], or [1][width] of a model that gives one for a text.
    A list of texts: a list of these. return_tensors: arrays in place of lists."""

    def __call__(self, texts, return_tensors=False):
        one = isinstance(texts, str)
        name = self.output("last_hidden_state")
        results = [rows[None] if return_tensors else rows[None].tolist()
                   for rows, in self.rows(self.encode([texts] if one else list(texts)), name)]
        return results[0] if one else results
