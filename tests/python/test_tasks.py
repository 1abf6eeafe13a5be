# SPDX-License-Identifier: Apache-2.0
"""`bertcl eval --task` and `bertcl quantize --task` on real data against ONNX Runtime, the tokenizer of
Hugging Face, and metrics written out here; models have random weights and a cased vocabulary."""
import collections
import csv
import json
import logging
import unittest
import zipfile

import numpy as np
from support import SHARED, Reference, bertcl, inspect, needs, scratch

needs("torch", "transformers", "tokenizers")

import tokenizers
import torch
import transformers
from tokenizers import models, normalizers, pre_tokenizers, trainers
from transformer_models import export_outputs

DATA = SHARED / "data" / "tasks"
LONGEST = 128
MARGIN = 1e-3  # logits that are closer than this may come in any order
LETTERS = ["Café Zürich", "ÉCOLE naïve", "Ångström", "Łódź señor", "İstanbul", "the Σίσυφος", "漢字 in one"]
TAGS = ["O"] + [f"{place}-{type}" for type in ("corporation", "creative-work", "group", "location",
                                              "person", "product") for place in "BI"]


def shared(name):
    if not (DATA / name).exists():
        raise unittest.SkipTest(f"third-party file ../shared/data/tasks/{name} is absent")
    return DATA / name


def read_sst2(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [(text.strip(), int(label)) for text, label in (line.rsplit("\t", 1) for line in lines)]


def read_stsb(path):
    with open(path, encoding="utf-8", newline="") as file:
        return [(a, b, float(score)) for a, b, score in csv.reader(file)]


def read_wnut17(path):
    sentences = [[]]
    for line in path.read_text(encoding="utf-8-sig").splitlines():
        columns = line.strip("\ufeff").split()
        if columns:
            sentences[-1].append((columns[0], columns[-1]))
        elif sentences[-1]:
            sentences.append([])
    return [s for s in sentences if s]


def entities(tags):
    """Spans by the rules of conlleval."""
    found, before = [], "O"
    for i, tag in enumerate(tags):
        goes_on = tag[0] == "I" and before != "O" and before[2:] == tag[2:]
        if goes_on:
            found[-1] = found[-1][:2] + (i,)
        elif tag != "O":
            found.append((tag[2:], i, i))
        before = tag
    return found


def ranks(values):
    values = np.asarray(values)
    return (values[None] < values[:, None]).sum(1) + ((values[None] == values[:, None]).sum(1) + 1) / 2


def twister(seed):
    """Numbers of std::mt19937_64 (Nishimura 2000)."""
    mask = 2**64 - 1
    state = [seed]
    for i in range(1, 312):
        state.append((6364136223846793005 * (state[-1] ^ (state[-1] >> 62)) + i) & mask)
    while True:
        for i in range(312):
            x = (state[i] & ~0x7FFFFFFF & mask) | (state[(i + 1) % 312] & 0x7FFFFFFF)
            state[i] = state[(i + 156) % 312] ^ (x >> 1) ^ (0xB5026F5AA96619E9 if x & 1 else 0)
        for y in list(state):
            y ^= (y >> 29) & 0x5555555555555555
            y ^= (y << 17) & 0x71D67FFFEDA60000
            y ^= (y << 37) & 0xFFF7EEE000000000
            yield y ^ (y >> 43)


class Tasks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        logging.disable(logging.WARNING)
        cls.folder = scratch(cls)
        texts = [text for a, b, _ in read_stsb(shared("stsb/stsb-en-dev.csv")) for text in (a, b)]
        texts += [" ".join(w for w, _ in s) for s in read_wnut17(shared("wnut17/emerging.dev.conll"))]
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
        trained = cls.tokenizer(None, lower_case=False)
        trained.train_from_iterator(texts + LETTERS * 50, trainers.WordPieceTrainer(
            vocab_size=6000, special_tokens=special, show_progress=False))
        cls.vocabulary = trained.get_vocab()
        ids = sorted(cls.vocabulary, key=cls.vocabulary.get)
        (cls.folder / "vocab.txt").write_text("\n".join(ids) + "\n", encoding="utf-8")
        (cls.folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
        cls.models = {}

    @staticmethod
    def tokenizer(vocabulary, lower_case, strip_accents=None):
        made = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
        made.normalizer = normalizers.BertNormalizer(lowercase=lower_case, strip_accents=strip_accents)
        made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        return made

    def pieces(self, text, lower_case=False, strip_accents=None):
        tokenizer = self.tokenizer(self.vocabulary, lower_case, strip_accents)
        return tokenizer.encode(text, add_special_tokens=False).ids

    def model(self, head, labels=2):
        """BERT with random weights and that head, as ONNX; made once."""
        path = self.folder / f"{head}{labels}.onnx"
        if path.exists():
            return path
        torch.manual_seed(labels)
        config = transformers.BertConfig(
            vocab_size=len(self.vocabulary), hidden_size=64, num_hidden_layers=2, num_labels=labels,
            num_attention_heads=4, intermediate_size=128, max_position_embeddings=LONGEST)
        config._attn_implementation = "eager"
        made = getattr(transformers, "BertFor" + head)(config).eval()
        with torch.no_grad():
            for name, parameter in made.named_parameters():
                if parameter.dim() == 1:
                    parameter += 0.1 * torch.randn_like(parameter)
                else:
                    parameter *= 10
        rows = "by_text" if head == "SequenceClassification" else "by_token"
        export_outputs(made, path, **{rows: ["logits"]})
        return path

    @staticmethod
    def logits(model, sequences):
        """Of ONNX Runtime, one sequence at a time: [CLS] first [SEP], or [CLS] first [SEP] second [SEP]."""
        session = Reference(model)
        for first, second in sequences:
            ids = np.array([first + second])
            types = np.array([[0] * len(first) + [1] * len(second)])
            yield session.run(dict(input_ids=ids, attention_mask=np.ones_like(ids),
                                   token_type_ids=types))["logits"][0]

    def enclosed(self, pieces, room=LONGEST - 2):
        return [self.vocabulary["[CLS]"], *pieces[:room], self.vocabulary["[SEP]"]]

    def evaluate(self, task, model, data, *options):
        """The object of the model in the JSON of eval, and the predictions."""
        report, predictions = self.folder / "report.json", self.folder / "predictions.json"
        bertcl("eval", model, "--task", task, "--data", data, "--json", report, "--predictions",
               predictions, "--force", *options)
        return (json.loads(report.read_text())["models"][0],
                json.loads(predictions.read_text(encoding="utf-8")))

    def assert_chosen(self, logits, chosen):
        """`chosen` is an index of the largest value, or of one as large but for rounding."""
        self.assertLess(logits.max() - logits[chosen], MARGIN * max(1.0, np.abs(logits).max()))

    def check_polarity(self, task, rows, sequences, data, names, *options):
        model = self.model("SequenceClassification")
        found, labels = self.evaluate(task, model, data, *options)
        self.assertEqual(list(labels), [id for id, _ in rows])
        classes = [names.index(label) for label in labels.values()]
        for expected, chosen in zip(self.logits(model, sequences), classes):
            self.assert_chosen(expected, chosen)
        self.assertEqual(set(classes), {0, 1}, "the model tells nothing apart")
        accuracy = 100 * np.mean([c == label for c, (_, label) in zip(classes, rows)])
        self.assertAlmostEqual(found["accuracy"], accuracy, places=9)
        self.assertEqual(found["total"], len(rows))
        return found

    def test_sst2(self):
        rows = read_sst2(shared("sst2/dev.tsv"))
        sequences = [(self.enclosed(self.pieces(text)), []) for text, _ in rows]
        found = self.check_polarity("classify", [(str(i), label) for i, (_, label) in enumerate(rows)],
                                    sequences, DATA / "sst2/dev.tsv", ["0", "1"])
        self.assertEqual(found["tokens"], sum(len(first) for first, _ in sequences))

    def reviews(self, count):
        with zipfile.ZipFile(shared("movie_reviews.zip")) as archive:
            names = sorted(n for n in archive.namelist() if n.endswith(".txt"))
            sides = [[n for n in names if f"/{side}/" in n][:count // 2] for side in ("neg", "pos")]
            chosen = [name for pair in zip(*sides) for name in pair]
            return [(n.split("/", 1)[1], int("/pos/" in n), archive.read(n).decode()) for n in chosen]

    def test_movie_reviews_are_cut(self):
        reviews = self.reviews(60)
        found = self.check_polarity("classify", [(id, label) for id, label, _ in reviews],
                                    [(self.enclosed(self.pieces(text)), []) for *_, text in reviews],
                                    DATA / "movie_reviews.zip", ["neg", "pos"], "--limit", 60)
        self.assertEqual(found["truncated"], 60)

    def test_movie_reviews_in_windows(self):
        reviews, model = self.reviews(20), self.model("SequenceClassification")
        found, labels = self.evaluate("classify", model, DATA / "movie_reviews.zip", "--limit", 20,
                                      "--windows")
        windows = 0
        for id, _, text in reviews:
            pieces = self.pieces(text)
            count = -(-len(pieces) // (LONGEST - 2))
            windows += count
            parts = [pieces[i * len(pieces) // count:(i + 1) * len(pieces) // count] for i in range(count)]
            logits = list(self.logits(model, [(self.enclosed(part), []) for part in parts]))
            self.assert_chosen(np.mean(logits, axis=0), ["neg", "pos"].index(labels[id]))
        self.assertEqual((found["features"], found["truncated"]), (windows, 0))

    def test_stsb(self):
        model, rows = self.model("SequenceClassification", 1), read_stsb(shared("stsb/stsb-en-dev.csv"))
        found, predicted = self.evaluate("similarity", model, DATA / "stsb/stsb-en-dev.csv")
        sequences = [(self.enclosed(self.pieces(a)), self.enclosed(self.pieces(b))[1:]) for a, b, _ in rows]
        expected = np.array([float(x[0]) for x in self.logits(model, sequences)])
        np.testing.assert_allclose(list(predicted.values()), expected, atol=2e-3)
        values, scores = np.array(list(predicted.values())), np.array([score for *_, score in rows])
        self.assertAlmostEqual(found["pearson"], np.corrcoef(values, scores)[0, 1], places=9)
        self.assertAlmostEqual(found["spearman"], np.corrcoef(ranks(values), ranks(scores))[0, 1], places=9)

    def check_wnut17(self, sentences, data, options, **casing):
        model = self.model("TokenClassification", len(TAGS))
        found, predicted = self.evaluate("tag", model, data, "--labels", ",".join(TAGS), *options)
        sequences, firsts = [], []
        for sentence in sentences:
            pieces, first = [], []
            for word, _ in sentence:
                own = self.pieces(word, **casing)
                first.append(len(pieces) + 1 if own else None)
                pieces += own
            self.assertLessEqual(len(pieces), LONGEST - 2)
            sequences.append((self.enclosed(pieces), []))
            firsts.append(first)
        for logits, first, tags in zip(self.logits(model, sequences), firsts, predicted.values()):
            self.assertEqual(len(first), len(tags))
            for place, tag in zip(first, tags):
                if place is None:
                    self.assertEqual(tag, "O")
                else:
                    self.assert_chosen(logits[place], TAGS.index(tag))
        truths = {(i,) + e for i, s in enumerate(sentences) for e in entities([t for _, t in s])}
        guesses = {(i,) + e for i, tags in enumerate(predicted.values()) for e in entities(tags)}
        right = len(truths & guesses)
        self.assertAlmostEqual(found["precision"], 100 * right / len(guesses), places=9)
        self.assertAlmostEqual(found["recall"], 100 * right / len(truths), places=9)
        self.assertAlmostEqual(found["f1"], 200 * right / (len(guesses) + len(truths)), places=9)
        return found

    def test_wnut17(self):
        sentences = read_wnut17(shared("wnut17/emerging.dev.conll"))[:400]
        found = self.check_wnut17(sentences, DATA / "wnut17/emerging.dev.conll", ["--limit", 400])
        self.assertGreater(found["f1"], 0)

    def test_case_and_accents(self):
        sentences = read_wnut17(shared("wnut17/emerging.dev.conll"))[:60]
        sentences += [[(word, "B-location") for word in text.split()] for text in LETTERS]
        data = self.folder / "words.conll"
        data.write_text("\n".join("".join(f"{w}\t{t}\n" for w, t in s) for s in sentences),
                        encoding="utf-8")
        tokens = collections.Counter()
        for lower_case in None, False, True:
            for strip_accents in None, False, True:
                with self.subTest(lower_case=lower_case, strip_accents=strip_accents):
                    options = [] if lower_case is None else [
                        "--lower-case" if lower_case else "--no-lower-case"]
                    options += [] if strip_accents is None else [
                        "--strip-accents" if strip_accents else "--no-strip-accents"]
                    found = self.check_wnut17(sentences, data, options, lower_case=bool(lower_case),
                                              strip_accents=strip_accents)
                    tokens[lower_case, strip_accents] = found["tokens"]
        self.assertEqual(tokens[None, None], tokens[False, False], "tokenizer_config.json says so")
        self.assertGreater(tokens[True, True], tokens[False, False], "the vocabulary is cased")

    def test_the_tokenizer_that_transformers_saves(self):
        """A tokenizer.json, without a vocab.txt."""
        sentences = [s for s in read_wnut17(shared("wnut17/emerging.dev.conll"))[:150]
                     if max(len(word) for word, _ in s) <= 100]  # longer ones it leaves unknown
        sentences += [[(word, "B-location") for word in text.split()] for text in LETTERS]
        data = self.folder / "words.conll"
        data.write_text("\n".join("".join(f"{w}\t{t}\n" for w, t in s) for s in sentences),
                        encoding="utf-8")
        for lower_case in False, True:
            with self.subTest(lower_case=lower_case):
                folder = self.folder / f"saved-{lower_case}"
                transformers.BertTokenizer(vocab=dict(self.vocabulary),
                                           do_lower_case=lower_case).save_pretrained(folder)
                self.assertFalse((folder / "vocab.txt").exists())
                (folder / "tokenizer_config.json").unlink()  # tokenizer.json says it alone
                self.check_wnut17(sentences, data, ["--vocab", folder / "tokenizer.json"],
                                  lower_case=lower_case)

    def test_the_drop_of_masked_tokens_is_that_of_eval(self):
        texts = [" ".join(w for w, _ in s) for s in read_wnut17(shared("wnut17/emerging.dev.conll"))[:40]]
        data, quantized = self.folder / "drop.txt", self.folder / "q.onnx"
        data.write_text("\n".join(texts), encoding="utf-8")
        model, report = self.model("MaskedLM"), self.folder / "drop.json"
        bertcl("quantize", model, "-o", quantized, "--task", "fill-mask", "--data", data, "--samples", 4,
               "--max-drop", 100, "--drop-data", data, "--json", report)
        drop = json.loads(report.read_text())["max_drop"]
        before, after = (self.evaluate("fill-mask", path, data)[0]["accuracy"] for path in (model, quantized))
        self.assertEqual((drop["unit"], drop["questions"]), ("accuracy", 40))
        self.assertAlmostEqual(drop["float_score"], before, places=9)
        self.assertAlmostEqual(drop["drop"], before - after, places=9)

    def test_masked_tokens(self):
        texts = [" ".join(w for w, _ in s) for s in read_wnut17(shared("wnut17/emerging.dev.conll"))[:150]]
        texts += [self.reviews(2)[0][2].replace("\n", " ")]  # several sequences
        data = self.folder / "texts.txt"
        data.write_text("\n".join(texts), encoding="utf-8")
        model = self.model("MaskedLM")
        found, predicted = self.evaluate("fill-mask", model, data)
        names = {id: token for token, id in self.vocabulary.items()}
        right = total = 0
        for seed, text in enumerate(texts):
            random, pieces, shown, places, targets = twister(seed), self.pieces(text), [], [], []
            if not pieces:
                self.assertEqual(predicted[str(seed)], [])
                continue
            count = -(-len(pieces) // (LONGEST - 2))
            for i in range(count):
                part = self.enclosed(pieces[i * len(pieces) // count:(i + 1) * len(pieces) // count])
                order = list(range(1, len(part) - 1))
                hidden = min(len(order), max(1, int(0.15 * len(part) + 0.5)))
                for k in range(hidden):
                    other = k + next(random) % (len(order) - k)
                    order[k], order[other] = order[other], order[k]
                for place in sorted(order[:hidden]):
                    targets.append(part[place])
                    die = next(random) % 10
                    if die < 8:
                        part[place] = self.vocabulary["[MASK]"]
                    elif die == 8:
                        part[place] = next(random) % len(self.vocabulary)
                shown.append((part, []))
                places.append(sorted(order[:hidden]))
            rows = [logits[place] for logits, at in zip(self.logits(model, shown), places) for place in at]
            self.assertEqual(len(rows), len(predicted[str(seed)]))
            for row, token, target in zip(rows, predicted[str(seed)], targets):
                self.assert_chosen(row, self.vocabulary[token])
                right += token == names[target]
            total += len(rows)
        self.assertAlmostEqual(found["accuracy"], 100 * right / total, places=9)

    def test_quantized_beside_float(self):
        model, int8 = self.model("SequenceClassification"), self.folder / "int8.onnx"
        data = shared("sst2/dev.tsv")
        bertcl("quantize", model, "-o", int8, "--task", "classify", "--data", shared("sst2/train.tsv"),
               "--samples", 32)
        report = self.folder / "compared.json"
        bertcl("eval", int8, "--compare", model, "--task", "classify", "--data", data, "--json", report,
               "--require", "int8")
        made, original = json.loads(report.read_text())["models"]
        self.assertEqual((made["precision"], original["precision"]), ("int8", "fp32"))
        self.assertEqual(made["tokens"], original["tokens"])
        self.assertIn("int8", {op["type"] for op in inspect(int8)["ops"]})
        by_int8, by_float = (self.evaluate("classify", path, data)[1] for path in (int8, model))
        equal = np.mean([by_int8[id] == by_float[id] for id in by_float])
        self.assertGreater(equal, 0.9)
