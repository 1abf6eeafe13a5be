# SPDX-License-Identifier: Apache-2.0
"""Training data: questions (.json in SQuAD format), labelled texts (.tsv, .jsonl), as token windows.

.tsv: a text, or two, and the label, separated by tabs; a first line whose last column is "label" is
the header. .jsonl: objects with "text" or "sentence" (or "sentence1" and "sentence2"), and "label".
"""
import dataclasses
import json
import pathlib

import squad_data


@dataclasses.dataclass
class Example:
    ids: list
    types: list
    labels: tuple  # the class


def add_options(parser, several=False):
    """`several`: options.data is a list of files."""
    parser.add_argument("--data", required=True, nargs="+" if several else None, metavar="FILE",
                        help="SQuAD .json, or .tsv or .jsonl with texts and labels" + "; may be several" * several)
    parser.add_argument("--vocab", help="vocab.txt; default: beside the model")
    parser.add_argument("--cased", action="store_true", help="keep upper case; default: as tokenizer_config.json beside the vocabulary says")
    parser.add_argument("--limit", type=int, help="only the first questions or texts of a file")
    parser.add_argument("--max-length", type=int, default=384, help="tokens of a window")
    parser.add_argument("--stride", type=int, default=128, help="step between windows of a context")


def vocabulary_of(options, folder):
    path = pathlib.Path(options.vocab) if options.vocab else folder / "vocab.txt"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; name the vocabulary with --vocab")
    return path


def _config_of(vocabulary):
    """The tokenizer_config.json beside a vocabulary."""
    path = vocabulary.with_name("tokenizer_config.json")
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def lower_cases(vocabulary):
    """What the tokenizer_config.json beside a vocabulary says, as bertcl reads it."""
    return _config_of(vocabulary).get("do_lower_case", True)


def keeps_case(options, folder):
    return options.cased or not lower_cases(vocabulary_of(options, folder))


def tokenizer_of(options, folder):
    vocabulary = vocabulary_of(options, folder)
    config = _config_of(vocabulary)
    return squad_data.load_tokenizer(vocabulary, keeps_case(options, folder), config.get("strip_accents"),
                                     config.get("tokenize_chinese_chars", True))


def load(options, folder):
    """Windows or examples of the files options.data, of one kind; the vocabulary is in `folder` unless named."""
    tokenizer = tokenizer_of(options, folder)
    kinds = {pathlib.Path(path).suffix == ".json" for path in options.data}
    if len(kinds) > 1:
        raise ValueError("--data: questions (.json) and texts (.tsv, .jsonl) cannot be mixed")
    if kinds == {True}:
        questions = [q for path in options.data for q in squad_data.load_questions(path, options.limit)]
        return squad_data.make_windows(questions, tokenizer, options.max_length, options.stride)
    names = _in_order({name for path in options.data for name in load_texts(path, options.limit)[1]})
    rows = [row for path in options.data for row in load_texts(path, options.limit, names)[0]]
    return encode_texts(rows, tokenizer, options.max_length)


def _in_order(names):
    return sorted(names, key=lambda s: (len(s), s))


def load_texts(path, limit=None, names=None):
    """[(texts, class)] and the sorted names of the classes. `names` fixes the classes."""
    rows = _read_jsonl(path) if pathlib.Path(path).suffix == ".jsonl" else _read_tsv(path)
    rows = rows[:limit]
    if not rows:
        raise ValueError(f"{path}: no texts")
    names = names or _in_order({label for _, label in rows})
    unknown = {label for _, label in rows} - set(names)
    if unknown:
        raise ValueError(f"{path}: the label {sorted(unknown)[0]!r} is unknown (choose from {', '.join(names)})")
    return [(texts, names.index(label)) for texts, label in rows], names


def _read_tsv(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            columns = line.rstrip("\r\n").split("\t")
            if not line.strip() or (number == 1 and columns[-1].strip() == "label"):
                continue
            if len(columns) not in (2, 3):
                raise ValueError(f"{path}:{number}: {len(columns)} columns; expected a text, or two, "
                                 "and the label")
            rows.append((columns[:-1], columns[-1].strip()))
    return rows


def _read_jsonl(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                keys = next(keys for keys in (["sentence1", "sentence2"], ["sentence"], ["text"])
                            if all(key in row for key in keys))
                rows.append(([row[key] for key in keys], str(row["label"])))
            except (ValueError, KeyError, TypeError, StopIteration) as error:
                raise ValueError(f'{path}:{number}: expected an object with "text" and "label"') from error
    return rows


def encode_texts(rows, tokenizer, max_length):
    """[CLS] text [SEP], or [CLS] text [SEP] text [SEP], cut at `max_length` tokens."""
    tokenizer.enable_truncation(max_length)
    encodings = tokenizer.encode_batch([tuple(t) if len(t) == 2 else t[0] for t, _ in rows])
    tokenizer.no_truncation()
    return [Example(e.ids, e.type_ids, (label,)) for e, (_, label) in zip(encodings, rows)]
