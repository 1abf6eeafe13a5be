# SPDX-License-Identifier: Apache-2.0
"""Files of text and JSON, by the rules of text/data_file.cpp: UTF-8 with or without a byte order mark, lines that end in
LF or CR LF. What is wrong is a ValueError that names the file."""
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
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        raise ValueError(f"{path}:{line}: invalid UTF-8 at byte {error.start} of {len(data)}") from error
    if "\r" in content[:-1] and "\n" not in content and not content.lstrip(BLANKS).startswith("{"):
        raise ValueError(f"{path}: its lines end in CR alone; convert it with tr '\\r' '\\n'")
    return content


def lines_of(content):
    """(number, line) of those that are not blank."""
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip(BLANKS):
            yield number, line.removesuffix("\r")


def is_json_lines(content):
    """Whether it is JSON objects on lines of their own, as the first line tells. A broken one is an error where it is read;
    of the objects that stand alone, those with nothing but "data" are documents."""
    content = content.strip(BLANKS)
    first = content.split("\n", 1)[0].strip(BLANKS)
    if not re.match(r'\{[ \t\r]*["}]', first) or (first[-1] in ",[{:" and not first.endswith("},")):
        return False
    if not re.match(r'\{[ \t\r]*("data"|"version"|\})', first):
        return True
    try:
        members = json.loads(first)
    except (ValueError, RecursionError):
        return True
    is_squad = next(iter(members), None) in ("data", "version") and isinstance(members.get("data"), list)
    return not is_squad and not (first == content and members.keys() <= {"data"})


# Of a list of objects, or of strings on lines of their own; of an object.
ARRAY = re.compile(r'\[[ \t\r\n]*\{[ \t\r\n]*["}]|\[[ \t\r]*\n[ \t\r\n]*"')
OBJECT = re.compile(r'\{[ \t\r\n]*"')


def read_lines(path):
    """The text of a file of lines, and whether they are JSON objects. Other JSON is an error."""
    content = read_text(path)
    if is_json_lines(content):
        return content, True
    for form, what, query in (ARRAY, "JSON array", "'.[]'"), (OBJECT, "single JSON document", "."):
        if form.match(content.strip(BLANKS)):
            raise ValueError(f"{path}: is a {what}; write one object a line (jq -c {query} FILE); a file in SQuAD format is "
                             "named .json")
    return content, False


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
