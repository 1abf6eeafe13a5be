# SPDX-License-Identifier: Apache-2.0
"""The files of a model: its graph, and what lies beside it."""
import contextlib
import pathlib

import tokenizers

from ._bertcl import Error, Tokenizer

EXPORT = "bertcl does not download: optimum-cli export onnx --model {} FOLDER writes a folder that it reads"


def model_file(path):
    """The graph: `path`, or of that folder model.onnx, onnx/model.onnx, or the one .onnx file of both folders. Error:
    it is neither there nor named as a file of ONNX."""
    path = pathlib.Path(path)
    if not path.is_dir():
        if path.suffix != ".onnx" and not path.exists():
            error = Error(f"{path}: no such file or folder; {EXPORT.format(path)}")
            error.code = "io"
            raise error
        return path
    for name in ("model.onnx", "onnx/model.onnx"):
        if (path / name).exists():
            return path / name
    others = sorted([*path.glob("*.onnx"), *path.glob("onnx/*.onnx")])
    if len(others) == 1:
        return others[0]
    raise FileNotFoundError(f"{path}: neither model.onnx nor onnx/model.onnx is there; " +
                            (f"name one of {', '.join(map(str, others))}" if others else EXPORT.format(path)))


def load_tokenizer(model, vocabulary, rows):
    """That of a vocabulary; "": there is none beside the model. rows: of the model's word table, 0 where not known.
    Raises bertcl.Error: its own vocabulary has more tokens than that; those that were added to it may."""
    if not vocabulary:
        raise FileNotFoundError(f"{model.parent}: no vocabulary is beside the model (tokenizer.json, vocab.txt, vocab.json "
                                "with merges.txt, or sentencepiece.bpe.model); copy the one of the model there")
    document = Tokenizer.json_of(vocabulary)
    try:
        tokenizer = tokenizers.Tokenizer.from_buffer(document)
    except ValueError as error:
        raise Error(f"{vocabulary}: {error}; save it again with tokenizers or transformers") from None
    own = tokenizer.get_vocab_size(with_added_tokens=False)
    if 0 < rows < own:
        raise Error(f"{model}: the tokenizer {vocabulary} has {own:,} tokens, the model's embedding "
                    f"table {rows:,} rows; put the tokenizer that belongs to this model beside it")
    return tokenizer


def checked_tokens(encodings, tokenizer, rows):
    """The encodings. Raises bertcl.Error: one has a token that was added beyond the `rows` of the word table."""
    if 0 < rows < tokenizer.get_vocab_size():
        for encoding in encodings:
            for token, name in zip(encoding.ids, encoding.tokens):
                if token >= rows:
                    raise Error(f"a text holds {name!r}, which the tokenizer has as token {token:,}, but the model's "
                                f"embedding table has {rows:,} rows; remove it from the text")
    return encodings


@contextlib.contextmanager
def naming_surrogates(texts):
    """Around the encoding of texts, or pairs of them: a ValueError that names a lone surrogate, which UTF-8 cannot
    hold, in place of a TypeError."""
    try:
        yield
    except TypeError:
        for text in texts:
            for part in text if isinstance(text, tuple) else (text,):
                try:
                    part.encode()
                except UnicodeEncodeError as error:
                    raise ValueError(f"a text has the lone surrogate {part[error.start]!r} at character {error.start}, "
                                     "which no valid text has; replace it: "
                                     "text.encode(errors='replace').decode()") from None
        raise
