# SPDX-License-Identifier: Apache-2.0
"""The pages of the documents, and the parts of them that tests look at."""
import dataclasses
import os
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR", ROOT / "build"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LANGUAGES = ("", "sh", "bash", "console")  # of fences that may hold commands
NOT_RUN = re.compile(r"<!-- not run: (\S.*?) -->")


@dataclasses.dataclass
class Block:
    """Code that stands by itself: between fences, or indented by four."""
    page: str
    line: int
    lines: list
    not_run: str | None = None  # the reason


def text_of(page):
    return page.read_text(encoding="utf-8")


def blocks(page):
    """In their order; those of other languages are left out."""
    found, block, fence, reason, before = [], None, None, None, ""
    for number, line in enumerate(text_of(page).split("\n"), 1):
        if note := NOT_RUN.match(line):
            block, reason = None, note[1]
        elif fence is None and line.startswith("```"):
            fence = line[3:].strip()
            block = Block(page.name, number + 1, [], reason)
        elif line.startswith("```"):
            if fence in LANGUAGES:
                found.append(block)
            block = fence = reason = None
        elif fence is not None:
            block.lines.append(line)
        elif line.startswith("    ") and (block or not before.strip() or before.startswith("#")):
            if not block:
                block = Block(page.name, number, [], reason)
                found.append(block)
            block.lines.append(line[4:])
        elif line.strip():
            block = reason = None
        before = line
    return found


def commands(block):
    """(line number, command line): continued lines joined, output of `$ ` sessions left out."""
    session = any(line.startswith("$ ") for line in block.lines)
    joined, first = "", 0
    for number, line in enumerate(block.lines, block.line):
        if session and not joined:
            if not line.startswith("$ "):
                continue
            line = line[2:]
        first = first if joined else number
        joined += line.strip()
        if joined.endswith("\\"):
            joined = joined[:-1]
            continue
        if joined:
            yield first, joined
        joined = ""


def spans(page):
    """(line number, text) of code within sentences."""
    inside = False
    for number, line in enumerate(text_of(page).split("\n"), 1):
        if line.startswith("```"):
            inside = not inside
        elif not inside and not line.startswith("    "):
            for span in re.findall(r"`([^`]+)`", line):
                yield number, span
