# SPDX-License-Identifier: Apache-2.0
"""Training data: questions (.json in SQuAD format), labelled texts (.tsv, .csv, .jsonl), texts (.txt), as windows of
tokens.

.tsv, .csv: a text and its label, or columns by the names of a first line that has "label": "text" ("sentence",
"sentence1"), and "text_pair" ("sentence2") for two texts. .jsonl: objects with members of these names.
.txt: a text on each line, which has no label.
"""
import argparse
import csv
import dataclasses
import json
import pathlib

import class_labels
import squad_data

FIRST, SECOND = ("text", "sentence", "sentence1"), ("text_pair", "sentence2")


@dataclasses.dataclass
class Example:
    ids: list
    types: list
    labels: tuple  # the class, if it has one


def add_options(parser, several=False):
    """`several`: options.data is a list of files."""
    parser.add_argument("--data", required=True, nargs="+" if several else None, metavar="FILE",
                        help="SQuAD .json, or .tsv, .csv or .jsonl with texts and labels"
                        + ", or .txt with texts; may be several" * several)
    parser.add_argument("--vocab", help="tokenizer.json or vocab.txt; default: beside the model")
    parser.add_argument("--cased", action="store_true", help="keep upper case; default: as tokenizer_config.json "
                        "beside the vocabulary says")
    parser.add_argument("--limit", type=positive, help="only the first questions or texts of a file")
    parser.add_argument("--max-length", type=positive, default=384, help="tokens of a window")
    parser.add_argument("--stride", type=positive, default=128, help="step between windows of a context")


def positive(text):
    """A type of argparse."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not an integer of at least 1")
    return int(text)


def vocabulary_of(options, folder):
    """A tokenizer.json, or the vocab.txt of a model that has none."""
    path = pathlib.Path(options.vocab) if options.vocab else folder / "tokenizer.json"
    if not options.vocab and not path.is_file():
        path = folder / "vocab.txt"
    if not path.is_file():
        raise ValueError(f"{path}: no such file; name a vocab.txt or tokenizer.json with --vocab")
    if path.suffix == ".json" and options.cased:
        raise ValueError(f"--cased goes with a vocab.txt; {path} says itself what becomes of case")
    return path


def padding_of(folder):
    """The id of the token of padding, as the config.json of a model says. Encoders that find the last token of a text
    by it need it."""
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return config.get("pad_token_id") or 0


def files_of(options, folder):
    """What is read beside a model: the vocabulary and configurations."""
    vocabulary = vocabulary_of(options, folder)
    return [vocabulary, vocabulary.with_name("tokenizer_config.json"), folder / "config.json"]


def settings_beside(vocabulary):
    """What the tokenizer_config.json beside a vocabulary says of texts, with the defaults of Hugging Face's BERT."""
    path = vocabulary.with_name("tokenizer_config.json")
    config = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    defaults = {"do_lower_case": True, "strip_accents": None, "tokenize_chinese_chars": True}
    return {name: config.get(name, default) for name, default in defaults.items()}


def settings_of(options, folder):
    settings = settings_beside(vocabulary_of(options, folder))
    return {**settings, "do_lower_case": False} if options.cased else settings


def tokenizer_of(options, folder):
    settings = settings_of(options, folder)
    return squad_data.load_tokenizer(vocabulary_of(options, folder), not settings["do_lower_case"],
                                     settings["strip_accents"], settings["tokenize_chinese_chars"])


def load(options, folder, names=None):
    """Windows or examples of the files options.data, of one kind; the vocabulary is in `folder` unless named. `names`:
    of the model's classes, in the order of its output."""
    tokenizer = tokenizer_of(options, folder)
    suffixes = {pathlib.Path(path).suffix for path in options.data}
    if len(suffixes & {".json", ".txt"}) > 0 and len(suffixes) > 1:
        raise ValueError("--data: questions (.json), labelled texts (.tsv, .csv, .jsonl) and texts (.txt) cannot be "
                         "mixed")
    if suffixes == {".txt"}:
        lines = [line for path in options.data for line in _read_lines(path)[:options.limit]]
        return encode_texts([([line], None) for line in lines], tokenizer, options.max_length)
    if suffixes == {".json"}:
        questions = [q for path in options.data for q in squad_data.load_questions(path, options.limit)]
        return squad_data.make_windows(questions, tokenizer, options.max_length, options.stride)
    names = names or class_labels.in_order({name for path in options.data
                                            for name in load_texts(path, options.limit)[1]})
    rows = [row for path in options.data for row in load_texts(path, options.limit, names)[0]]
    return encode_texts(rows, tokenizer, options.max_length)


def load_texts(path, limit=None, names=None):
    """[(texts, class)] and the names of the classes: `names`, else the labels of the data, sorted."""
    rows = (_read_jsonl if pathlib.Path(path).suffix == ".jsonl" else _read_table)(path)[:limit]
    if not rows:
        raise ValueError(f"{path}: no texts")
    labels = {label for _, label in rows}
    names = names or class_labels.in_order(labels)
    try:
        classes = class_labels.match(labels, names)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return [(texts, classes[label]) for texts, label in rows], names


def _read_lines(path):
    lines = [line.strip() for line in pathlib.Path(path).read_text(encoding="utf-8-sig").splitlines()]
    if not any(lines):
        raise ValueError(f"{path}: no texts")
    return [line for line in lines if line]


def _columns_of(header, place):
    """Where the first and second text and the label stand, by names in any case; None: it is no header."""
    header = [name.lower() for name in header]
    if header[-1] == "label" and len(header) == 2:
        return 0, None, 1
    if "label" not in header or len(header) < 3 and header[-1] not in FIRST:
        return None
    first, second = (next((header.index(name) for name in names if name in header), None) for names in (FIRST, SECOND))
    if first is None:
        raise ValueError(f"{place}: no column {' or '.join(FIRST)} beside label")
    return first, second, header.index("label")


def _read_table(path):
    rows, columns, width = [], (0, None, 1), 2
    with open(path, encoding="utf-8-sig", newline="") as file:
        commas = pathlib.Path(path).suffix == ".csv"
        lines = csv.reader(file) if commas else (line.rstrip("\r\n").split("\t") for line in file)
        for number, line in enumerate(lines, 1):
            cells, place = [cell.strip() for cell in line], f"{path}:{number}"
            header = _columns_of(cells, place) if number == 1 and cells else None
            if header:
                columns, width = header, len(cells)
            elif any(cells):
                if len(cells) != width:
                    raise ValueError(f"{place}: {len(cells)} columns, expected {width}; a first line names others: "
                                     "text, text_pair, label")
                if not cells[columns[2]]:
                    raise ValueError(f"{place}: the label is empty")
                rows.append(([cells[at] for at in columns[:2] if at is not None], cells[columns[2]]))
    return rows


def _read_jsonl(path):
    rows = []
    with open(path, encoding="utf-8-sig") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                texts = [next((row[name] for name in names if row.get(name) is not None), None)
                         for names in (FIRST, SECOND)]
                label = row["label"]
            except (ValueError, KeyError, AttributeError, TypeError) as error:
                raise ValueError(f'{path}:{number}: expected an object with "text" and "label"') from error
            texts = texts if texts[1] is not None else texts[:1]
            named = isinstance(label, (str, int)) and not isinstance(label, bool) and label != ""
            if not named or not all(isinstance(text, str) for text in texts):
                raise ValueError(f'{path}:{number}: expected "text" and "text_pair" as strings, "label" as a name or '
                                 "number")
            rows.append((texts, str(label)))
    return rows


def encode_texts(rows, tokenizer, max_length):
    """[CLS] text [SEP], or [CLS] text [SEP] text [SEP], cut at `max_length` tokens."""
    tokenizer.enable_truncation(max_length)
    encodings = tokenizer.encode_batch([tuple(t) if len(t) == 2 else t[0] for t, _ in rows])
    tokenizer.no_truncation()
    return [Example(e.ids, e.type_ids, () if label is None else (label,)) for e, (_, label) in zip(encodings, rows)]
