# SPDX-License-Identifier: Apache-2.0
"""Files of text and JSON, by the rules of text/data_file.cpp: UTF-8 with or without a byte order mark, lines that end in
LF or CR LF. What is wrong is a ValueError that names the file."""
import json
import pathlib

BLANKS = " \t\r\n"


def read_text(path):
    data = pathlib.Path(path).read_bytes()
    try:
        content = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = 1 + data.count(b"\n", 0, error.start)
        raise ValueError(f"{path}:{line}: invalid UTF-8 at byte {error.start} of {len(data)}") from error
    if "\0" in content[:4]:
        raise ValueError(f"{path}: has null characters, as UTF-16 without a byte order mark does; convert it with iconv")
    if "\r" in content and "\n" not in content:
        raise ValueError(f"{path}: its lines end in CR alone; convert it with tr '\\r' '\\n'")
    return content


def lines_of(content):
    """(number, line) of those that are not blank."""
    for number, line in enumerate(content.split("\n"), 1):
        if line.strip(BLANKS):
            yield number, line.removesuffix("\r")


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


def _inside(place, name):
    return f"{place}{'' if place.endswith(' ') else '.'}{name}"


KINDS = {list: "a list", str: "a string", int: "an integer", bool: "true or false"}


def member(node, name, place, *kinds):
    """node[name], which has to be of one of these types. `place`: of the node, in messages."""
    if not isinstance(node, dict) or name not in node:
        raise ValueError(f"{_inside(place, name)} is missing")
    if type(node[name]) not in kinds:
        raise ValueError(f"{_inside(place, name)} is not {' or '.join(KINDS[kind] for kind in kinds)}")
    return node[name]


def elements(node, name, place):
    """The elements of the list node[name], each with its place."""
    place, values = _inside(place, name), member(node, name, place, list)
    return ((value, f"{place}[{index}]") for index, value in enumerate(values))
