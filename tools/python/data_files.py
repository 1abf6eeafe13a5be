# SPDX-License-Identifier: Apache-2.0
"""Files of text and JSON, by the rules of text/base/data_file.cpp: UTF-8 with or without a byte order mark, lines that
end in LF or CR LF. What is wrong is a ValueError that names the file."""
import enum
import json
import pathlib
import re

BLANKS = " \t\r\n"


def read_text(path):
    data = pathlib.Path(path).read_bytes()
    nulls = [byte == 0 for byte in data[:4]]
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") or nulls in ([True, False] * 2, [False, True] * 2):
        raise ValueError(f"{path}: looks like UTF-16; convert it to UTF-8 with iconv")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        raise ValueError(f"{path}:{line}: invalid UTF-8 at byte {error.start} of {len(data)}; expected UTF-8 text (iconv "
                         "-f ENCODING -t UTF-8 FILE converts other encodings)") from error


def lines_of(content):
    """(number, line) of those that are not blank."""
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip(BLANKS):
            yield number, line.removesuffix("\r")


class Form(enum.Enum):
    LINES, COMMAS, TABS, JSON_LINES, SQUAD, DOCUMENT, ARRAY, ARRAY_OF_STRINGS, CARRIAGE_RETURNS = range(9)


REFUSALS = {
    Form.SQUAD: "is a single JSON document; write one object a line "
                "(jq -c '.data[].paragraphs[] | {text: .context}' FILE); a file in SQuAD format is named .json",
    Form.DOCUMENT: "is a single JSON document; write one object a line (jq -c . FILE)",
    Form.ARRAY: "is a JSON array; write one object a line (jq -c '.[]' FILE)",
    Form.ARRAY_OF_STRINGS: "is a JSON array; write one text a line (jq -r '.[]' FILE)",
    Form.CARRIAGE_RETURNS: r"lines end in CR alone; convert them to LF (tr '\r' '\n' < FILE)"}
DATA_ARRAY = re.compile(r'"data"[ \t\r\n]*:[ \t\r\n]*\[')


def _has_data_alone(text):
    try:
        return json.loads(text).keys() == {"data"}
    except (ValueError, RecursionError):
        return False


def form_of(path, content):
    suffix, text = pathlib.Path(path).suffix.lower(), content.removeprefix("\ufeff").strip(BLANKS)
    first, inside, is_json = text.split("\n", 1)[0].strip(BLANKS), text[1:].lstrip(BLANKS), suffix == ".json"
    if text.startswith("["):
        if inside.startswith('"') and (is_json or "\n" in text[:-len(inside)]):
            return Form.ARRAY_OF_STRINGS
        if is_json or re.match(r'\{[ \t\r\n]*["}]', inside):
            return Form.ARRAY
    elif text.startswith("{") and inside.startswith('"'):
        goes_on = first[-1] in ",[{:" and not first.endswith("},")
        is_squad = inside.startswith(('"data"', '"version"')) and DATA_ARRAY.search(first)
        if not goes_on and not is_squad and not (first == text and _has_data_alone(first)):
            return Form.JSON_LINES
        return Form.SQUAD if DATA_ARRAY.search(text) else Form.DOCUMENT
    elif text.startswith("{"):
        if first != text and first[1:].strip(BLANKS) == "}":
            return Form.JSON_LINES
        if is_json:
            return Form.DOCUMENT
    if "\r" in content[:-1] and "\n" not in content:
        return Form.CARRIAGE_RETURNS
    return {".csv": Form.COMMAS, ".tsv": Form.TABS}.get(suffix, Form.LINES)


def read_data(path, *taken):
    """The text of a file and its form. Raises unless that is lines or one of `taken`."""
    content = read_text(path)
    form = form_of(path, content)
    if form in REFUSALS and form not in taken:
        raise ValueError(f"{path}: {REFUSALS[form]}")
    return content, form


# In quotes, and else; what ends it.
FIELD = re.compile(r'(?:"([^"]*(?:""[^"]*)*)"[ \t\r]*|((?:[^",\n][^,\n]*)?))(,|\n|\Z)')


def rows_of(content, path):
    """(number of its first line, fields) of the rows of comma-separated values that are not blank."""
    row, begin, at, number = [], 1, 0, 1
    while at < len(content) or row:
        field = FIELD.match(content, at)
        if not field:
            raise ValueError(f"{path}:{number}: a quote that is not closed, or text after a closing quote; a quote inside "
                             "quotes is written twice")
        quoted, plain, end = field.groups()
        row.append(plain if quoted is None else quoted.replace('""', '"'))
        number += field.group().count("\n")
        at = field.end()
        if end != ",":
            if len(row) > 1 or quoted is not None or row[0].strip(BLANKS):
                yield begin, row
            row, begin = [], number


def parse_json(content, place):
    def unique(members):
        found = {}
        for name, value in members:
            if name in found:
                raise ValueError(f"the member {name!r} is there twice")
            found[name] = value
        return found
    try:
        return json.loads(content, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: invalid JSON: {error}") from error


def read_object(path):
    """The JSON object that a file holds."""
    document = parse_json(read_text(path), path)
    if not isinstance(document, dict):
        raise ValueError(f"{path}: expected a JSON object")
    return document


def inside(place, name):
    return f"{place}{'' if place.endswith(' ') else '.'}{name}"


KINDS = {list: "a list", str: "a string", int: "an integer", bool: "true or false"}


def member(node, name, place, *kinds):
    """node[name], which has to be of one of these types. `place`: of the node, in messages."""
    if not isinstance(node, dict) or name not in node:
        raise ValueError(f"{inside(place, name)} is missing")
    if type(node[name]) not in kinds:
        raise ValueError(f"{inside(place, name)} is not {' or '.join(KINDS[kind] for kind in kinds)}")
    return node[name]


def elements(node, name, place):
    """The elements of the list node[name], each with its place."""
    place, values = inside(place, name), member(node, name, place, list)
    return ((value, f"{place}[{index}]") for index, value in enumerate(values))
