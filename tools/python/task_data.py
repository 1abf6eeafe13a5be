# SPDX-License-Identifier: Apache-2.0
"""Training data: questions (.json in SQuAD format), labelled texts (.tsv, .csv, .jsonl), texts (.txt), as windows of
tokens.

.tsv, .csv: a text and its label, or columns by the names of a first line that has "label" or "labels" (one or more,
separated by commas): "text" ("sentence", "sentence1"), and "text_pair" ("sentence2") for two texts. Blank lines do not
count. .jsonl: objects with members of these names. The rules are those of read_tables.cpp and readers.cpp in tasks/data.
.txt: a text on each line, which has no label. JSON lines are known by their content in .tsv, .csv and .txt, too.
"""
import argparse
import dataclasses
import pathlib

import class_labels
import data_files
import squad_data
from data_files import Form

FIRST, SECOND, LABEL = ("text", "sentence", "sentence1"), ("text_pair", "sentence2"), ("labels", "label")
MEANINGS = {FIRST: "the text", SECOND: "the second text", LABEL: "the label"}


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
    config = data_files.read_object(path) if path.is_file() else {}
    return config.get("pad_token_id") or 0


def files_of(options, folder):
    """What is read beside a model: the vocabulary and configurations."""
    vocabulary = vocabulary_of(options, folder)
    return [vocabulary, vocabulary.with_name("tokenizer_config.json"), folder / "config.json"]


def settings_beside(vocabulary):
    """What the tokenizer_config.json beside a vocabulary says of texts, with the defaults of Hugging Face's BERT."""
    path = vocabulary.with_name("tokenizer_config.json")
    config = data_files.read_object(path) if path.is_file() else {}
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
    suffixes = {suffix_of(path) for path in options.data}
    if len(suffixes & {".json", ".txt"}) > 0 and len(suffixes) > 1:
        raise ValueError("--data: questions (.json), labelled texts (.tsv, .csv, .jsonl) and texts (.txt) cannot be "
                         "mixed")
    if suffixes == {".txt"}:
        rows = [row for path in options.data for row in _read_texts(path)[:options.limit]]
        return encode_texts([(texts, None) for texts in rows], tokenizer, options.max_length)
    if suffixes == {".json"}:
        questions = [q for path in options.data for q in squad_data.load_questions(path, options.limit)]
        return squad_data.make_windows(questions, tokenizer, options.max_length, options.stride)
    one = names is not None  # else the labels are not used
    names = names or class_labels.in_order({name for path in options.data
                                            for name in load_texts(path, options.limit, one=one)[1]})
    rows = [row for path in options.data for row in load_texts(path, options.limit, names, one)[0]]
    return encode_texts(rows, tokenizer, options.max_length)


def load_texts(path, limit=None, names=None, one=True):
    """[(texts, class)] and the names of the classes: `names`, else the labels of the data, sorted. `one`: raises where a
    text has several labels, or none."""
    content, form = data_files.read_data(path)
    if form == Form.JSON_LINES or suffix_of(path) == ".jsonl":
        rows = _labelled_objects(content, path)[:limit]
    else:
        rows = _labelled_rows(content, path, form == Form.COMMAS)[:limit]
    if not rows:
        raise ValueError(f"{path}: no texts")
    for place, _, labels in rows if one else ():
        if len(labels) != 1:
            raise ValueError(f"{place}: {len(labels) or 'no'} labels, expected one; training takes one class for a text")
    rows = [(texts, ",".join(labels)) for _, texts, labels in rows]
    names = names or class_labels.in_order({label for _, label in rows})
    try:
        classes = class_labels.match({label for _, label in rows}, names)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    return [(texts, classes[label]) for texts, label in rows], names


def suffix_of(path):
    return pathlib.Path(path).suffix.lower()


def _read_texts(path):
    """[text] or [text, second text] of each line that is not blank, or of each JSON object."""
    content, form = data_files.read_data(path)
    if form == Form.JSON_LINES:
        found = (_texts_of(row, place, '"text"') for place, row in _objects_of(content, path, '"text"'))
        rows = [texts for texts in found if any(text.strip(data_files.BLANKS) for text in texts)]
    else:
        rows = [[line.strip(data_files.BLANKS)] for _, line in data_files.lines_of(content)]
    if not rows:
        raise ValueError(f"{path}: no texts")
    return rows


def _only(names, wanted, place, cells=None):
    """Where the one of `names` stands that is `wanted`, or None. Two of them are an error. `cells`: the header whose names
    these are, in lower case; else they are members."""
    found = [index for index, name in enumerate(names) if name in wanted]
    if len(found) < 2:
        return found[0] if found else None
    first, second = found[:2] if cells else sorted(found[:2], key=lambda index: wanted.index(names[index]))
    what = f"columns {first + 1} and {second + 1}" if cells else f"members '{names[first]}' and '{names[second]}'"
    which = f" ({cells[first]}, {cells[second]})" if cells else ""
    raise ValueError(f"{place}: {what} both give {MEANINGS[wanted]}{which}; drop or rename one")


def _columns_of(cells, place, commas):
    """Where the first and second text and the label stand, by names in any case, and whether the label may be several;
    None: it is not a header. As tasks/data/read_tables.cpp has it."""
    header = [name.lower() for name in cells]
    label = _only(header, LABEL, place, cells)
    if label is None and ((len(header) < 2 and not commas) or not set(header) & {*FIRST, *SECOND}):
        return None
    if label is not None and not commas and len(header) == 2 and header[1] not in ("labels", *FIRST):
        return (0, None, 1, False) if header[1] == "label" else None
    first, second = (_only(header, names, place, cells) for names in (FIRST, SECOND))
    if first is None or label is None:
        raise ValueError(f"{place}: the header is {', '.join(cells)}; expected {' or '.join(FIRST)}, and label or labels; "
                         'if the first row is data, put a header line "text, label" above it')
    return first, second, label, header[label] == "labels"


def _rows_of(content, path, commas):
    """(number of the line, cells) of the rows that are not blank."""
    if commas:
        return data_files.rows_of(content, path)
    return ((number, line.split("\t")) for number, line in data_files.lines_of(content))


def _labelled_rows(content, path, commas):
    rows, columns, width = [], (0, None, 1, False), 2
    for index, (number, row) in enumerate(_rows_of(content, path, commas)):
        cells, place = [cell.strip(data_files.BLANKS) for cell in row], f"{path}:{number}"
        header = _columns_of(cells, place, commas) if index == 0 else None
        if header:
            columns, width = header, len(cells)
            continue
        if len(cells) != width:
            raise ValueError(f"{place}: {len(cells)} columns, expected {width}; a first line names others: "
                             "text, text_pair, label")
        first, second, label, several = columns
        labels = [name.strip(data_files.BLANKS) for name in cells[label].split(",")] if several else [cells[label]]
        if not several and not cells[label]:
            raise ValueError(f"{place}: the label is empty")
        rows.append((place, [cells[at] for at in (first, second) if at is not None], labels if labels != [""] else []))
    return rows


def _objects_of(content, path, members):
    """(place, object) of JSON lines; null is as good as no member. `members`: those that are expected."""
    for number, line in data_files.lines_of(content):
        place = f"{path}:{number}"
        row = data_files.parse_json(line, place)
        if not isinstance(row, dict):
            raise ValueError(f"{place}: expected an object with {members}")
        yield place, {name: value for name, value in row.items() if value is not None}


def _member(row, wanted, place):
    """The name of the member of `row` that is `wanted`, or None."""
    names = list(row)
    at = _only(names, wanted, place)
    return None if at is None else names[at]


def _texts_of(row, place, members):
    """The texts of an object, one or two."""
    first, second = (_member(row, wanted, place) for wanted in (FIRST, SECOND))
    if first is None:
        raise ValueError(f"{place}: expected an object with {members}")
    texts = [row[name] for name in (first, second) if name is not None]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError(f'{place}: expected "text" and "text_pair" as strings')
    return texts


def _labelled_objects(content, path):
    rows, members = [], '"text" and "label"'
    for place, row in _objects_of(content, path, members):
        texts, label = _texts_of(row, place, members), _member(row, LABEL, place)
        if label is None:
            raise ValueError(f"{place}: expected an object with {members}")
        labels = row[label] if label == "labels" else [row[label]]
        if not isinstance(labels, list) or not all(
                isinstance(name, (str, int)) and not isinstance(name, bool) and name != "" for name in labels):
            raise ValueError(f'{place}: expected "label" as a name or number, "labels" as a list of them')
        rows.append((place, texts, list(map(str, labels))))
    return rows


def encode_texts(rows, tokenizer, max_length):
    """[CLS] text [SEP], or [CLS] text [SEP] text [SEP], cut at `max_length` tokens."""
    special = tokenizer.num_special_tokens_to_add(any(len(texts) == 2 for texts, _ in rows))
    if max_length <= special:
        raise ValueError(f"{max_length} tokens leave no room for a text beside {special} special tokens; raise "
                         "--max-length")
    tokenizer.enable_truncation(max_length)
    encodings = tokenizer.encode_batch([tuple(t) if len(t) == 2 else t[0] for t, _ in rows])
    tokenizer.no_truncation()
    return [Example(e.ids, e.type_ids, () if label is None else (label,)) for e, (_, label) in zip(encodings, rows)]
