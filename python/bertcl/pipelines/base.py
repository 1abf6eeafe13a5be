# SPDX-License-Identifier: Apache-2.0
"""What the pipelines share: model, tokenizer and labels of a folder, and batches without padding."""
import functools
import inspect
import numbers
import re
import threading
from collections.abc import Iterable, Mapping

import numpy as np

from .. import _bertcl
from ..files import checked_tokens, load_tokenizer, model_file, naming_surrogates
from ..session import Session
from ..transformers_options import SESSION, own_options


class TextModel:
    """A model with tokenizer and settings. batch_tokens: tokens of a batch at most. Texts longer than the model takes
    are truncated."""

    def __init__(self, model, *, batch_tokens=4096, **session):
        self.model = model_file(model)
        self.session = Session(self.model, **session)
        self.settings = _bertcl.model_settings(self.session._session)
        self.classes = self.settings["classes"]
        self.tokenizer = load_tokenizer(self.model, self.settings["vocabulary"], self.session.info.vocab_size)
        self.padding = self.tokenizer.padding or {}
        self.tokenizer.no_padding()
        self.batch_tokens = batch_tokens
        left = self.settings["truncates_left"]
        side = (self.tokenizer.truncation or {}).get("direction", "right")
        self.truncation_side = side if left is None else "left" if left else "right"
        self.max_length = self.settings["max_length"] or 512
        self._lock = threading.Lock()  # the tokenizer's truncation is a state of it

    def encodings(self, inputs, strategy="longest_first", max_length=None):
        """Encodings of texts, or of pairs of them; strategy: the text of a pair that is truncated; max_length: tokens
        of each at most, within what the model takes."""
        return self._checked(self._encode(inputs, strategy, max_length))

    def encode_windows(self, texts, stride, max_length=None):
        """For each text its encodings, which overlap by `stride` tokens. ValueError: these are a whole window."""
        longest = min(max_length or self.max_length, self.max_length)
        room = longest - self.tokenizer.num_special_tokens_to_add(False)
        if not 0 <= stride < room:
            raise ValueError(f"stride is {stride}, expected less than the {room} tokens of the text in a window of "
                             f"{longest}")
        return [self._checked([each, *each.overflowing])
                for each in self._encode(texts, "longest_first", max_length, stride)]

    def _checked(self, encodings):
        return checked_tokens(encodings, self.tokenizer, self.session.info.vocab_size)

    def _encode(self, inputs, strategy, max_length, stride=0):
        pairs = any(isinstance(each, tuple) for each in inputs)
        with self._lock:
            truncate(self.tokenizer, min(max_length or self.max_length, self.max_length), self.truncation_side, pairs,
                     strategy, stride)
            with naming_surrogates(inputs):
                return self.tokenizer.encode_batch(inputs)

    def encode_whole(self, pair):
        """The encoding of a pair of texts, of any length."""
        with self._lock, naming_surrogates([pair]):
            self.tokenizer.no_truncation()
            encoding = self.tokenizer.encode(*pair)
        return self._checked([encoding])[0]

    def rows(self, encodings, *names):
        """For each encoding a tuple of its part of the outputs `names`: [tokens, ...], or [...] of an output that
        has one row for a text. With [CLS] and [SEP] there are more tokens than texts. ValueError: a text has no tokens,
        and an output one row for a text."""
        filled = self._filled_rows([each for each in encodings if each.ids], names)
        for i, encoding in enumerate(encodings):
            yield next(filled) if encoding.ids else tuple(self._no_rows(name, i) for name in names)

    def _filled_rows(self, encodings, names):
        for part in batches([len(each.ids) for each in encodings], self.batch_tokens):
            batch = encodings[part]
            outputs = self.run([each.ids for each in batch], [self.type_ids(each) for each in batch], names)
            begins = np.cumsum([0] + [len(each.ids) for each in batch])
            by_token = [self._is_by_token(name) if begins[-1] == len(batch) else output.shape[0] == begins[-1]
                        for name, output in zip(names, outputs, strict=True)]
            for i in range(len(batch)):
                yield tuple(output[begins[i]:begins[i + 1]] if packed else output[i]
                            for output, packed in zip(outputs, by_token, strict=True))

    def run(self, ids, type_ids, names):
        """session.run_sequences(), with float32 in place of smaller floats."""
        types = {port.name: port.type for port in self.session.get_outputs()}
        outputs = self.session.run_sequences(ids, type_ids, output_names=names)
        return [_in_float32(output, types[name]) for name, output in zip(names, outputs, strict=True)]

    def type_ids(self, encoding):
        """Its token types, or 0 where the tokenizer of transformers would give the model none."""
        return encoding.type_ids if self.settings["has_token_types"] else [0] * len(encoding.ids)

    def _shape(self, name):
        return next(port.shape for port in self.session.get_outputs() if port.name == name)

    def _is_by_token(self, name):
        return None in self._shape(name)[1:2]

    def _no_rows(self, name, text):
        if not self._is_by_token(name):
            raise ValueError(f"texts[{text}] has no tokens, and its tokenizer adds none: there is nothing to compute "
                             f"'{name}' from")
        return np.zeros((0, *self._shape(name)[2:]), np.float32)

    def output(self, *wanted):
        """The first of these outputs that the model has, else its first one."""
        known = [each.name for each in self.session.get_outputs()]
        return next((name for name in wanted if name in known), known[0])

    def head(self, task, *wanted, form, fits):
        """The name of output(*wanted), if fits(extents, task of the model) is true of it. ValueError: it is not of the
        `form` that the pipeline of `task` needs."""
        name = self.output(*wanted)
        ports = self.session.get_outputs()
        found = self.session.info.task
        if fits(next(port.shape for port in ports if port.name == name), found):
            return name
        outputs = ", ".join(f"{port.name} [{', '.join('?' if n is None else str(n) for n in port.shape)}]"
                            for port in ports)
        raise ValueError(f"{self.session.path}: {task} needs an output {form}; the model has {outputs}"
                         + (f", the head of {found}" if found else ""))

    def first_id(self, *names):
        ids = (self.tokenizer.token_to_id(name) for name in names)
        return next((known for known in ids if known is not None), None)

    @functools.cached_property
    def pad_id(self):
        """That of the tokenizer, as the command finds it (text/pad_token_id.hpp); -1: there is none."""
        ids = (self.first_id(*self.settings["pad_names"]), self.padding.get("pad_id"), self.settings["pad_id"],
               self.first_id("[PAD]", "<pad>"))
        return next((known for known in ids if known is not None), -1)

    def label(self, index):
        return self.classes[index] if index < len(self.classes) else f"LABEL_{index}"

    def decode_tokens(self, tokens):
        decoder = self.tokenizer.decoder
        return decoder.decode(tokens) if decoder else " ".join(tokens)


class PromptedModel(TextModel):
    """A TextModel with texts that come before those of its calls."""

    def _set_prompts(self, own, prompts, default_name):
        self.prompts = {**own["prompts"], **(prompts or {})}
        self.default_prompt_name = default_name or own["default_prompt_name"] or None
        self._prompt(None, None)  # that it is known

    def _prompt(self, name, text):
        """`text`, else the prompt of that name, else the default one. ValueError: it is not known."""
        name = self.default_prompt_name if name is None else name
        if text is None and name is not None and name not in self.prompts:
            raise ValueError(f"unknown prompt '{name}' (" + (f"choose from {', '.join(sorted(self.prompts))})"
                                                             if self.prompts else "the model has none; give prompt)"))
        return text if text is not None else self.prompts.get(name, "")


class Pipeline(TextModel):
    """A TextModel for a task. Options of its calls may be given to it, too, as defaults of all calls."""
    pads_rows = False  # whether padding='max_length' of transformers would change results
    with_none = ()  # options of which None is a value; of others it is the default, as in transformers

    def __init__(self, model, **options):
        known = [each.name for each in self.call_options().parameters.values() if each.default is not each.empty]
        options = own_options(f"pipeline('{self.task()}')", self._as_here(options),
                              [*known, "batch_size", "batch_tokens", *SESSION], model, self.with_none)
        self.defaults = {name: options.pop(name) for name in known if name in options}
        check_batch_size(options.pop("batch_size", None))
        super().__init__(model, **options)

    def __call__(self, *inputs, batch_size=None, **options):
        """Results of an input, or a list of those of each. options: those of the class; max_length: tokens of a text,
        or of a pair, at most. batch_size, truncation=True and padding are taken for the sake of programs written for
        transformers: texts that are too long are truncated in any case, and results depend neither on batches nor on
        padding; batch_tokens limits batches."""
        check_batch_size(batch_size)
        takes = {**inspect.signature(self.results).parameters, **self.call_options().parameters}
        known = [name for name, each in takes.items() if each.kind is each.POSITIONAL_OR_KEYWORD or
                 each.kind is each.KEYWORD_ONLY]
        options = own_options(self.task(), self._as_here(options), known, with_none=self.with_none)
        given = {**inspect.signature(self.results).bind_partial(*inputs, **options).arguments, **options}
        defaults = {name: value for name, value in self.defaults.items() if name not in given}
        return self.nested(self.results(*inputs, **defaults, **options), given)

    def nested(self, results, given):
        """The results of a call with these arguments, in the lists in which transformers has them."""
        return results

    @classmethod
    def task(cls):
        return re.sub("(?<!^)(?=[A-Z])", "-", cls.__name__).lower()

    def call_options(self):
        return inspect.signature(self.results)

    def _as_here(self, options):
        """The options without those of transformers that change nothing. TypeError: one of them asks for what pipelines
        do not do."""
        options = dict(options)
        for name in ("tokenize_kwargs", "tokenizer_kwargs"):  # of feature-extraction, of fill-mask
            options.update(options.pop(name, None) or {})
        truncation, padding = options.pop("truncation", None), options.pop("padding", None)
        if truncation not in (None, True, "longest_first"):
            raise TypeError(f"truncation is {truncation!r}, but texts that are too long are always truncated, the "
                            "longer of a pair first; leave it out, and shorten what must stay whole")
        if padding not in (None, True, False, "longest", "do_not_pad") and (padding != "max_length" or self.pads_rows):
            raise TypeError(f"padding is {padding!r}, but texts run without padding; leave it out, and pad the results")
        longest = options.get("max_length")
        if longest is not None:
            if "max_length" not in self.call_options().parameters:
                raise TypeError("max_length is not an option of question-answering; max_seq_len is the tokens of a "
                                "window of question and context")
            if not isinstance(longest, numbers.Integral) or isinstance(longest, bool):
                raise TypeError(f"max_length is {longest!r}, expected an integer")
            if longest < 1:
                raise ValueError(f"max_length is {longest}, expected 1 or more")
        return options


def check_batch_size(size):
    if size is not None and size < 1:
        raise ValueError(f"batch_size is {size}, expected 1 or more")


def no_tensors(wanted):
    if wanted:
        raise ValueError("convert_to_tensor needs PyTorch, which bertcl does not use; give the result to "
                         "torch.as_tensor()")


def the_one(**named):
    """The one of these arguments, which are names of one thing, that is given; None without any."""
    given = {name: value for name, value in named.items() if value is not None}
    if len(given) > 1:
        raise TypeError(f"give only one of {' and '.join(given)}")
    return next(iter(given.values()), None)


def the_known(what, name, known):
    """Which of these names it is, in any case. ValueError: none."""
    found = name.lower() if isinstance(name, str) else name
    if found not in list(known):
        raise ValueError(f"unknown {what} '{name}' (choose from {', '.join(known)})")
    return found


def is_list(given):
    """Whether it is a list, a tuple, an array or a data set: not a text, of letters, nor a dictionary, of keys.
    TypeError: it is a DataFrame, whose items are the names of its columns."""
    if hasattr(given, "columns") and hasattr(given, "dtypes"):
        raise TypeError(f"a {type(given).__name__} is no list; give a column of it, or for pairs frame.values")
    return ((isinstance(given, Iterable) or (hasattr(given, "__len__") and hasattr(given, "__getitem__")))
            and not isinstance(given, (str, bytes, Mapping)))


def listed(given):
    """The items of what is_list(); data sets of torch need not be iterable, nor raise IndexError at their end."""
    return list(given) if isinstance(given, Iterable) else [given[i] for i in range(len(given))]


def unwrapped(results, given):
    """The result of a text, or of a list of one, as some pipelines of transformers have it; not of a data set of one."""
    return results[0] if len(results) == 1 and isinstance(given, (str, list, tuple)) else results


def texts_of(given):
    """Whether it is one text, and the list of texts. TypeError: it is neither a text nor a list of texts."""
    one = isinstance(given, str)
    if not one and not is_list(given):
        raise TypeError(f"the input is {given!r}, expected a text or a list of texts")
    texts = [given] if one else listed(given)
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"texts[{i}] is {text!r}, expected a text")
    return one, texts


def batches(lengths, tokens, most=None):
    """Slices of neighbours: `most` of them and `tokens` tokens at most."""
    begin = count = 0
    for i, length in enumerate(lengths):
        if i > begin and (i - begin == most or count + length > tokens):
            yield slice(begin, i)
            begin, count = i, 0
        count += length
    if begin < len(lengths):
        yield slice(begin, len(lengths))


def _in_float32(values, kind):
    if kind == "tensor(bfloat16)":  # in its bits
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32) if values.dtype == np.float16 else values


def softmax(logits):
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def sigmoid(logits):
    return np.exp(-np.logaddexp(0, -logits))  # no overflow


def truncate(tokenizer, length, side, pairs=False, strategy="longest_first", stride=0):
    """Truncates texts, or pairs of them, to `length` tokens at `side`; what is cut off is `overflowing`, in parts that
    begin with the last `stride` tokens of the one before. tokenizers leaves those whole of which it would
    have to drop special tokens. ValueError: `length` is less than these."""
    special = tokenizer.num_special_tokens_to_add(pairs)
    if length < special:
        raise ValueError(f"the maximum of {length} tokens is less than the {special} special ones of a "
                         f"{'pair' if pairs else 'text'}")
    tokenizer.enable_truncation(length, stride=stride, strategy=strategy, direction=side)
