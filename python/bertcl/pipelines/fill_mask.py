# SPDX-License-Identifier: Apache-2.0
"""The words that may stand for [MASK]."""
import warnings

import numpy as np
from tokenizers import models

from .base import Pipeline, is_list, listed, softmax, texts_of, unwrapped

# transformers' clean_up_tokenization().
CLEAN_UP = [(f" {end}", end) for end in ".?!,"] + [(" ' ", "'")] + [
    (f" {end}", end) for end in ("n't", "'m", "'s", "'ve", "'re")]


class FillMask(Pipeline):
    """A text with one mask token: a list of {"score", "token", "token_str", "sequence"}, the likeliest first; with
    several: a list of such lists. A list of texts: a list of results. targets: only these tokens, or the
    first pieces of those that the vocabulary lacks."""

    def __init__(self, model, **options):
        super().__init__(model, **options)
        words = self.tokenizer.get_vocab_size()
        self.logits = self.head("fill-mask", "logits", form=f"[batch, seq, vocabulary], of {words} tokens",
                                fits=lambda shape, task: len(shape) == 3 and (shape[2] is None or shape[2] >= words))
        self.mask_names = list(dict.fromkeys((*self.settings["mask_names"], "[MASK]", "<mask>")))
        self.mask_id = self.first_id(*self.mask_names)
        # transformers ignores it for BPE.
        self.cleans_up = self.settings["cleans_up"] and not isinstance(self.tokenizer.model, models.BPE)

    def results(self, texts, top_k=5, targets=None, max_length=None):
        given, (_, texts) = texts, texts_of(texts)
        encodings = self.encodings(texts, max_length=max_length)
        mask = self._known_mask_id()
        for encoding, text in zip(encodings, texts):
            if mask not in encoding.ids:
                raise ValueError(f"fill-mask: no {self.tokenizer.id_to_token(mask)} in '{text}'")
        if isinstance(targets, str):
            targets = [targets]
        if targets is not None and not is_list(targets):
            raise TypeError(f"targets is {targets!r}, expected a token or a list of tokens")
        chosen = None if targets is None else self._ids(listed(targets))
        results = [self._result(np.array(encoding.ids), logits, mask, top_k, chosen) for encoding, (logits,) in
                   zip(encodings, self.rows(encodings, self.logits))]
        return unwrapped(results, given)

    def _result(self, ids, logits, mask, top_k, chosen):
        places = np.flatnonzero(ids == mask)
        return_one = len(places) == 1
        lists = []
        for place in places:
            scores = softmax(logits[place])
            known = np.arange(len(scores)) if chosen is None else chosen
            best = known[np.argsort(-scores[known], kind="stable")[:top_k]]
            lists.append([self._candidate(ids, place, token, scores[token], return_one) for token in best])
        return lists[0] if return_one else lists

    def _candidate(self, ids, place, token, score, skip_special):
        filled = ids.copy()
        filled[place] = token
        filled = filled[filled != self.pad_id]
        return {"score": float(score), "token": int(token),
                "token_str": self._text([int(token)], False), "sequence": self._text(filled.tolist(), skip_special)}

    def _text(self, ids, skip_special):
        text = self.tokenizer.decode(ids, skip_special_tokens=skip_special)
        for spaced, tight in CLEAN_UP if self.cleans_up else ():
            text = text.replace(spaced, tight)
        return text

    def _known_mask_id(self):
        if self.mask_id is None:
            names = ", ".join(f'"{name}"' for name in self.mask_names)
            raise ValueError(f"fill-mask: the tokenizer has no mask token: none of {names} is in its vocabulary; name "
                             "it as mask_token in tokenizer_config.json, special_tokens_map.json or config.json")
        return self.mask_id

    def _ids(self, targets):
        if not targets:
            raise ValueError("fill-mask: 'targets' is empty, expected at least one token")
        ids = [each for target in targets if (each := self._id(target)) is not None]
        if not ids:
            raise ValueError("fill-mask: 'targets' are not tokens, expected at least one token")
        return np.unique(ids)

    def _id(self, target):
        """That of the target, else of its first piece, with a warning as in transformers; None: it has none."""
        if not isinstance(target, str):
            raise TypeError(f"fill-mask: a target is {target!r}, expected a text")
        if (known := self.tokenizer.token_to_id(target)) is not None:
            return known
        with self._lock:
            self.tokenizer.no_truncation()
            pieces = self.tokenizer.encode(target, add_special_tokens=False)
        instead = f"its first piece '{pieces.tokens[0]}' is taken" if pieces.ids else "it is ignored"
        warnings.warn(f"fill-mask: the target '{target}' is not in the vocabulary; {instead}", stacklevel=2)
        return pieces.ids[0] if pieces.ids else None
