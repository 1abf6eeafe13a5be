# SPDX-License-Identifier: Apache-2.0
"""Pictures for docs/images, on a desktop, on a phone and in the dark: of the reports inspect.html, eval.html and bench.html
in FOLDER, and of the page of serve with the models, if any.

    build/venv/bin/python tests/serve/screenshots.py FOLDER [fp32=MODEL int8=MODEL minilm/model.onnx]
    pngquant --force --ext .png 48 docs/images/*.png

The reports are made in FOLDER, so that they show short paths:

    bertcl quantize model.onnx -o int8.onnx --data calibration.json
    bertcl inspect int8.onnx --html inspect.html
    bertcl bench int8.onnx --batch 8 --html bench.html
    bertcl eval int8.onnx --compare model.onnx --data sample-v2.0.json --html eval.html
"""
import base64
import json
import pathlib
import sys
import tempfile

import chromium
from test_page_in_browser import DONE, ROOT, Server

# Size of the window, colors, and the heading that stands on top.
VIEWS = {"desktop": ((1200, 900), "light"), "phone": ((390, 844), "light"), "dark": ((1200, 900), "dark")}
PAGES = {"inspect": {"phone": "Launches by layer"},
         "eval": {"phone": "Answers that differ", "dark": "Answers that differ"},
         "bench": {"desktop": "Roofline", "phone": "Roofline"}}
SERVE = {"dark": "Compare sentences"}


def take(url, name, headings):
    for view, (size, scheme) in VIEWS.items():
        with chromium.Page(url, size, scheme) as page:
            page.value("document.documentElement.style.scrollbarWidth = 'none'")
            if url.startswith("http"):
                page.until("!document.getElementById('state').textContent")
                page.value("document.querySelectorAll('section:not([hidden]) form').forEach(f => f.requestSubmit())")
                page.until(DONE)
            if view in headings:
                page.value("scrollTo(0, [...document.querySelectorAll('h2')]"
                           f".find(h => h.textContent.includes({json.dumps(headings[view])})).offsetTop - 12)")
            picture = page.call("Page.captureScreenshot")["data"]
        (ROOT / "docs" / "images" / f"{name}-{view}.png").write_bytes(base64.b64decode(picture))


folder, *models = sys.argv[1:]
for name, headings in PAGES.items():
    take((pathlib.Path(folder) / f"{name}.html").resolve().as_uri(), f"report-{name}", headings)
if models:
    with tempfile.TemporaryDirectory() as scratch:
        server = Server(pathlib.Path(scratch), *models)
        try:
            take(server.url, "serve", SERVE)
        finally:
            server.stop()
