# SPDX-License-Identifier: Apache-2.0
"""Tokens and offsets of bertcl and of Hugging Face's tokenizers, from the same tokenizer.json."""
import contextlib
import io
import json
import os
import pathlib
import random
import struct
import subprocess
import unittest

from support import scratch
from tokenizer_makers import (TOKENIZERS, bert, random_texts, roberta, sentence_piece, sentencepiece)
from tokenizers import BertWordPieceTokenizer, Tokenizer, normalizers

ROOT = pathlib.Path(__file__).resolve().parents[2]
SQUAD = ROOT.parent / "shared" / "data" / "squad"
BUILD = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR", ROOT / "build"))
ENCODE = BUILD / "tests" / "text" / "encode" / "encode_texts"


def contexts(name):
    with open(SQUAD / name, encoding="utf-8") as file:
        articles = json.load(file)["data"]
    return list(dict.fromkeys(p["context"] for a in articles for p in a["paragraphs"]))


def lists(data):
    """The lists that encode_texts writes."""
    at = 0
    while at < len(data):
        size, = struct.unpack_from("=i", data, at)
        yield list(struct.unpack_from(f"={size}i", data, at + 4))
        at += 4 + 4 * size


def encode(path, texts, *arguments):
    """What encode_texts writes for texts, which are str or bytes."""
    texts = [text.encode() if isinstance(text, str) else text for text in texts]
    given = b"".join(struct.pack("=I", len(text)) + text for text in texts)
    done = subprocess.run([ENCODE, path, *arguments], input=given, capture_output=True)
    if done.returncode:
        raise AssertionError(f"{ENCODE.name} {path}: {done.stderr.decode()}")
    return done.stdout


class Tokenizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not ENCODE.exists():
            raise unittest.SkipTest(f"{ENCODE} is absent: build all targets")
        if not SQUAD.exists():
            raise unittest.SkipTest("third-party data ../shared/data/squad are absent")
        cls.train = contexts("dev-v1.1.json")[:150]
        cls.texts = list(dict.fromkeys(contexts("xquad.en.json") + contexts("dev-v1.1.json")))
        cls.random = random_texts(10_000)

    def compare(self, tokenizer, path, texts):
        made = lists(encode(path, texts))
        for _ in range(6):
            next(made)
        expected = tokenizer.encode_batch(texts, add_special_tokens=False)
        differences = 0
        for text, want in zip(texts, expected):
            ids, places = next(made), next(made)
            offsets = list(zip(places[::2], places[1::2]))
            if ids == want.ids and offsets == want.offsets:
                continue
            differences += 1
            if differences <= 3:
                at = next((i for i, pair in enumerate(zip(zip(ids, offsets), zip(want.ids, want.offsets)))
                           if pair[0] != pair[1]), min(len(ids), len(want.ids)))
                print(f"{path.name}: token {at} of {text!r}: ids {ids[at:at + 4]}, expected "
                      f"{want.ids[at:at + 4]}; offsets {offsets[at:at + 4]}, expected "
                      f"{want.offsets[at:at + 4]} ({want.tokens[at:at + 4]})")
        self.assertEqual(differences, 0, f"of {len(texts)} texts")
        return sum(len(want.ids) for want in expected)

    def check_pairs(self, tokenizer, path):
        made = lists(encode(path, ["Who?", "A cat."]))
        before, after, pair_before, between, pair_after, (segments, between_second) = (next(made) for _ in range(6))
        first, _, second, _ = made
        single, pair = tokenizer.encode("Who?"), tokenizer.encode("Who?", "A cat.")
        self.assertEqual(before + first + after, single.ids)
        self.assertEqual(pair_before + first + between + second + pair_after, pair.ids)
        head = len(pair_before + first + between) - between_second
        self.assertEqual([0] * head + [segments] * (len(pair.ids) - head), pair.type_ids)

    def test_trained_tokenizers(self):
        folder = scratch(self)
        for name, make in TOKENIZERS.items():
            with self.subTest(tokenizer=name):
                tokenizer = make(self.train)
                path = folder / f"{name}.json"
                tokenizer.save(str(path))
                tokenizer = Tokenizer.from_file(str(path))
                whole = name in ("bert", "roberta", "xlm_roberta")
                texts = (self.texts if whole else self.texts[::5]) + self.random
                tokens = self.compare(tokenizer, path, texts)
                self.check_pairs(tokenizer, path)
                print(f"{name}: {tokens} tokens of {len(texts)} texts are equal")

    @unittest.skipIf(sentencepiece is None, "the Python package sentencepiece is not installed")
    def test_sentence_piece(self):
        for options, texts in (({}, self.texts[::2]), ({"byte_fallback": True}, self.texts[:200]),
                               ({"normalization_rule_name": "nmt_nfkc_cf"}, self.texts[:200])):
            with self.subTest(**options):
                folder = scratch(self)
                tokenizer, model = sentence_piece(self.train[:150], folder, **options)
                path = folder / "tokenizer.json"
                tokenizer.save(str(path))
                tokens = self.compare(tokenizer, path, texts + self.random)
                self.compare(tokenizer, model, texts[:200] + self.random[:5000])
                self.check_pairs(tokenizer, model)
                print(f"sentencepiece {options}: {tokens} tokens of {len(texts) + len(self.random)} "
                      "texts are equal")

    def test_merges(self):
        tokenizer = roberta(self.train[:100])
        folder = scratch(self)
        tokenizer.model.save(str(folder))
        path = folder / "vocab.json"
        vocab = json.loads(path.read_text())
        vocab["<mask>"] = len(vocab)
        path.write_text(json.dumps(vocab))
        self.compare(tokenizer, path, self.texts[:200] + self.random[:2000])
        self.check_pairs(tokenizer, path)

    def test_vocabulary(self):
        trained = bert(self.train)
        folder = scratch(self)
        trained.model.save(str(folder))
        tokenizer = BertWordPieceTokenizer(str(folder / "vocab.txt"))
        tokens = self.compare(tokenizer, folder / "vocab.txt", self.texts[::5] + self.random)
        self.check_pairs(tokenizer, folder / "vocab.txt")
        print(f"vocab.txt: {tokens} tokens are equal")

    def test_ill_formed_text(self):
        tokenizer = roberta(self.train[:100])
        generator = random.Random(3)
        texts = [bytes(generator.choice(b"ab \xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xed\xa0\xc0\xff")
                       for _ in range(generator.randrange(20))) for _ in range(2000)]
        path = scratch(self) / "tokenizer.json"
        tokenizer.save(str(path))
        made = list(lists(encode(path, texts)))[6:]
        for text, ids, places in zip(texts, made[::2], made[1::2]):
            want = tokenizer.encode(text.decode(errors="replace"), add_special_tokens=False)
            self.assertEqual((ids, list(zip(places[::2], places[1::2]))), (want.ids, want.offsets), text)

    def test_a_difference_is_found(self):
        tokenizer = bert(self.train[:50])
        path = scratch(self) / "tokenizer.json"
        tokenizer.save(str(path))
        tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=False)
        with self.assertRaises(AssertionError), contextlib.redirect_stdout(io.StringIO()):
            self.compare(tokenizer, path, ["caf\u00e9"])
