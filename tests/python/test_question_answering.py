# SPDX-License-Identifier: Apache-2.0
"""The question-answering pipeline against stored answers of transformers (make_qa_golden.py)."""
import json
import pathlib
import re
import subprocess
import tempfile
import unittest

from package import DEFAULT_MODEL, PACKAGE, ROOT, bertcl

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
        other = "Babbage made the engine."
        of_other = self.answers(question, other)
        self.assertEqual(self.answers(question=[question, question], context=context), [one, one])
        self.assertEqual(self.answers(question=[question, question], context=[context, other]), [one, of_other])
        self.assertEqual(self.answers(question=[question], context=context), one)
        self.assertEqual(self.answers(question=(question, question), context=(context, other)), [one, of_other])
        with self.assertRaisesRegex(ValueError, "2 questions and 1 contexts; give one text for all questions, or"):
            self.answers(question=[question, question], context=[context])
        with self.assertRaisesRegex(TypeError, "'context' is .*, expected a text"):
            self.answers(question=question, context=[context])

    def test_long_questions_are_truncated_as_by_the_program(self):
        fact = "The engine was made by Ada Lovelace in London."
        for question, context in (("who " * 378, fact), ("who " * 600, fact), ("who " * 253, " ".join([fact] * 50)),
                                  ("Who made the engine? " + "In which town? " * 80, fact),
                                  ("unaffable " * 63 + "Who made it?", fact)):  # the limit is inside of a word
            with self.subTest(question=question[:30], words=len(question.split())):
                made, expected = self.answers(question=question, context=context), self.of_program(question, context)
                self.assertEqual((made["answer"], made["start"]), (expected["answer"], expected["answer_start"]))
        whole = self.answers(question="Who made the engine? " * 20, context=fact, max_question_len=5)
        self.assertEqual(whole, self.answers(question="Who made the engine?", context=fact))

    def of_program(self, question, context):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(context)
            file.flush()
            done = subprocess.run([PACKAGE / "bertcl" / "bertcl-program", "answer", DEFAULT_MODEL / "model.onnx",
                                   "--context", file.name, "-q", question, "--json", "-"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_what_leaves_no_room_for_the_context_is_named(self):
        given = {"question": "Who made the engine?", "context": "The engine was made by Ada Lovelace. " * 20}
        for options, message in (({"doc_stride": 400}, "doc_stride is 400, expected less than the 376 tokens"),
                                 ({"doc_stride": -1}, "doc_stride is -1"),
                                 ({"max_seq_len": 20, "doc_stride": 12}, "doc_stride is 12, .* the 12 tokens"),
                                 ({"max_seq_len": 8}, "max_seq_len 8 leaves no room"),
                                 ({"max_question_len": -1}, "max_question_len is -1")):
            with self.subTest(options), self.assertRaisesRegex(ValueError, message):
                self.answers(given, **options)
        self.assertIn("Ada Lovelace", self.answers(given, max_seq_len=20)["answer"])

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
