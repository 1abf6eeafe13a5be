# SPDX-License-Identifier: Apache-2.0
"""Pages that list what the source has: environment variables, error messages, files of other projects."""
import collections
import re
import unittest

from pages import ROOT, text_of

SOURCES = ("engine", "tools", "text", "squad", "tasks", "serve", "quant", "api", "bench", "tests", "python")
OWN = r"(?:BERTCL|FAIL)_[A-Z_]+"
# How C++, the shell and Python read a variable
READS = (rf'(?:getenv|variable)\("([A-Z_]+)"\)', rf"\$\{{?({OWN})", rf'environ(?:\.get\(|\[)"([A-Z_]+)"')


def source_files(*endings):
    for folder in SOURCES:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.is_file() and file.suffix in endings:
                yield file


def variables():
    found = set()
    for file in source_files(".cpp", ".hpp", ".py", ""):
        text = file.read_text(encoding="utf-8", errors="replace")
        local = set(re.findall(r"^\s*(?:local )?([A-Z_]+)=", text, flags=re.MULTILINE))
        found |= {name for pattern in READS for name in re.findall(pattern, text)} - local
    return found


class Tables(unittest.TestCase):
    def test_environment_page_is_complete(self):
        listed = set(re.findall(r"`([A-Z][A-Z_]+)`", text_of(ROOT / "docs" / "environment.md")))
        read = variables()
        self.assertGreater(len(read), 12)
        self.assertEqual(read - listed, set(), "docs/environment.md does not list these")
        own = {name for name in listed if re.fullmatch(OWN, name)}
        self.assertEqual(own - read, set(), "docs/environment.md lists these, and nothing reads them")

    def test_messages_are_those_of_the_source(self):
        files = [*source_files(".cpp", ".hpp"), *(ROOT / "python" / "bertcl").rglob("*.py")]
        source = "\n".join(f.read_text(encoding="utf-8") for f in files)
        source = re.sub(r'"\s*\n\s*"', "", source)  # strings that go on in the next line
        page = text_of(ROOT / "docs" / "troubleshooting.md")
        cells = re.findall(r"^\| (`[^|]+`) \|", page, flags=re.MULTILINE)
        messages = [message for cell in cells for message in re.findall(r"`([^`]+)`", cell)]
        self.assertGreater(len(messages), 25)
        for message in messages:
            for part in message.split(".."):
                # Names between quotes are put in by the program.
                known = part.strip("' ;,") in source
                self.assertTrue(known, f"troubleshooting.md: no message has '{part}'")

    def test_counts_of_files_of_other_projects(self):
        rows = [line.split("\t") for line in
                (ROOT / "tests/onnx/interop_expected.tsv").read_text().splitlines() if line[0] != "#"]
        counts = collections.Counter((row[0][0], row[1]) for row in rows)
        page = text_of(ROOT / "docs" / "models.md")
        listed = {letter: tuple(map(int, numbers)) for letter, *numbers in
                  re.findall(r"^\| ([A-Z]) [^|]*\| (\d+) \| (\d+) \| (\d+) \|$", page, flags=re.MULTILINE)}
        expected = {letter: tuple(counts[letter, outcome] for outcome in ("pass", "reference", "refused"))
                    for letter in {row[0][0] for row in rows}}
        self.assertEqual(listed, expected)
        self.assertIn(f" lists {len(rows)} small ONNX files", page)
