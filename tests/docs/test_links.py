# SPDX-License-Identifier: Apache-2.0
"""Links lead to files that git keeps, and to headings of them; named source files exist; lines of prose are short."""
import re
import unittest

from pages import PAGES, ROOT, spans, text_of

# architecture.md names source files from the root, other pages also from these folders.
BASES = (ROOT, *(ROOT / base for base in ("engine", "include", "kernels_cl")))
SOURCE = re.compile(r"[\w.*-]+(/[\w.*-]+)*/[\w*-]+\.(?:hpp|cpp|cl|clh|py)")
MAX_COLUMNS = 120  # of prose; tables, code, headings and a line that is one word may have more
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def prose(page):
    return re.sub(r"^```.*?^```", "", text_of(page), flags=re.MULTILINE | re.DOTALL)


def anchors(page):
    """As GitHub and MkDocs form them of headings, with `-1` and so on at repeated ones."""
    found, seen = set(), {}
    for heading in re.findall(r"^#+ (.*)$", prose(page), flags=re.MULTILINE):
        slug = re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
        count = seen.get(slug, 0)
        seen[slug] = count + 1
        found.add(f"{slug}-{count}" if count else slug)
    return found


def broken(page, text):
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or not file.is_relative_to(ROOT):
            yield f"{page.name}: {target}: no such file"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{page.name}: {target}: no such heading (there are {', '.join(sorted(anchors(file)))})"


def absent_sources(page, named):
    bases = BASES[:1] if page.name == "architecture.md" else BASES
    for number, name in named:
        if SOURCE.fullmatch(name) and not any(list(base.glob(name)) for base in bases):
            yield f"{page.name}:{number}: {name}: no such file"


def long_lines(name, text):
    fenced = code = False
    before = ""
    for number, line in enumerate(text.split("\n"), 1):
        # Also lines of nested lists are indented by four.
        code = line.startswith("    ") and (code or not before.strip() or before.startswith("#"))
        if line.startswith("```"):
            fenced = not fenced
        elif len(line) > MAX_COLUMNS and " " in line.strip() and not (
                fenced or code or line.startswith(("|", "#", "<!--"))):
            yield f"{name}:{number}: {len(line)} columns"
        before = line


class Links(unittest.TestCase):
    def test_every_link_leads_somewhere(self):
        self.assertEqual([b for page in PAGES for b in broken(page, prose(page))], [])
        self.assertGreater(sum(len(LINK.findall(prose(page))) for page in PAGES), 100)

    def test_broken_links_are_found(self):
        page = ROOT / "docs" / "index.md"
        for link in ("absent.md", "api.md#absent", "#absent", "../../outside.md"):
            with self.subTest(link):
                self.assertEqual(len(list(broken(page, f"[x]({link})"))), 1)

    def test_named_source_files_exist(self):
        pages = [page for page in PAGES if page.name != "changelog.md"]  # which names what is gone
        self.assertEqual([a for page in pages for a in absent_sources(page, spans(page))], [])
        self.assertGreater(sum(SOURCE.fullmatch(name) is not None for page in pages for _, name in spans(page)), 80)

    def test_absent_source_files_are_found(self):
        for page, name in (("api.md", "plan/absent.hpp"), ("architecture.md", "plan/memory.hpp")):
            with self.subTest(name):
                self.assertEqual(len(list(absent_sources(ROOT / "docs" / page, [(1, name)]))), 1)

    def test_lines_are_short(self):
        self.assertEqual([line for page in PAGES for line in long_lines(page.name, text_of(page))], [])

    def test_long_lines_are_found(self):
        long = "word " * 24 + "w"
        self.assertEqual(list(long_lines("x.md", f"{long}\n- {long[2:]}\n")),
                         ["x.md:1: 121 columns", "x.md:2: 121 columns"])
        self.assertEqual(list(long_lines("x.md", f"- a\n  - b\n    {long}\n    {long}\n")),
                         ["x.md:3: 125 columns", "x.md:4: 125 columns"])
        for text in (long[1:], f"| {long} |", f"    {long}", f"a\n\n    b\n    {long}\n\n    {long}",
                     f"# b\n    {long}", f"# {long}", f"```\n{long}\n```", f"<!-- {long} -->", "w" * 121,
                     f"- a\n    {'w' * 121}"):
            with self.subTest(text):
                self.assertEqual(list(long_lines("x.md", text)), [])

    def test_every_page_is_in_the_navigation(self):
        navigation = (ROOT / "mkdocs.yml").read_text()
        for page in PAGES[1:]:
            self.assertEqual(len(re.findall(rf"[ -]{re.escape(page.name)}$", navigation, re.MULTILINE)), 1,
                             f"{page.name} must be in the nav of mkdocs.yml once")

    def test_every_page_is_in_the_index(self):
        index = ROOT / "docs" / "index.md"
        linked = {target.partition("#")[0] for target in LINK.findall(prose(index))}
        self.assertEqual({page.name for page in PAGES[1:]} - linked - {index.name}, set())
