# SPDX-License-Identifier: Apache-2.0
"""The files of a model: its graph, and what lies beside it."""
import contextlib
import json
import pathlib
import stat

import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

from ._bertcl import Error

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# Classes of tokenizers that read vocab.txt as BERT's does, and names that say nothing.
BERTS = ("Bert", "ConvBert", "DPRContextEncoder", "DPRQuestionEncoder", "DistilBert", "Electra", "LayoutLM", "Lxmert",
         "MobileBert", "RetriBert", "SqueezeBert", "", "PreTrained", "TokenizersBackend")

EXPORT = "bertcl does not download: optimum-cli export onnx --model {} FOLDER writes a folder that it reads"

# Architectures whose first positions are those of padding.
PADDED_POSITIONS = ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "data2vec-text",
                    "roberta-prelayernorm", "xmod")


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


def companion(model, *names):
    """The first of these files that is beside the graph or, of FOLDER/onnx/model.onnx (as on the Hugging Face hub), in FOLDER;
    None where there is none. OSError or Error: it cannot be looked at, or is a pipe or a device."""
    folder = model.absolute().parent
    folders = [folder, folder.parent] if folder.name == "onnx" else [folder]
    return next((each / name for name in names for each in folders if _is_present(each / name)), None)


def _is_present(path):
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        error = Error(f"{path}: not a regular file")
        error.code = "io"
        raise error
    return True


def read_json(model, name):
    """The companion of that name; {} where there is none."""
    found = companion(model, name)
    return json.loads(found.read_text(encoding="utf-8")) if found else {}


def declared_length(model, config):
    """Tokens of the longest text, as tokenizer_config.json or config.json says; None where they do not."""
    length = read_json(model, "tokenizer_config.json").get("model_max_length")
    limits = [int(length)] if length and 0 < length < 1e6 else []  # transformers writes 1e30 for none
    positions = config.get("max_position_embeddings") or 0
    if config.get("model_type") in PADDED_POSITIONS:
        padding = config.get("pad_token_id")
        positions -= (1 if padding is None else padding) + 1
    if positions > 0:
        limits.append(positions)
    return min(limits, default=None)


def longest_text(session, model, config):
    """Tokens of the longest text that the model takes, by its graph and by what lies beside it; None: nothing tells."""
    limits = session.info.max_length, declared_length(model, config)
    return min((limit for limit in limits if limit), default=None)


def truncation_side(model, tokenizer):
    """The side where texts that are too long are cut, "right" or "left"."""
    side = read_json(model, "tokenizer_config.json").get("truncation_side")
    side = side or (tokenizer.truncation or {}).get("direction", "right")
    if side not in ("right", "left"):
        raise ValueError(f"{companion(model, 'tokenizer_config.json')}: truncation_side is {side!r}, expected 'right' or "
                         "'left'")
    return side


def token_names(model, key):
    """What tokenizer_config.json, special_tokens_map.json and config.json call `key`, for instance mask_token."""
    for file in ("tokenizer_config.json", "special_tokens_map.json", "config.json"):
        settings = read_json(model, file)
        token = settings.get(key) if isinstance(settings, dict) else None
        name = token.get("content") if isinstance(token, dict) else token
        if isinstance(name, str):
            yield name


def load_tokenizer(model, rows):
    """That of tokenizer.json, else BERT's with vocab.txt, without padding. rows: of the model's word table, 0 where not
    known. Raises bertcl.Error: its own vocabulary has more tokens than that; those that were added to it may."""
    file = companion(model, "tokenizer.json", "vocab.txt")
    if not file:
        raise FileNotFoundError(f"{model.parent}: neither tokenizer.json nor vocab.txt is beside the model")
    if file.name == "vocab.txt":
        tokenizer = _bert_tokenizer(file, read_json(model, "tokenizer_config.json"))
    else:
        with _valid_name(file) as name:
            tokenizer = tokenizers.Tokenizer.from_file(name)
    tokenizer.no_padding()
    own = tokenizer.get_vocab_size(with_added_tokens=False)
    if 0 < rows < own:
        raise Error(f"{model}: the tokenizer {file} has {own:,} tokens, the model's embedding "
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


@contextlib.contextmanager
def _valid_name(file):
    """Its name; where that is not valid Unicode, which the tokenizers need, another one."""
    try:
        str(file).encode()
    except UnicodeEncodeError:
        with file.open("rb") as opened:
            yield f"/dev/fd/{opened.fileno()}"
    else:
        yield str(file)


def _bert_tokenizer(vocabulary, settings):
    kind = settings.get("tokenizer_class") or ""
    if kind.removesuffix("Fast").removesuffix("Tokenizer") not in BERTS:
        raise Error(f"{vocabulary} is a vocabulary of {kind}, not of BERT; save the "
                    "tokenizer as tokenizer.json by transformers: "
                    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)")
    known = set(vocabulary.read_text(encoding="utf-8").splitlines())
    missing = [token for token in ("[UNK]", "[CLS]", "[SEP]") if token not in known]
    if missing:
        raise Error(f"{vocabulary} lacks {', '.join(missing)}: it is not BERT's; put a tokenizer.json beside the model")
    with _valid_name(vocabulary) as name:
        tokenizer = tokenizers.Tokenizer(models.WordPiece.from_file(name, unk_token="[UNK]"))
    tokenizer.add_special_tokens([token for token in SPECIAL if tokenizer.token_to_id(token) is not None])
    tokenizer.normalizer = normalizers.BertNormalizer(
        lowercase=settings.get("do_lower_case", True), strip_accents=settings.get("strip_accents"),
        handle_chinese_chars=settings.get("tokenize_chinese_chars", True))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(
        ("[SEP]", tokenizer.token_to_id("[SEP]")), ("[CLS]", tokenizer.token_to_id("[CLS]")))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer
