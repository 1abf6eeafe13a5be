# SPDX-License-Identifier: Apache-2.0
"""bertcl.evaluate and bertcl.quantize: reports, progress, errors."""
import contextlib
import importlib.util
import io
import json
import pathlib
import sys
import tempfile
import threading
import unittest
import unittest.mock

import encoder_model
from package import DEFAULT_MODEL, bertcl

import bertcl.program
import bertcl.progress

MODEL = DEFAULT_MODEL / "model.onnx"
CONTEXT = "The engine was made by Ada Lovelace in London."
QUESTIONS = {"Who made the engine?": "Ada Lovelace", "Where was the engine made?": "London",
             "What did Ada Lovelace make?": "The engine"}
# What depends on the clock.
TIMES = {"seconds", "model_seconds", "tokens_per_second"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


def without_times(report):
    return {**report, "models": [{key: value for key, value in model.items() if key not in TIMES}
                                 for model in report["models"]]}


class Scratch(unittest.TestCase):
    def setUp(self):
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def write(self, name, text):
        (self.path / name).write_text(text)
        return self.path / name

    def squad(self):
        questions = [{"id": str(i), "question": question,
                      "answers": [{"text": answer, "answer_start": CONTEXT.index(answer)}]}
                     for i, (question, answer) in enumerate(QUESTIONS.items())]
        return self.write("data.json", json.dumps({"version": "1.1", "data": [{"title": "", "paragraphs": [
            {"context": CONTEXT, "qas": questions}]}]}))


    @contextlib.contextmanager
    def without_program(self):
        with unittest.mock.patch.object(bertcl.program, "PROGRAM", pathlib.Path("/nowhere/bertcl-program")):
            yield


class EvaluationTest(Scratch):
    def test_the_library_and_the_program_give_one_report(self):
        data = self.squad()
        with self.without_program():
            report = bertcl.evaluate(MODEL, data=data, n_best=5, progress=False)
        program = bertcl.evaluate(MODEL, data=data, n_best=5, progress=False,
                                  predictions=self.path / "predictions.json")
        self.assertEqual(without_times(report), without_times(program))
        self.assertEqual(set(report["models"][0]), set(program["models"][0]))
        self.assertEqual(report["models"][0]["total"], 3)
        self.assertTrue((self.path / "predictions.json").exists())

    def test_tasks_and_several_models(self):
        texts = self.write("texts.tsv", "Ada lives in London.\tA\nWho?\tB\n")
        with self.without_program():
            with self.assertRaisesRegex(bertcl.Error, "model.onnx.*the task needs"):
                bertcl.evaluate(MODEL, data=texts, task="classify", labels=["A", "B"], progress=False)
            with self.assertRaisesRegex(bertcl.Error, "translate"):
                bertcl.evaluate(MODEL, data=texts, task="translate", progress=False)
            report = bertcl.evaluate(MODEL, MODEL, data=self.squad(), limit=1, progress=False)
        self.assertEqual([model["total"] for model in report["models"]], [1, 1])

    def test_each_model_reads_texts_by_the_files_beside_it(self):
        models = [self.path / name / "model.onnx" for name in ("any", "cased")]
        for model in models:
            model.parent.mkdir()
            model.symlink_to(MODEL)
            (model.parent / "vocab.txt").write_bytes((DEFAULT_MODEL / "vocab.txt").read_bytes())
        (models[1].parent / "tokenizer_config.json").write_text('{"do_lower_case": false}')
        data = self.squad()

        def tokens(*models, **options):
            report = bertcl.evaluate(*models, data=data, progress=False, **options)
            return [model["tokens"] for model in report["models"]]

        with self.without_program():
            alone = [tokens(model)[0] for model in models]
            self.assertNotEqual(*alone)
            self.assertEqual(tokens(*models), alone)
            self.assertEqual(tokens(*(model.parent for model in models)), alone, "folders beside one another")
            self.assertEqual(tokens(*map(bertcl.Session, models)), alone)
            self.assertEqual(tokens(bertcl.Session(MODEL.read_bytes()), models[1]), [alone[1]] * 2)
        self.assertEqual(tokens(models[0], compare=models[1]), alone)

    def test_labels_for_the_program_have_no_commas(self):
        with self.assertRaisesRegex(ValueError, "label 'no, really' has a comma; give labels='FILE'"):
            bertcl.evaluate(MODEL, data=self.squad(), task="classify", labels=["yes", "no, really"], compare=MODEL)

    def test_a_session_is_evaluated(self):
        session = bertcl.Session(MODEL, device="cpu")
        data = self.squad()
        with self.without_program():
            report = bertcl.evaluate(session, data=data, progress=False)
        self.assertEqual(without_times(report), without_times(bertcl.evaluate(MODEL, data=data, progress=False)))
        with self.assertRaisesRegex(ValueError, "html.*not supported for a Session"):
            bertcl.evaluate(session, data=data, html=self.path / "page.html")
        with self.assertRaisesRegex(ValueError, "precision"):
            bertcl.evaluate(session, data=data, precision="fp16")
        (self.path / "vocab.txt").write_bytes((DEFAULT_MODEL / "vocab.txt").read_bytes())
        with contextlib.chdir(self.path), self.assertRaisesRegex(bertcl.Error, "no vocabulary.*'vocab'"):
            bertcl.evaluate(bertcl.Session(MODEL.read_bytes()), data=data)

    def test_a_file_pools_as_the_files_beside_it_say(self):
        encoder = self.path / "encoder"
        encoder_model.write_encoder(encoder)
        modules = [{"type": f"sentence_transformers.models.{name}", "path": path}
                   for name, path in (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))]
        (encoder / "modules.json").write_text(json.dumps(modules))
        (encoder / "1_Pooling").mkdir()
        (encoder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
        pairs = self.write("pairs.tsv", "Ada was here.\tAda came.\t4\nWho?\tLondon\t1\nIt is.\tIt was.\t3\n")
        whole = {}
        for task, data, metric in (("retrieval", self.squad(), "mrr_at_10"), ("similarity", pairs, "spearman")):
            with self.without_program():
                report = bertcl.evaluate(encoder / "model.onnx", data=data, task=task, progress=False)
            program = bertcl.evaluate(encoder / "model.onnx", data=data, task=task, progress=False,
                                      predictions=self.path / f"{task}.json")
            self.assertIn(metric, report["models"][0])
            self.assertAlmostEqual(report["models"][0][metric], program["models"][0][metric], 6)
            whole[task] = report["models"][0][metric]
        (encoder / "config_sentence_transformers.json").write_text('{"truncate_dim": 2}')
        report = bertcl.evaluate(encoder / "model.onnx", data=pairs, task="similarity", progress=False)
        self.assertNotEqual(report["models"][0]["spearman"], whole["similarity"], "vectors of two dimensions")

    def test_progress_is_told_and_may_raise(self):
        seen, data = [], self.squad()
        with self.without_program():
            bertcl.evaluate(MODEL, data=data, batch_tokens=32, progress=lambda *now: seen.append(now))
        self.assertEqual([now[1:] for now in seen], [(1, 3, "questions"), (2, 3, "questions"), (3, 3, "questions")])
        self.assertIn(MODEL.name, seen[-1][0])

        def stop(*_):
            raise KeyboardInterrupt

        with self.without_program(), self.assertRaises(KeyboardInterrupt):
            bertcl.evaluate(MODEL, data=data, progress=stop)
        with self.assertRaises(KeyboardInterrupt):
            bertcl.evaluate(MODEL, data=data, progress=stop, nbest=self.path / "nbest.json")

    def test_other_threads_run_meanwhile(self):
        counts, count, over, data = [], 0, threading.Event(), self.squad()
        work = threading.Thread(target=lambda: (bertcl.evaluate(
            MODEL, data=data, batch_tokens=32, progress=lambda *_: counts.append(count)), over.set()))
        work.start()
        while not over.is_set():
            count += 1
        work.join()
        self.assertEqual(len(counts), 3)
        self.assertLess(counts[0], counts[2])  # one batch may be over before a busy machine lets this thread in

    def test_errors_name_what_is_wrong(self):
        with self.assertRaisesRegex(bertcl.Error, "/nowhere.json"):
            bertcl.evaluate(MODEL, data="/nowhere.json", progress=False)
        with self.assertRaisesRegex(bertcl.Error, "/nowhere.onnx"):
            bertcl.evaluate("/nowhere.onnx", data=self.squad(), vocab=DEFAULT_MODEL / "vocab.txt", progress=False)
        with self.assertRaisesRegex(bertcl.Error, "/nowhere.onnx: no such file"):
            bertcl.evaluate("/nowhere.onnx", data=self.squad(), progress=False)
        with self.assertRaisesRegex(bertcl.Error, "model.onnx: sequences of 600"):
            bertcl.evaluate(MODEL, data=self.squad(), max_seq_length=600, progress=False)
        with self.assertRaises(bertcl.Error) as missing:
            bertcl.Session("/nowhere.onnx")
        self.assertEqual(missing.exception.code, "io")
        with self.assertRaises(bertcl.Error) as unwanted:
            bertcl.evaluate(MODEL, data=self.squad(), limit=-1)
        self.assertEqual(unwanted.exception.code, "invalid_argument")
        with contextlib.redirect_stderr(Terminal()), \
                unittest.mock.patch.dict(sys.modules, {"tqdm": None, "tqdm.auto": None}), \
                self.assertRaisesRegex(bertcl.Error, "/nowhere.json"):
            bertcl.evaluate(MODEL, data="/nowhere.json", lower_case=False)
        with self.assertRaisesRegex(TypeError, "no model"):
            bertcl.evaluate(data=self.squad())
        for options, kind, message in (({"limit": "4"}, TypeError, "limit is '4', expected an integer"),
                                       ({"windows": "no"}, TypeError, "windows is 'no', expected True or False"),
                                       ({"null_threshold": "1"}, TypeError, "null_threshold is '1', expected a number"),
                                       ({"max_seq_length": 0}, bertcl.Error, "'max_seq_length' is 0, expected 1 or more"),
                                       ({"limit": 2**70}, bertcl.Error, f"'limit' is {2**70}, expected 0 to"),
                                       ({"n_best": 2**31}, bertcl.Error, "'n_best' is 2147483648, expected 1 to"),
                                       ({"task": 3}, TypeError, "task is 3, expected a text"),
                                       ({"wibble": 1}, bertcl.Error, "^unknown option 'wibble'$"),
                                       ({"limt": 3}, bertcl.Error,
                                        r"^unknown option 'limt' \(did you mean 'limit'\?\)$"),
                                       ({"max_sequence_length": 3}, bertcl.Error, r"\(did you mean 'max_seq_length'"),
                                       ({"limit": True}, TypeError, "limit is True, expected an integer"),
                                       ({"task": "classify", "labels": {"a", "b"}}, TypeError, "labels is {"),
                                       ({"html": False}, TypeError, "html is False, but is not a flag")):
            with self.subTest(options), self.assertRaisesRegex(kind, message):
                bertcl.evaluate(MODEL, data=self.squad(), **options)

    def test_false_is_the_negation_of_a_flag(self):
        data = self.squad()
        usual, cased, other = (without_times(bertcl.evaluate(MODEL, data=data, progress=False, **options))["models"][0]
                               for options in ({"allow_nonfinite": False}, {"no_lower_case": True},
                                               {"lower_case": False}))
        self.assertEqual(other, cased)
        self.assertNotEqual(other["tokens"], usual["tokens"])


class ProgressTest(Scratch):
    def setUp(self):
        super().setUp()
        if importlib.util.find_spec("tqdm") is None:
            self.skipTest("tqdm is not installed")
        import tqdm.auto

        self.made = made = []

        class Counted(tqdm.auto.tqdm):
            def __init__(self, *arguments, **options):
                super().__init__(*arguments, **options)
                made.append(self)

        patch = unittest.mock.patch.object(tqdm.auto, "tqdm", Counted)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_step_has_one_bar(self):
        with contextlib.redirect_stderr(Terminal()):
            draw = bertcl.progress.bars()
            for what, done in ("one", 0), ("one", 1), ("one", 3), ("two", 2), ("two", 3):
                draw(what, done, 3, "things")
        self.assertEqual([(bar.desc, bar.n, bar.total, bar.unit) for bar in self.made],
                         [("one", 3, 3, " things"), ("two", 3, 3, " things")])

    def test_bars_are_drawn_where_somebody_looks(self):
        data = self.squad()
        for screen in Terminal(), io.StringIO():
            with contextlib.redirect_stderr(screen):
                bertcl.evaluate(MODEL, MODEL, data=data, batch_tokens=32)
            self.assertEqual("3/3" in screen.getvalue(), screen.isatty())
        self.assertEqual([(bar.n, bar.total) for bar in self.made], [(3, 3), (3, 3)])

    def test_quantize_draws_a_bar_for_each_pass(self):
        data = self.write("texts.txt", "Ada lives in London.\n")
        for screen in Terminal(), io.StringIO():
            with contextlib.redirect_stderr(screen), self.without_program():
                bertcl.quantize(MODEL, self.path / "q.onnx", data, task="fill-mask", preset="fast", force=True)
            self.assertEqual("1/1" in screen.getvalue(), screen.isatty(), screen.getvalue())
        phases = [bar.desc for bar in self.made]
        self.assertEqual(len(set(phases)), len(phases), phases)

    def test_the_program_tells_its_progress(self):
        data = self.write("texts.txt", "Ada lives in London.\n")
        for screen in Terminal(), io.StringIO():
            with contextlib.redirect_stderr(screen):
                bertcl.quantize(MODEL, self.path / "q.onnx", data, task="fill-mask", preset="fast", force=True,
                                cased=True)
            self.assertEqual("1/1" in screen.getvalue(), screen.isatty(), screen.getvalue())
