# SPDX-License-Identifier: Apache-2.0
"""The page of `bertcl serve` in Chromium: questions, similarities, a phone, the dark, markup in texts, a key."""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))
import chromium
import encoder_model
from support import BERTCL, ROOT

MODEL = ROOT / "models" / "minilm-l6-squad" / "model.onnx"
DONE = "[...document.querySelectorAll('form')].every(f => f.getAttribute('aria-busy') != 'true')"
WIDTH = "document.documentElement.scrollWidth"


class Server:
    def __init__(self, folder, *arguments):
        report = folder / "serve.json"
        report.unlink(missing_ok=True)
        self._process = subprocess.Popen([BERTCL, "serve", *arguments, "--port", "0", "--json", report, "--log", "none"],
                                         stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 300
        while not report.exists() and self._process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        if not report.exists():
            self._process.kill()
            raise RuntimeError(f"bertcl serve ended with {self._process.wait()}")
        self.url = json.loads(report.read_text(encoding="utf-8"))["url"] + "/"

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(timeout=60)


def submit(page, kind):
    page.value(f"document.querySelector('[data-kind={kind}] form').requestSubmit()")
    page.until(DONE)


def shown(page):
    """What can be seen: kinds, and the field for the key."""
    return page.value("[...document.querySelectorAll('section, #key')].filter(s => s.offsetHeight > 0)"
                      ".map(s => s.dataset.kind || s.id)")


@unittest.skipUnless(chromium.PROGRAM, "no chromium (apt-get install chromium)")
class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        encoder_model.write_encoder(cls.folder / "encoder")
        cls.server = Server(cls.folder, f"one={MODEL}", f"two={MODEL}", f"vectors={cls.folder}/encoder/model.onnx",
                            "--pooling", "mean")
        cls.addClassCleanup(cls.server.stop)

    def open(self, **options):
        page = self.enterContext(chromium.Page(self.server.url, **options))
        page.until("!document.querySelector('[data-kind=question-answering]').hidden")
        return page

    def test_models_answer_side_by_side(self):
        page = self.open()
        self.assertEqual(shown(page), ["question-answering", "embedding"])
        page.value("document.getElementById('answer-question').focus()")
        page.press("Enter", 13)
        page.until("document.querySelectorAll('mark').length == 2")
        page.until(DONE)
        self.assertEqual(page.value("[...document.querySelectorAll('article h3')].map(e => e.textContent)"), ["one", "two"])
        for mark in page.value("[...document.querySelectorAll('mark')].map(e => e.textContent)"):
            self.assertIn("Khronos Group", mark)
        for time_text in page.value("[...document.querySelectorAll('.time')].map(e => e.textContent)"):
            self.assertRegex(time_text, r"^[\d.]+ ms$")
        self.assertEqual(page.complaints, [])

    def test_places_are_in_code_points(self):
        page = self.open()
        page.fill("answer-context", "\U0001F600\U0001F600 Ada Lovelace wrote the first program.")
        page.fill("answer-question", "Who wrote the first program?")
        submit(page, "question-answering")
        self.assertEqual(page.value("document.querySelector('mark').textContent"), "Ada Lovelace")

    def test_markup_stays_text(self):
        page = self.open()
        evil = "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'> It is maintained by the Khronos Group."
        page.fill("answer-context", evil)
        page.fill("embed-texts", evil + "\nshort")
        submit(page, "question-answering")
        submit(page, "embedding")
        self.assertEqual(page.value("document.querySelector('.text').textContent"), evil)
        self.assertIn("<script>", page.value("document.querySelector('.heat tbody th').textContent"))
        self.assertEqual(page.value("[document.scripts.length, document.images.length, typeof window.ran]"),
                         [1, 0, "undefined"])
        # The policy keeps out what gets in another way.
        page.value("window.blocked = 0")
        page.value("void addEventListener('securitypolicyviolation', () => ++window.blocked)")
        page.value("document.body.insertAdjacentHTML('beforeend', \"<img src=x onerror='window.ran = 1'>\")")
        page.until("window.blocked > 0")
        self.assertEqual(page.value("typeof window.ran"), "undefined")

    def test_heat_map(self):
        page = self.open()
        submit(page, "embedding")
        cells = page.value("[...document.querySelectorAll('.heat tbody tr')].map(r => [...r.querySelectorAll('td')]"
                           ".map(c => c.textContent))")
        self.assertEqual([len(row) for row in cells], [5] * 5)
        self.assertEqual([cells[i][i] for i in range(5)], ["1.00"] * 5)
        self.assertEqual(cells, [list(column) for column in zip(*cells)])
        colors = page.value("[...document.querySelectorAll('.heat td')].map(c => getComputedStyle(c).backgroundColor)")
        self.assertGreater(len(set(colors)), 1)
        self.assertEqual(page.complaints, [])

    def test_fits_a_phone(self):
        page = self.open(size=(390, 844))
        page.fill("embed-texts", "\n".join(["a" * 300, *(f"sentence {i}" for i in range(20))]))
        page.fill("answer-context", "x" * 400 + " is maintained by the Khronos Group.")
        submit(page, "question-answering")
        submit(page, "embedding")
        self.assertLessEqual(page.value(WIDTH), 390)
        page.value("{ const wide = document.createElement('div'); wide.style.cssText = 'width: 500px; height: 9px'; document.body.append(wide); }")
        self.assertGreaterEqual(page.value(WIDTH), 500, "the measure sees nothing")

    def test_dark(self):
        back = "getComputedStyle(document.body).backgroundColor"
        self.assertEqual(self.open(scheme="dark").value(back), "rgb(18, 21, 27)")
        self.assertEqual(self.open().value(back), "rgb(246, 247, 249)")

    def test_controls_have_labels_and_errors_are_text(self):
        page = self.open()
        self.assertEqual(page.value("[...document.querySelectorAll('input, textarea')].every(e => e.labels.length == 1)"),
                         True)
        page.fill("embed-texts", "\n".join(map(str, range(40))))
        submit(page, "embedding")
        self.assertRegex(page.value("document.querySelector('[role=alert]').textContent"), "413: .*40 texts")

    def test_key(self):
        server = Server(self.folder, f"one={MODEL}", "--api-key", "secret")
        self.addCleanup(server.stop)
        page = self.enterContext(chromium.Page(server.url))
        page.until("!document.getElementById('key').hidden")
        self.assertEqual(shown(page), ["key"])
        for key in ("wrong", "secret"):
            page.fill("key-text", key)
            page.value("document.getElementById('key').requestSubmit()")
            if key == "wrong":
                page.until("document.getElementById('key-note').textContent.includes('401')")
        page.until("document.getElementById('key').hidden")
        self.assertEqual(shown(page), ["question-answering"])
        submit(page, "question-answering")
        self.assertIn("Khronos", page.value("document.querySelector('mark').textContent"))
        self.assertEqual(page.value("[localStorage.length, sessionStorage.length, document.cookie]"), [0, 0, ""])
