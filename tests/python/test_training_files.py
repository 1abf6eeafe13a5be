# SPDX-License-Identifier: Apache-2.0
"""Files of qat.py, finetune.py and evaluate.py: what is written replaces nothing that is needed, and bad input is an
error of one line that names it."""
import argparse
import contextlib
import io
import json
import os
import resource
import shutil
import signal
import unittest
import unittest.mock

import numpy as np
import onnx
from onnx import numpy_helper
from support import bertcl, needs, scratch

import make_bert

needs("torch")

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

import evaluate
import finetune
import onnx_module
import output_files
import qat
import training

torch.set_num_threads(1)
WORDS = "[PAD] [UNK] [CLS] [SEP] [MASK] the cat sat here who good bad film ? a b c d".split()
QUANTIZED = {}
QUESTIONS = {"data": [{"paragraphs": [{"context": "the cat sat here", "qas": [
    {"id": "a", "question": "who sat?", "answers": [{"text": "cat", "answer_start": 4}]}]}]}]}


class Folder(unittest.TestCase):
    """With a small model and data beside its vocabulary."""

    def setUp(self):
        self.folder = scratch(self)
        make_bert.save(make_bert.build(make_bert.Spec.of_size("tiny", vocabulary=len(WORDS))), self.path("model.onnx"))
        self.write("vocab.txt", "\n".join(WORDS) + "\n")
        self.write("questions.json", json.dumps(QUESTIONS))
        self.write("texts.tsv", "good film\tpos\nbad film\tneg\n" * 4)

    def path(self, name):
        return self.folder / name

    def write(self, name, content):
        data = content if isinstance(content, bytes) else content.encode()
        self.path(name).write_bytes(data)
        return self.path(name)

    def run_script(self, script, *arguments, code=0):
        """What it printed; `arguments` that are names of files here are paths."""
        printed, errors = io.StringIO(), io.StringIO()
        paths = [str(self.path(a)) if isinstance(a, str) and self.path(a).exists() else str(a) for a in arguments]
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
            found = script.main([*paths, "--threads", "1"])
        self.assertEqual(found, code, errors.getvalue())
        if code:
            self.assertEqual(errors.getvalue().count("\n"), 1, errors.getvalue())
        return errors.getvalue() if code else printed.getvalue()

    def finetune(self, *options, encoder="model.onnx", data="texts.tsv", output=None, code=0):
        return self.run_script(finetune, "--encoder", encoder, "--data", data, "-o", output or self.path("made.onnx"),
                               "--steps", 1, "--max-length", 16, *options, code=code)

    def quantize(self):
        """Writes q.onnx; one model is quantized once for all tests."""
        model = self.path("model.onnx").read_bytes()
        if model not in QUANTIZED:
            bertcl("quantize", self.path("model.onnx"), "-o", self.path("q.onnx"), "--data", self.path("questions.json"),
                   "--model-only", "--smooth", "off", "--weight-rounding", "nearest")
            QUANTIZED[model] = self.path("q.onnx").read_bytes()
        self.write("q.onnx", QUANTIZED[model])

    def qat(self, *options, data="texts.tsv", output=None, code=0):
        return self.run_script(qat, "--model", "model.onnx", "--quantized", "q.onnx", "--data", data, "-o",
                               output or self.path("made.onnx"), "--steps", 1, "--max-length", 16, *options, code=code)

    def evaluate(self, *options, model="model.onnx", data="questions.json", code=0):
        return self.run_script(evaluate, model, "--data", data, "--max-length", 16, *options, code=code)

    @contextlib.contextmanager
    def nothing_changes(self):
        def state():
            return {path: path.is_file() and path.read_bytes() for path in self.folder.rglob("*")}
        before = state()
        yield
        self.assertEqual(state(), before)


class Outputs(Folder):
    def test_predictions_replace_no_input(self):
        with self.nothing_changes():
            for name in "model.onnx", "questions.json", "vocab.txt":
                self.assertIn(f"{name} is also an input; name another file as --predictions",
                              self.evaluate("--predictions", name, "--force", code=2))
            self.assertIn("texts.tsv exists; --force overwrites it",
                          self.evaluate("--predictions", "texts.tsv", code=2))
            self.assertIn("mkdir -p", self.evaluate("--predictions", self.path("absent/p.json"), code=2))
        for options in ((), ("--force",)):
            self.evaluate("--predictions", self.path("p.json"), *options)
            self.assertEqual(list(json.loads(self.path("p.json").read_text())), ["a"])

    def test_models_replace_no_input(self):
        self.quantize()
        model, external = onnx.load(self.path("model.onnx")), self.path("external.onnx")
        onnx.save(model, external, save_as_external_data=True, location="weights.bin", size_threshold=0)
        encoder = self.path("encoder")
        encoder.mkdir()
        for name in "config.json", "model.safetensors":
            (encoder / name).write_text("{}")
        shutil.copy(self.path("vocab.txt"), encoder)
        self.write("config.json", "{}")
        self.write("tokenizer_config.json", "{}")
        with self.nothing_changes():
            for name in "model.onnx", "q.onnx", "texts.tsv", "vocab.txt", "config.json", "tokenizer_config.json":
                problem = f"{name} is also an input; name another file as --output"
                self.assertIn(problem, self.qat("--force", output=name, code=2))
                if name != "q.onnx":
                    self.assertIn(problem, self.finetune("--force", output=name, code=2))
            self.assertIn("weights.bin is also an input",
                          self.finetune("--force", encoder="external.onnx", output="weights.bin", code=2))
            for file in encoder.iterdir():
                self.assertIn(f"{file.name} is also an input",
                              self.finetune("--force", encoder=encoder, output=file, code=2))

    def test_a_model_is_not_named_as_what_is_read_beside_it(self):
        folder = self.path("other")
        folder.mkdir()
        for name in "vocab.txt", "tokenizer_config.json":
            self.assertIn("bertcl reads a file of this name", self.finetune(output=folder / name, code=2))
        self.assertEqual(list(folder.iterdir()), [])

    def test_devices_and_pipes_stay(self):
        self.quantize()
        os.mkfifo(self.path("pipe"))
        for script in self.qat, self.finetune:
            self.assertIn("it is a device or a pipe", script("--force", output="pipe", code=2))
        self.assertTrue(self.path("pipe").is_fifo())
        self.evaluate("--predictions", "/dev/null")
        for name, expected in (("/dev/null", True), ("/dev/stdout", True), ("/dev/../dev/fd/1", True), ("/proc/self/fd/2", True),
                               ("/proc/self/fd", False), ("/dev", False), ("/dev/shm/p.json", False), ("p.json", False)):
            self.assertEqual(output_files.is_special(name), expected, name)

    def test_files_that_are_open_get_more(self):
        """As standard output does, which > FILE makes an ordinary file: what was printed stays."""
        self.quantize()
        for options in (), ("--force",):
            with open(self.path("printed"), "w") as printed:
                printed.write("printed before\n")
                name = f"/dev/fd/{printed.fileno()}"
                for script in self.qat, self.finetune:
                    self.assertIn("it is a device or a pipe", script(*options, output=name, code=2))
                with contextlib.redirect_stdout(printed):
                    self.assertEqual(evaluate.main([str(self.path("model.onnx")), "--data", str(self.path("questions.json")),
                                                    "--threads", "1", "--predictions", name, *options]), 0)
            before, scores, answers = self.path("printed").read_text().split("\n")
            self.assertEqual((before, json.loads(scores)["total"], list(json.loads(answers))), ("printed before", 1, ["a"]))

    def test_links_stay(self):
        target, link = self.write("target.onnx", ""), self.path("link.onnx")
        target.chmod(0o640)
        link.symlink_to("target.onnx")
        self.finetune("--force", output=link)
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.stat().st_mode & 0o777, 0o640)
        onnx.checker.check_model(onnx.load(target))
        loop = self.path("loop")
        loop.symlink_to("loop")
        self.assertIn("symbolic links", self.finetune("--force", output=loop, code=2))

    def test_a_write_that_fails_leaves_nothing(self):
        model = onnx.load(self.path("model.onnx"))
        made = self.write("made.onnx", "before")
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            with self.nothing_changes():
                for save in onnx_module.save, make_bert.save:
                    with self.assertRaisesRegex(OSError, "too large"):
                        save(model, made)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        for name in "../" * 3, self.folder:
            with self.nothing_changes(), self.assertRaises(IsADirectoryError):
                make_bert.save(model, name)


class Data(Folder):
    def test_vocabularies_and_configurations(self):
        for name, content, problem in (
                ("vocab.txt", "", "vocab.txt: not a vocabulary"), ("vocab.txt", "[PAD]\n[CLS]\n", "vocab.txt: not a vocab"),
                ("tokenizer.json", "{}", "tokenizer.json: not a vocabulary"),
                ("config.json", "[]", "config.json: expected a JSON object"),
                ("config.json", '{"id2label": ["a", "b"]}', "config.json: id2label does not name all classes"),
                ("tokenizer_config.json", '{"do_lower', "tokenizer_config.json: invalid JSON")):
            with self.subTest(name=name, content=content):
                before = self.path(name).read_bytes() if self.path(name).exists() else None
                self.write(name, content)
                self.assertIn(problem, self.finetune(code=2))
                if before is None:
                    self.path(name).unlink()
                else:
                    self.write(name, before)
        self.assertFalse(self.path("made.onnx").exists())

    def test_folders_of_hugging_face(self):
        encoder = self.path("encoder")
        encoder.mkdir()
        shutil.copy(self.path("vocab.txt"), encoder)
        for config, weights, problem in (
                ({"model_type": "bert", "hidden_size": 8, "num_attention_heads": 2}, b"cut", "cannot load it: "),
                ({"model_type": "unheard-of"}, b"", "cannot load it: ")):
            (encoder / "config.json").write_text(json.dumps(config))
            (encoder / "model.safetensors").write_bytes(weights)
            self.assertIn(f"{encoder}: transformers {problem}", self.finetune(encoder=encoder, code=2))

    def test_devices_and_threads(self):
        for options, problem in ((("--device", "meta"), "--device meta: torch cannot use it"),
                                 (("--device", "gpu"), "--device gpu: unknown torch device")):
            self.assertIn(problem, self.evaluate(*options, code=2))
        with self.assertRaisesRegex(ValueError, "--threads must be 0 or more"):
            training.device_of(argparse.Namespace(threads=-4, device="cpu"))

    def test_errors_of_torch_are_one_line(self):
        for error, told in ((torch.OutOfMemoryError("no memory\nat all"), "no memory"), (MemoryError(), "MemoryError"),
                            (torch.OutOfMemoryError(), "OutOfMemoryError")):
            with unittest.mock.patch("training.check_runs", side_effect=error):
                self.assertEqual(self.finetune(code=2), f"finetune: {told}\n")

    def test_memory_of_a_cpu(self):
        """torch has no type for its error."""
        def run(_):
            torch.empty(2**60)
        with contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertEqual(training.main("finetune", run, None), 2)
        self.assertRegex(told.getvalue(), r"^finetune: .*memory.*\n$")

    def test_errors_of_the_scripts_keep_their_traceback(self):
        for error in RuntimeError("shape\n[1]"), NotImplementedError(), RecursionError("too deep"):
            with (self.subTest(repr(error)), unittest.mock.patch("training.check_runs", side_effect=error),
                  self.assertRaises(type(error))):
                self.finetune(code=2)

    def test_first_lines_of_errors(self):
        for error, line in ((ValueError("one\ntwo"), "one"), (ValueError("\n two"), " two"), (RuntimeError(), "RuntimeError")):
            self.assertEqual(training.first_line(error), line)

    def test_texts_without_tokens(self):
        """Of a tokenizer that adds none of its own."""
        self.path("vocab.txt").unlink()
        tokenizer = Tokenizer(WordLevel({word: at for at, word in enumerate(WORDS)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = Whitespace()
        tokenizer.save(str(self.path("tokenizer.json")))
        data = self.write("a.jsonl", '{"text": " ", "label": "x"}\n{"text": "", "label": "y"}\n')
        self.assertEqual(self.finetune(data=data, code=2), f"finetune: {data}: no examples with tokens\n")
        data.write_text(data.read_text() + '{"text": "cat", "label": "x"}\n')
        self.assertEqual(self.finetune(data=data, code=2),
                         f"finetune: {data}: 2 of 3 examples have no tokens; remove them\n")

    def test_questions_are_named_by_every_script(self):
        self.quantize()
        bad = self.write("bad.json", '{"data": []}')
        for told in (self.evaluate(data="bad.json", code=2), self.finetune(data="bad.json", code=2),
                     self.qat(data="bad.json", code=2)):
            self.assertIn(f"{bad}: contains no questions", told)
        blank = json.loads(json.dumps(QUESTIONS))
        blank["data"][0]["paragraphs"][0]["context"] = " "
        self.write("bad.json", json.dumps(blank))
        for script in self.finetune, self.qat:
            self.assertIn(f"{bad}: no examples with tokens", script(data="bad.json", code=2))
        self.assertIn(f"{bad}: no examples with tokens", self.qat("--labels", 1, data="bad.json", code=2))

    def test_vocabularies_of_other_models(self):
        """More tokens than the table has rows, whether the data hold them or not; `bertcl eval` refuses such a model."""
        self.quantize()
        self.write("vocab.txt", "\n".join([*WORDS, "more", "rare"]) + "\n")
        for data in self.path("texts.tsv"), self.write("rare.tsv", "rare\tpos\ngood good\tneg\n" * 5):
            for script in self.finetune, self.qat:
                told = script(data=data, code=2)
                self.assertIn(f"cannot run token {len(WORDS) + 1} of a vocabulary of {len(WORDS) + 2}", told)
                self.assertIn("--vocab FILE", told)

    def test_models_in_half_precision(self):
        model = onnx.load(self.path("model.onnx"))
        self.quantize()
        for tensor in model.graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                values = np.clip(numpy_helper.to_array(tensor), -65504, 65504).astype(np.float16)
                tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        onnx.save(model, self.path("model.onnx"))
        for script in self.finetune, self.qat:
            self.assertRegex(script(code=2), "model.onnx: weight .* is float16; training takes models in float32")

    def test_encoders_without_a_mask_see_no_padding(self):
        """The same in batches and alone, as `bertcl eval` measures it."""
        path = self.path("model.onnx")
        make_bert.save(make_bert.build(make_bert.Spec.of_size("tiny", vocabulary=len(WORDS), mask="where")), path)
        model = onnx.load(path)
        mask = next(i for i in model.graph.input if i.name == "attention_mask")
        model.graph.input.remove(mask)
        ones = numpy_helper.from_array(np.ones((1, 1), np.int64))
        model.graph.node.insert(0, onnx.helper.make_node("Shape", ["input_ids"], ["shape_of_ids"]))
        model.graph.node.insert(1, onnx.helper.make_node("Expand", ["ones", "shape_of_ids"], ["attention_mask"]))
        ones.name = "ones"
        model.graph.initializer.append(ones)
        onnx.save(model, path)
        lines = [" ".join(np.random.default_rng(i).choice(WORDS[5:], 1 + i)) for i in range(12)]
        data = self.write("texts.tsv", "".join(f"{line}\t{i % 2}\n" for i, line in enumerate(lines)))
        made, lengths = self.path("made.onnx"), []

        def collate(examples, found=training.collate, **rest):
            lengths.append({len(e.ids) for e in examples})
            return found(examples, **rest)

        with unittest.mock.patch("training.collate", collate):
            self.finetune("--eval", data, "--steps", 10, "--learning-rate", 1e-3, "--tokens", 512)
            self.quantize()
            self.qat("--held-out", 4, "--force", data=data)
            self.evaluate()
        self.assertGreater(len(lengths), 30)
        self.assertEqual({len(of_batch) for of_batch in lengths}, {1})
        self.assertTrue(made.exists())

    def test_outputs_that_are_no_start_and_end(self):
        model = onnx.load(self.path("model.onnx"))
        name = model.graph.output[0].name
        model.graph.node.append(onnx.helper.make_node("Unsqueeze", [name, "last"], ["vectors"]))
        model.graph.initializer.append(numpy_helper.from_array(np.array([-1]), "last"))
        model.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("vectors", 1, ["b", "s", 1]))
        onnx.save(model, self.path("model.onnx"))
        self.assertIn("model.onnx: the outputs of tokens [1, 10] are [1, 10, 1] and [1, 10]; expected", self.evaluate(code=2))

    def test_encoders_without_a_second_type(self):
        model = onnx.load(self.path("model.onnx"))
        table = next(i for i in model.graph.initializer if "token_type" in i.name)
        table.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(table)[:1], table.name))
        onnx.save(model, self.path("model.onnx"))
        self.finetune()
        self.assertIn("cannot run tokens of type 1", self.finetune("--force", data="questions.json", code=2))

    def test_sequences_without_room_for_a_text(self):
        self.quantize()
        for script in self.finetune, self.qat:
            self.assertIn("leave no room for a text beside 2 special tokens; raise --max-length",
                          script("--max-length", 2, code=2))
            script("--max-length", 3, "--force")
            self.assertTrue(self.path("made.onnx").exists())
            self.path("made.onnx").unlink()
