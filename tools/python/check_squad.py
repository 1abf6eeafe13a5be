#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks files in SQuAD format (v1.1 or v2.0): keys, unique ids, and that each answer stands in its
context at the offset given, counted in Unicode characters.

    tools/python/check_squad.py data/sample-v2.0.json ...

Prints each problem with its place in the JSON, then the counts. Exit code 1 if there is a problem.
"""
import json
import sys


class _Checker:
    def __init__(self):
        self.problems = []
        self.ids = set()

    def get(self, node, key, kind, where):
        """node[key] if it is of the right type; otherwise None, and a problem is noted."""
        value = node.get(key) if isinstance(node, dict) else None
        if isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
            return value
        self.problems.append(f"{where}: {key} is missing or is not {kind.__name__}")
        return None

    def items(self, node, key, where):
        for index, item in enumerate(self.get(node, key, list, where) or []):
            yield f"{where}.{key}[{index}]", item

    def answer(self, context, answer, where):
        text = self.get(answer, "text", str, where)
        start = self.get(answer, "answer_start", int, where)
        if text is None or start is None:
            return
        found = context[start:start + len(text)] if start >= 0 else ""
        if not text or found != text:
            self.problems.append(f"{where}: the context has {found!r} at {start}, the answer is {text!r}")

    def question(self, context, node, where):
        text = self.get(node, "question", str, where)
        identifier = self.get(node, "id", str, where)
        if text is not None and not text.strip():
            self.problems.append(f"{where}: the question is empty")
        if identifier in self.ids:
            self.problems.append(f"{where}: the id {identifier!r} occurs twice")
        self.ids.add(identifier)
        answers = list(self.items(node, "answers", where))
        impossible = isinstance(node, dict) and node.get("is_impossible", False)
        if impossible and answers:
            self.problems.append(f"{where}: is_impossible is true, but there are answers")
        if not impossible and not answers:
            self.problems.append(f"{where}: no answer, but is_impossible is not true")
        for place, answer in answers:
            self.answer(context, answer, place)


def problems(data):
    """The problems of a parsed SQuAD file, each a line that begins with its JSON path."""
    checker = _Checker()
    for where, article in checker.items(data, "data", "$"):
        for place, paragraph in checker.items(article, "paragraphs", where):
            context = checker.get(paragraph, "context", str, place)
            for spot, question in checker.items(paragraph, "qas", place):
                checker.question(context or "", question, spot)
    return checker.problems


def main(paths):
    if not paths or paths[0].startswith("-"):
        print(__doc__)
        return 2
    failed = False
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
        except (OSError, ValueError) as error:
            print(f"{path}: {error}")
            failed = True
            continue
        found = problems(data)
        for problem in found:
            print(f"{path}: {problem}")
        failed = failed or bool(found)
        if not found:
            contexts = [p for a in data["data"] for p in a["paragraphs"]]
            questions = [q for p in contexts for q in p["qas"]]
            impossible = sum(bool(q.get("is_impossible")) for q in questions)
            print(f"{path}: {len(contexts)} paragraphs, {len(questions)} questions, "
                  f"{impossible} of them without an answer")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
