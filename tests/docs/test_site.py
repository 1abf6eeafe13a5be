# SPDX-License-Identifier: Apache-2.0
"""MkDocs builds the site without a warning, and its hook leaves no link that leads out of it."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from pages import BUILD, PAGES, ROOT

MKDOCS = BUILD / "venv-docs" / "bin" / "mkdocs"


@unittest.skipUnless(MKDOCS.exists(), "no MkDocs in build/venv-docs (tools/build_docs installs it)")
class Site(unittest.TestCase):
    def test_builds(self):
        with tempfile.TemporaryDirectory() as name:
            done = subprocess.run([MKDOCS, "build", "--strict", "--quiet", "--site-dir", name], cwd=ROOT,
                                  capture_output=True, text=True,
                                  env=dict(os.environ, NO_MKDOCS_2_WARNING="1"))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            site = pathlib.Path(name)
            for page in PAGES[1:]:
                path = site / ("" if page.stem == "index" else page.stem) / "index.html"
                html = path.read_text(encoding="utf-8")
                self.assertNotRegex(html, r'href="\.\./\.\./[^"]*\.(md|hpp|cpp|py|json|svg)[#"]', page.name)
                # What the browser of a reader would fetch from elsewhere
                self.assertEqual(re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://[^"]+', html), [])
