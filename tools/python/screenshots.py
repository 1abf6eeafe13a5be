# SPDX-License-Identifier: Apache-2.0
"""Pictures of the HTML reports for docs/images: on a desktop, on a phone and in the dark.

    tools/python/make_venv build/venv-screenshots tools/python/requirements-screenshots.txt
    build/venv-screenshots/bin/python tools/python/screenshots.py       makes the reports, too
    build/venv-screenshots/bin/python tools/python/screenshots.py --reports FOLDER

Needs build/bertcl and chromium (apt-get install chromium).
"""
import argparse
import io
import os
import pathlib
import shutil
import subprocess
import sys

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


def take(browser, page_path, view, heading, target):
    width, height, scheme = VIEWS[view]
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(page_path.resolve().as_uri())
    if heading:
        page.locator("h2", has_text=heading).first.evaluate("e => window.scrollTo(0, e.offsetTop - 12)")
    wide = page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        sys.exit(f"screenshots: {page_path.name} takes {wide} of {width} pixels")
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(target, optimize=True)
    page.close()
    if target.stat().st_size > LARGEST:
        sys.exit(f"screenshots: {target} has {target.stat().st_size} bytes, more than {LARGEST}")


def main():
    parser = argparse.ArgumentParser(prog="screenshots.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reports", type=pathlib.Path, help="folder of inspect.html, eval.html and bench.html")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "images")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if not chromium:
        sys.exit("screenshots: no chromium (apt-get install chromium)")
    reports = options.reports or ROOT / "build" / "reports"
    if not options.reports:
        make_reports(reports)
    options.out.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, views in PAGES.items():
            for view, heading in views.items():
                take(browser, reports / f"{name}.html", view, heading, options.out / f"report-{name}-{view}.png")
        browser.close()


if __name__ == "__main__":
    main()
