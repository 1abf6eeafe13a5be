# SPDX-License-Identifier: Apache-2.0
"""The question-answering pipeline against stored answers of transformers (make_qa_golden.py)."""
import json
import pathlib
import re
import unittest

from package import DEFAULT_MODEL, ROOT, bertcl

DATA = ROOT.parent / "shared" / "data" / "squad" / "dev-v1.1.json"
GOLDEN = pathlib.Path(__file__).with_name("qa_golden.json")


class QuestionAnsweringTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.answers = bertcl.pipeline("question-answering", model=DEFAULT_MODEL)

    @unittest.skipUnless(DATA.exists(), f"{DATA} is absent")
    def test_answers_are_those_of_transformers(self):
        data = json.loads(DATA.read_text())
        questions = {qa["id"]: {"question": qa["question"], "context": paragraph["context"]}
                     for article in data["data"] for paragraph in article["paragraphs"] for qa in paragraph["qas"]}
        counts = []
        for group in json.loads(GOLDEN.read_text())["groups"]:
            counts.append(len(group["answers"]))
            for key, expected in group["answers"].items():
                made = self.answers(questions[key], **group["options"])
                self.assertEqual(isinstance(made, dict), isinstance(expected, dict))
                for a, b in zip(*([x] if isinstance(x, dict) else x for x in (made, expected)), strict=True):
                    with self.subTest(question=key, options=group["options"]):
                        self.assertEqual({**a, "score": 0}, {**b, "score": 0})
                        self.assertAlmostEqual(a["score"], b["score"], delta=1e-4)
        self.assertEqual(counts, [200, 20, 20, 20, 20])

    def test_every_form_of_input_gives_the_same(self):
        question, context = "Who made the engine?", "The engine was made by Ada Lovelace in London."
        one = self.answers(question=question, context=context)
        self.assertEqual((one["answer"], one["start"], one["end"]), ("Ada Lovelace", 23, 35))
        both = {"question": question, "context": context}
        self.assertEqual(self.answers(both), one)
        self.assertEqual(self.answers(question, context), one)
        self.assertEqual(self.answers([both, both]), [one, one])

    def test_bad_input_is_named(self):
        with self.assertRaisesRegex(ValueError, "context"):
            self.answers(question="Who?", context="")
        for given in None, 3, "Who?":
            with self.assertRaisesRegex(TypeError, re.escape(f'the input is {given!r}, expected {{"question": a, "context": b}}')):
                self.answers(given)
        with self.assertRaisesRegex(TypeError, "an input is 'Who', expected"):
            self.answers(["Who"])
        with self.assertRaisesRegex(TypeError, "'context' is 3, expected a text"):
            self.answers(question="Who?", context=3)
        with self.assertRaisesRegex(ValueError, "top_k"):
            self.answers(question="Who?", context="Ada.", top_k=0)
        with self.assertRaisesRegex(ValueError, "summarize.*question-answering"):
            bertcl.pipeline("summarize", model=DEFAULT_MODEL)


if __name__ == "__main__":
    unittest.main()
