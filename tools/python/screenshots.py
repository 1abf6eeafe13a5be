# SPDX-License-Identifier: Apache-2.0
"""Pictures for docs/images, on a desktop, on a phone and in the dark: of the HTML reports, or of the page of serve.

    tools/python/make_venv build/venv-screenshots tools/python/requirements-screenshots.txt
    build/venv-screenshots/bin/python tools/python/screenshots.py       makes the reports, too
    build/venv-screenshots/bin/python tools/python/screenshots.py --reports FOLDER
    build/venv-screenshots/bin/python tools/python/screenshots.py --serve fp32=MODEL int8=MODEL minilm/model.onnx

Needs build/bertcl and chromium (apt-get install chromium).
"""
import argparse
import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parents[2]
BERTCL = ROOT / "build" / "bertcl"
MODEL = ROOT / "models" / "minilm-l6-squad" / "model.onnx"
# Size of the window, colors, and the heading that stands on top.
VIEWS = {"desktop": (1200, 900, "light"), "phone": (390, 844, "light"), "dark": (1200, 900, "dark")}
PAGES = {"inspect": {"desktop": None, "phone": "Launches by layer", "dark": None},
         "eval": {"desktop": None, "phone": "Answers that differ", "dark": "Answers that differ"},
         "bench": {"desktop": "Roofline", "phone": "Roofline", "dark": None}}
SERVE_VIEWS = {"desktop": None, "phone": None, "dark": "Compare sentences"}
COLORS = 48  # of a picture: these pages have few
LARGEST = 100_000  # bytes of a picture


def make_reports(folder):
    folder.mkdir(parents=True, exist_ok=True)
    model, data = (os.path.relpath(path, folder) for path in (MODEL, ROOT / "data"))

    def run(*command):
        # There, so that the pages show short paths.
        subprocess.run([BERTCL, *command], check=True, stdout=subprocess.DEVNULL, cwd=folder)

    if not (folder / "int8.onnx").exists():
        run("quantize", model, "-o", "int8.onnx", "--data", f"{data}/calibration.json")
    run("inspect", "int8.onnx", "--html", "inspect.html")
    run("bench", "int8.onnx", "--batch", "8", "--html", "bench.html")
    run("eval", "int8.onnx", "--compare", model, "--data", f"{data}/sample-v2.0.json", "--html", "eval.html",
        "--vocab", MODEL.with_name("vocab.txt"))


@contextlib.contextmanager
def serving(models):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "serve.json"
        server = subprocess.Popen([BERTCL, "serve", *models, "--port", "0", "--log", "none", "--json", report],
                                  stdout=subprocess.DEVNULL)
        try:
            while not report.exists():
                if server.poll() is not None:
                    sys.exit("screenshots: bertcl serve ended")
                time.sleep(0.1)
            yield json.loads(report.read_text(encoding="utf-8"))["url"] + "/"
        finally:
            server.terminate()
            server.wait()


def ask(page):
    """Sends each form that the page of serve shows, and waits for the results."""
    page.wait_for_function("!document.getElementById('state').textContent")
    for form in page.locator("section:not([hidden]) form").all():
        form.evaluate("form => form.requestSubmit()")
        page.wait_for_function("form => form.getAttribute('aria-busy') !== 'true'", arg=form.element_handle())


def take(browser, url, view, heading, target):
    width, height, scheme = VIEWS[view]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=True)
    page.goto(url)
    if url.startswith("http"):
        ask(page)
    if heading:
        page.locator("h2", has_text=heading).first.evaluate("e => window.scrollTo(0, e.offsetTop - 12)")
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        sys.exit(f"screenshots: {url} is {wide} pixels wide, the window {width}")
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(target, optimize=True)
    page.close()
    if target.stat().st_size > LARGEST:
        sys.exit(f"screenshots: {target} has {target.stat().st_size} bytes, more than {LARGEST}")


def main():
    parser = argparse.ArgumentParser(prog="screenshots.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=pathlib.Path, help="folder of inspect.html, eval.html and bench.html")
    parser.add_argument("--serve", nargs="+", metavar="MODEL", help="models of bertcl serve, whose page is taken")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if not chromium:
        sys.exit("screenshots: no chromium (apt-get install chromium)")
    reports = options.reports or ROOT / "build" / "reports"
    if not options.reports and not options.serve:
        make_reports(reports)
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        if options.serve:
            with serving(options.serve) as url:
                for view, heading in SERVE_VIEWS.items():
                    take(browser, url, view, heading, options.out / f"serve-{view}.png")
        else:
            for name, views in PAGES.items():
                for view, heading in views.items():
                    take(browser, (reports / f"{name}.html").resolve().as_uri(), view, heading,
                         options.out / f"report-{name}-{view}.png")
        browser.close()


if __name__ == "__main__":
    main()
