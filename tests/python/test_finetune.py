# SPDX-License-Identifier: Apache-2.0
"""finetune.py: a small encoder learns a task, and what is written answers as torch does."""
import contextlib
import io
import json
import string
import unittest
import unittest.mock

import numpy as np
import onnx
from onnx import numpy_helper
from support import CALIBRATION, VOCABULARY, Reference, bertcl, bertcl_run, needs, scratch, worst

import make_bert

needs("torch")

import torch

import finetune
import heads
import squad_data
import task_data
import training

torch.set_num_threads(1)
GOOD, BAD = "good fine lovely superb pleasant".split(), "bad dull awful poor boring".split()


def write_texts(path, count, seed):
    """Texts that one word decides, as .tsv or .jsonl."""
    random = np.random.default_rng(seed)
    with open(path, "w", encoding="utf-8") as file:
        if path.suffix == ".tsv":
            file.write("sentence\tlabel\n")
        for _ in range(count):
            good = bool(random.integers(2))
            words = [*random.choice("the film was seen by many people here".split(), random.integers(2, 8)),
                     random.choice(GOOD if good else BAD)]
            text, label = " ".join(random.permutation(words)), "yes" if good else "no"
            file.write(f"{text}\t{label}\n" if path.suffix == ".tsv"
                       else json.dumps({"text": text, "label": label}) + "\n")


class FineTuning(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.encoder = self.folder / "encoder.onnx"
        make_bert.save(make_bert.build(make_bert.Spec.of_size("tiny", vocabulary=30522, opset=13)),
                       self.encoder)

    def hugging_face(self):
        import transformers
        transformers.logging.disable_progress_bar()
        torch.manual_seed(0)
        config = transformers.BertConfig(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                                         intermediate_size=128, vocab_size=30522)
        folder = self.folder / "encoder"
        transformers.BertModel(config).save_pretrained(folder)
        return folder

    def without_head(self):
        model, path = onnx.load(self.encoder), self.folder / "bare.onnx"
        head = next(n for n in model.graph.node if n.name == "/qa_outputs/MatMul")
        del model.graph.output[:]
        model.graph.output.append(onnx.helper.make_tensor_value_info(
            head.input[0], onnx.TensorProto.FLOAT, ["batch", "sequence", 64]))
        onnx.save(model, path)
        return path

    def finetune(self, encoder, *options):
        made, printed = self.folder / "made.onnx", io.StringIO()
        with contextlib.redirect_stdout(printed):
            code = finetune.main(["--encoder", str(encoder), "-o", str(made), "--vocab", str(VOCABULARY),
                                  "--threads", "1", "--force", *map(str, options)])
        self.assertEqual(code, 0)
        found = {name: json.loads(value) for name, separator, value in (
            line.partition(": ") for line in printed.getvalue().splitlines()) if name in ("before", "after")}
        self.assertEqual(list(found), ["before", "after"])
        self.assertLess(list(found["before"].values())[0], list(found["after"].values())[0])
        return made, found["after"]

    def check_alike(self, made, examples):
        """ONNX Runtime and bertcl on the file."""
        ids, mask, types = (x.numpy() for x in training.collate(examples, "cpu", 0))
        inputs = dict(input_ids=ids, attention_mask=mask, token_type_ids=types)
        expected = Reference(made).run(inputs)
        real = mask if next(iter(expected.values())).shape == mask.shape else np.ones(len(mask))
        difference, extent = worst(expected, bertcl_run(made, inputs), real)
        self.assertLess(difference, 1e-4 * extent)
        return expected

    def test_classification(self):
        train, dev = self.folder / "train.tsv", self.folder / "dev.jsonl"
        write_texts(train, 400, 0)
        write_texts(dev, 60, 1)
        for encoder, rate in ((self.encoder, 1e-3), (self.hugging_face(), 1e-3)):
            with self.subTest(encoder=encoder.name):
                made, result = self.finetune(encoder, "--data", train, "--eval", dev, "--steps", 60,
                                             "--tokens", 512, "--learning-rate", rate)
                self.assertEqual(result["total"], 60)
                self.assertGreater(result["accuracy"], 95)
                model = onnx.load(made)
                classes = json.loads({p.key: p.value for p in model.metadata_props}["bertcl.classes"])
                self.assertEqual(classes, ["no", "yes"])
                rows, _ = task_data.load_texts(dev, names=classes)
                tokenizer = squad_data.load_tokenizer(VOCABULARY)
                logits = self.check_alike(made, task_data.encode_texts(rows, tokenizer, 64))["logits"]
                right = np.mean(logits.argmax(-1) == [label for _, label in rows])
                self.assertAlmostEqual(100 * right, result["accuracy"])

    def test_eval_reads_classes_and_case(self):
        """`bertcl eval` finds what the model was trained with: here POSITIVE comes second, and in upper case."""
        data = self.folder / "train.tsv"
        data.write_text("".join(f"{word}\t{label}\n" for word, label in (("GOOD", "positive"), ("bad", "negative"))))
        letters = [c for c in string.ascii_letters]
        vocabulary = self.folder / "cased.txt"
        vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters,
                                         *("##" + c for c in letters)]) + "\n")
        made = self.folder / "made" / "model.onnx"
        made.parent.mkdir()
        arguments = ["--encoder", str(self.encoder), "-o", str(made), "--vocab", str(vocabulary), "--threads", "1",
                     "--data", str(data), "--steps", "60", "--learning-rate", "1e-3", "--force"]
        with contextlib.redirect_stdout(io.StringIO()):
            self.assertEqual(finetune.main([*arguments, "--cased"]), 0)
        self.assertEqual(json.loads((made.parent / "tokenizer_config.json").read_text()),
                         {"do_lower_case": False, "strip_accents": None, "tokenize_chinese_chars": True})
        dev = self.folder / "dev.tsv"
        dev.write_text("GOOD\t1\nbad\t0\n")
        quantized = made.with_name("int8.onnx")
        bertcl("quantize", made, "-o", quantized, "--task", "classify", "--data", dev)
        for model in made, quantized:
            told = json.loads(bertcl("eval", model, "--task", "classify", "--data", dev, "--json", "-").stdout)
            self.assertEqual(told["models"][0]["accuracy"], 100)
            told = json.loads(bertcl("eval", model, "--task", "classify", "--data", dev, "--json", "-",
                                     "--labels", "positive,negative").stdout)
            self.assertEqual(told["models"][0]["accuracy"], 0)
        for case, problem in (([], "holds models with do_lower_case=False, this one has True"),
                              (["--cased", "--vocab", str(VOCABULARY)], "vocab.txt differs from")):
            with self.subTest(problem), contextlib.redirect_stderr(io.StringIO()) as told:
                self.assertEqual(finetune.main([*arguments, *case]), 2)
                self.assertIn(problem, told.getvalue())

    def test_question_answering(self):
        """From a folder, a graph with a head, and one without: a few questions learned by heart."""
        bare = self.without_head()
        self.assertIsNone(heads.OnnxEncoder(self.encoder, "qa", 2, "cpu").head)
        self.assertIsNotNone(heads.OnnxEncoder(bare, "qa", 2, "cpu").head)
        for encoder in (self.hugging_face(), self.encoder, bare):
            with self.subTest(encoder=encoder.name):
                made, result = self.finetune(encoder, "--data", CALIBRATION, "--eval", CALIBRATION,
                                             "--limit", 8, "--eval-limit", 8, "--steps", 60,
                                             "--tokens", 1024, "--learning-rate", 2e-3,
                                             "--max-length", 128)
                self.assertGreater(result["f1"], 60)
                windows = squad_data.make_windows(squad_data.load_questions(CALIBRATION, 8),
                                                  squad_data.load_tokenizer(VOCABULARY), 128)
                self.assertEqual(set(self.check_alike(made, windows)), {"start_logits", "end_logits"})
                told = json.loads(bertcl("eval", made, "--data", CALIBRATION, "--limit", 8, "--json", "-",
                                         "--max-seq-length", 128).stdout)["models"][0]
                self.assertAlmostEqual(told["f1"], result["f1"], delta=0.1)

    def train(self, encoder, data, *options, name="made.onnx", code=0):
        """A file that a few steps made, and what was printed as an error."""
        made, errors = self.folder / name, io.StringIO()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
            found = finetune.main(["--encoder", str(encoder), "--data", str(data), "-o", str(made), "--vocab",
                                   str(VOCABULARY), "--threads", "1", "--max-length", "64", *map(str, options)])
        self.assertEqual(found, code, errors.getvalue())
        return made, errors.getvalue()

    def texts(self, name, *labels):
        path = self.folder / name
        path.write_text("".join(f"text number {i} is {label}\t{label}\n" for i, label in enumerate(labels * 3)))
        return path

    def test_another_head_replaces_that_of_the_file(self):
        """Of questions by classes, of two classes by three, and of classes by questions."""
        two, three = self.texts("two.tsv", "a", "b"), self.texts("three.tsv", "a", "b", "c")
        questions, _ = self.train(self.encoder, CALIBRATION, "--limit", 2, "--steps", 1, name="questions.onnx")
        of_two, _ = self.train(questions, two, "--steps", 1, name="two.onnx")
        of_three, _ = self.train(of_two, three, "--steps", 1, name="three.onnx")
        again, _ = self.train(of_three, CALIBRATION, "--limit", 2, "--steps", 1, name="again.onnx")
        self.assertEqual(onnx.load(of_two).graph.output[0].type.tensor_type.shape.dim[1].dim_value, 2)
        self.check_alike(of_two, [task_data.Example([101, 7, 102], [0, 0, 0], (0,))])
        self.check_alike(of_three, [task_data.Example([101, 7, 102], [0, 0, 0], (0,))])
        self.check_alike(again, [task_data.Example([101, 7, 102], [0, 0, 0], (0, 0))])
        self.assertEqual(len(onnx.load(again).graph.node), len(onnx.load(questions).graph.node))
        self.assertIn("bertcl.classes", {p.key for p in onnx.load(of_three).metadata_props})
        self.assertNotIn("bertcl.classes", {p.key for p in onnx.load(again).metadata_props})

    def test_a_head_that_stays_keeps_the_order_of_its_classes(self):
        data = self.texts("data.tsv", "b", "a", "c")
        made, _ = self.train(self.encoder, data, "--steps", 30, "--learning-rate", 1e-3, name="first.onnx")
        model = onnx.load(made)
        entry = next(p for p in model.metadata_props if p.key == "bertcl.classes")
        self.assertEqual(entry.value, '["a", "b", "c"]')
        entry.value = '["b", "c", "a"]'
        onnx.save(model, made)
        again, _ = self.train(made, data, "--steps", 0)
        self.assertEqual({p.key: p.value for p in onnx.load(again).metadata_props}["bertcl.classes"], entry.value)

    def test_an_encoder_without_token_types_and_its_tokenizer(self):
        import transformers
        torch.manual_seed(0)
        encoder, data = self.folder / "distilbert", self.texts("data.tsv", "a", "b")
        config = transformers.DistilBertConfig(dim=64, n_layers=1, n_heads=4, hidden_dim=128)
        transformers.DistilBertModel(config).save_pretrained(encoder)
        squad_data.load_tokenizer(VOCABULARY).save(str(encoder / "tokenizer.json"))
        made = self.folder / "made" / "model.onnx"
        made.parent.mkdir()
        arguments = ["--encoder", str(encoder), "--data", str(data), "--eval", str(data), "--steps", "2",
                     "--threads", "1"]
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(finetune.main([*arguments, "-o", str(made)]), 0)
        after = json.loads(printed.getvalue().splitlines()[-1].removeprefix("after: "))
        self.assertEqual((made.parent / "tokenizer.json").read_bytes(), (encoder / "tokenizer.json").read_bytes())
        told = json.loads(bertcl("eval", made, "--task", "classify", "--data", data, "--json", "-").stdout)
        self.assertEqual(told["models"][0]["accuracy"], after["accuracy"])
        with contextlib.redirect_stderr(io.StringIO()) as errors:
            arguments += ["--vocab", str(VOCABULARY), "-o", str(made.parent / "x.onnx")]
            self.assertEqual(finetune.main(arguments), 2)
        self.assertIn("holds a tokenizer.json, which bertcl reads first", errors.getvalue())

    def test_settings_of_another_tokenizer_stay(self):
        settings = self.folder / "tokenizer_config.json"
        settings.write_text('{"do_lower_case": false, "model_max_length": 128}')
        _, errors = self.train(self.encoder, self.texts("data.tsv", "a", "b"), "--vocab", VOCABULARY, code=2)
        self.assertIn("holds models with do_lower_case=False, this one has True", errors)

    def test_end_logits_may_come_first(self):
        model, path = onnx.load(self.encoder), self.folder / "reverse.onnx"
        model.graph.output.reverse()
        onnx.save(model, path)
        ids = torch.ones(1, 5, dtype=torch.int64)
        with torch.no_grad():
            expected, found = (heads.OnnxEncoder(file, "qa", 2, "cpu").logits(ids, ids, 0 * ids)
                               for file in (self.encoder, path))
        self.assertTrue(all(torch.equal(a, b) for a, b in zip(expected, found)))

    def test_what_cannot_be_written_is_known_before_the_training(self):
        data, folder = self.texts("data.tsv", "a", "b"), self.folder / "folder"
        folder.mkdir()
        made, _ = self.train(self.encoder, data, "--steps", 0)
        before = self.encoder.read_bytes()
        for name, options, problem in (("made.onnx", [], "exists; --force overwrites it"),
                                       ("encoder.onnx", ["--force"], "encoder.onnx is also an input"),
                                       ("folder", ["--force"], "folder is a folder"),
                                       ("absent/made.onnx", [], "cannot write to folder"),
                                       ("x.onnx", ["--device", "gpu"], "--device gpu: unknown torch device"),
                                       ("x.onnx", ["--max-length", 2000, "--data", self.long_text()],
                                        "cannot run a sequence of 1502 tokens")):
            with self.subTest(problem):
                self.assertIn(problem, self.train(self.encoder, data, *options, name=name, code=2)[1])
        self.assertEqual(self.encoder.read_bytes(), before)
        self.train(self.encoder, data, "--steps", 0, "--force")

    def long_text(self):
        path = self.folder / "long.tsv"
        path.write_text("the " * 1500 + "\ta\nshort\tb\n")
        return path

    def test_an_interrupt_keeps_the_weights_so_far(self):
        data, steps = self.texts("data.tsv", "a", "b"), []

        def loss(*given, found=training.label_loss):
            steps.append(0)
            if len(steps) == 3:
                raise KeyboardInterrupt
            return found(*given)

        with unittest.mock.patch("training.label_loss", loss):
            interrupted, _ = self.train(self.encoder, data, "--steps", 9)
        model = onnx.load(interrupted)
        self.assertEqual({p.key: p.value for p in model.metadata_props}["bertcl.finetune.steps"], "2")
        start, _ = self.train(self.encoder, data, "--steps", 0, name="start.onnx")
        name = next(n.input[1] for n in model.graph.node if n.name == "head/MatMul")
        weights = [next(numpy_helper.to_array(i) for i in m.graph.initializer if i.name == name)
                   for m in (model, onnx.load(start))]
        self.assertFalse(np.array_equal(*weights))

    def test_names_of_classes_that_numbers_would_count_are_not_those_of_the_data(self):
        folder, data = self.hugging_face(), self.texts("data.tsv", "0", "1")
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**config, "id2label": {"0": "O", "1": "B-PER", "2": "I-PER"}}))
        made, _ = self.train(folder, data, "--steps", 0)
        self.assertEqual({p.key: p.value for p in onnx.load(made).metadata_props}["bertcl.classes"], '["0", "1"]')

    def test_a_first_line_that_may_be_a_header_is_named(self):
        data = self.texts("data.tsv", "a", "b")
        self.assertEqual(self.train(self.encoder, data, "--steps", 0)[1], "")
        data.write_text("review\tsentiment\n" + data.read_text())
        self.assertIn("data.tsv: only the first text has the label 'sentiment'; if that is a header",
                      self.train(self.encoder, data, "--steps", 0, "--force")[1])

    def test_bad_data_are_named(self):
        data = self.folder / "texts.tsv"
        cases = (("a\tb\tc\td\n", "texts.tsv:1: 4 columns, expected 2"), ("sentence\tlabel\n", "no texts"),
                 ("fine\t1\n", "all texts have the label"))
        for text, problem in cases:
            with self.subTest(problem), contextlib.redirect_stderr(io.StringIO()) as told:
                data.write_text(text)
                code = finetune.main(["--encoder", str(self.encoder), "--data", str(data), "-o",
                                      str(self.folder / "x.onnx"), "--vocab", str(VOCABULARY)])
                self.assertEqual(code, 2)
                self.assertIn(problem, told.getvalue())
