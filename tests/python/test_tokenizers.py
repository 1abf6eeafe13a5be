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
import tempfile
import unicodedata
import unittest

from tokenizers import (AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers,
                        processors, trainers)

try:
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2
except ImportError:
    sentencepiece = None

ROOT = pathlib.Path(__file__).resolve().parents[2]
SQUAD = ROOT.parent / "shared" / "data" / "squad"
BUILD = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR", ROOT / "build"))
ENCODE = BUILD / "tests" / "text" / "encode" / "encode_texts"

BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
METASPACE = "\u2581"


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


# Characters that every part of a tokenizer treats in its own way.
NOTABLE = ("\u00ad\u0130\u0131\u00df\u03a3\u03c2\u0301\u0308\u0323\u0345\u0390\u1100\u1161\u11a8\uac00\uac01"
           "\u0958\u1e9b\u1eb6\u2126\u212b\ufb01\uff21\uff71\uff9e\u3000\u2028\u2029\u0085\u00a0\u2003\u200b\u200c"
           "\u200d\u200e\ufeff\ufffd\u2581\u0120\u4e00\u3400\U00020000\U0002b820\U0002b920\u3042\u30ab\uff65"
           "\u0e01\u0e33\u0915\u094d\u0937\u093f\u06dd\u0600\u166d\u1734\U0001f468\U0001f469\U0001f467"
           "\U0001f3fd\ufe0f\u20e3\U0001f1e9\U0001f1ea\U000e0067\U000e007f\U0001d400\u2460\u00bd\u0664"
           "\t\n\r\v\f\x00\x01\x1c\x1f\x7f\x9f\ue000\U000f0000\U0010fffe\ufdd0 '\"[]<>#_-.,;0129aZ")


def random_character(generator):
    """Of any plane. Not what a version of Unicode may have added since Python's."""
    kind = generator.random()
    if kind < 0.35:
        return generator.choice(NOTABLE)
    if kind < 0.6:
        return chr(generator.randrange(0x20, 0x7F))
    while True:
        c = chr(generator.choice([generator.randrange(0x80, 0x3000), generator.randrange(0x3000, 0x10000),
                                  generator.randrange(0x10000, 0x20000),
                                  generator.randrange(0x20000, 0x110000)]))
        if unicodedata.category(c) == "Cs":
            continue
        if unicodedata.category(c) != "Cn" or 0x40000 <= ord(c) < 0xE0000:
            return c


def random_texts(count, words=("the", "I'm", "don't ", " we've", "caf\u00e9", "e\u0301", "<mask>", "[MASK]",
                               " <s>", "</s> ", "  ", "\r\n", "New York", "3.14", "<new>", "Stra\u00dfe")):
    generator = random.Random(7)
    return ["".join(generator.choice(words) if generator.random() < 0.2 else random_character(generator)
                    for _ in range(generator.randrange(30))) for _ in range(count)]


def template(begin, end, pair_type=1):
    between = [end] if pair_type else [end, end]
    pair = " ".join([f"{begin}:0", "$A:0", *[f"{e}:0" for e in between], f"$B:{pair_type}",
                     f"{end}:{pair_type}"])
    return f"{begin} $A {end}", pair


def with_template(tokenizer, begin, end, pair_type=1):
    single, pair = template(begin, end, pair_type)
    ids = [(token, tokenizer.token_to_id(token)) for token in (begin, end)]
    tokenizer.post_processor = processors.TemplateProcessing(single=single, pair=pair, special_tokens=ids)
    return tokenizer


def bert(texts, normalizer=None, **trainer):
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizer or normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator(texts, trainers.WordPieceTrainer(
        vocab_size=4000, special_tokens=BERT, show_progress=False, **trainer))
    return with_template(tokenizer, "[CLS]", "[SEP]")


def roberta(texts, add_prefix_space=False):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space)
    tokenizer.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=4000, special_tokens=ROBERTA[:4], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    tokenizer.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=add_prefix_space)
    return tokenizer


def unigram(texts, normalizer, pre_tokenizer):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.train_from_iterator(texts, trainers.UnigramTrainer(
        vocab_size=4000, special_tokens=ROBERTA, unk_token="<unk>", show_progress=False))
    return with_template(tokenizer, "<s>", "</s>", 0)


def xlm_roberta(texts):
    return unigram(texts, normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
                   pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]))


def modern_bert(texts):
    tokenizer = roberta(texts)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("   ", normalized=True), AddedToken("New York", single_word=True),
                          AddedToken("<new>", rstrip=True)])
    tokenizer.add_special_tokens(BERT)
    return with_template(tokenizer, "[CLS]", "[SEP]")


def stages(texts):
    """The parts that none of the others has."""
    tokenizer = unigram(
        texts,
        normalizers.Sequence([normalizers.Strip(), normalizers.NFKD(), normalizers.StripAccents(),
                              normalizers.Lowercase(), normalizers.Replace("``", '"'), normalizers.Nmt(),
                              normalizers.Prepend("a")]),
        pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                 pre_tokenizers.Punctuation("merged_with_previous"),
                                 pre_tokenizers.Split("e", "merged_with_next"),
                                 pre_tokenizers.Metaspace(prepend_scheme="first")]))
    return tokenizer


def whitespace(texts):
    tokenizer = bert(texts, normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(),
         pre_tokenizers.Split(Regex(r"[A-M]+"), "contiguous", invert=True)])
    return tokenizer


def fallback(texts):
    """BPE on characters as SentencePiece makes it, with bytes for those that it does not know."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend(METASPACE), normalizers.Replace(" ", METASPACE)])
    tokenizer.train_from_iterator(texts[:200], trainers.BpeTrainer(
        vocab_size=2000, show_progress=False, max_token_length=12,
        special_tokens=ROBERTA + [f"<0x{byte:02X}>" for byte in range(256)]))
    return tokenizer


def sentence_piece(texts, folder, **options):
    """A model trained by SentencePiece, and what transformers makes of it (XLMRobertaConverter)."""
    path = pathlib.Path(folder) / "sentencepiece.bpe.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(path.with_suffix("")), vocab_size=3000,
        unk_id=0, bos_id=1, eos_id=2, minloglevel=2, num_threads=1, **options)
    model = sentencepiece_model_pb2.ModelProto.FromString(path.read_bytes())
    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(piece.piece, piece.score) for piece in model.pieces[3:]] + [("<mask>", 0.0)]
    tokenizer = Tokenizer(models.Unigram(pieces, 3, options.get("byte_fallback", False)))
    tokenizer.normalizer = normalizers.Sequence([
        normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap),
        normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), METASPACE)])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in ROBERTA[:4]])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True, normalized=False)])
    return with_template(tokenizer, "<s>", "</s>", 0), path


TOKENIZERS = {
    "bert": bert,
    "bert_cased": lambda texts: bert(texts, normalizers.BertNormalizer(lowercase=False)),
    "roberta": roberta,
    "roberta_prefix": lambda texts: roberta(texts, add_prefix_space=True),
    "modern_bert": modern_bert,
    "xlm_roberta": xlm_roberta,
    "stages": stages,
    "whitespace": whitespace,
    "fallback": fallback,
}


class Tokenizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not ENCODE.exists():
            raise unittest.SkipTest(f"{ENCODE} is absent: build all targets")
        if not SQUAD.exists():
            raise unittest.SkipTest("third-party data ../shared/data/squad are absent")
        cls.train = contexts("dev-v1.1.json")[:600]
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
        before, after, pair_before, between, pair_after, (segments,) = (next(made) for _ in range(6))
        first, _, second, _ = made
        single, pair = tokenizer.encode("Who?"), tokenizer.encode("Who?", "A cat.")
        self.assertEqual(before + first + after, single.ids)
        self.assertEqual(pair_before + first + between + second + pair_after, pair.ids)
        head = len(pair_before + first + between)
        self.assertEqual([0] * head + [segments] * (len(pair.ids) - head), pair.type_ids)

    def test_trained_tokenizers(self):
        with tempfile.TemporaryDirectory() as folder:
            for name, make in TOKENIZERS.items():
                with self.subTest(tokenizer=name):
                    tokenizer = make(self.train)
                    path = pathlib.Path(folder) / f"{name}.json"
                    tokenizer.save(str(path))
                    tokenizer = Tokenizer.from_file(str(path))
                    tokens = self.compare(tokenizer, path, self.texts)
                    tokens += self.compare(tokenizer, path, self.random)
                    self.check_pairs(tokenizer, path)
                    print(f"{name}: {tokens} tokens of {len(self.texts) + len(self.random)} texts are equal")

    @unittest.skipIf(sentencepiece is None, "the Python package sentencepiece is not installed")
    def test_sentence_piece(self):
        for options in ({}, {"byte_fallback": True}, {"normalization_rule_name": "nmt_nfkc_cf"}):
            with self.subTest(**options), tempfile.TemporaryDirectory() as folder:
                tokenizer, model = sentence_piece(self.train[:300], folder, **options)
                path = pathlib.Path(folder) / "tokenizer.json"
                tokenizer.save(str(path))
                for file in (path, model):
                    tokens = self.compare(tokenizer, file, self.texts + self.random)
                    self.check_pairs(tokenizer, file)
                print(f"sentencepiece {options}: {tokens} tokens of {len(self.texts) + len(self.random)} "
                      "texts are equal")

    def test_merges(self):
        tokenizer = roberta(self.train[:100])
        with tempfile.TemporaryDirectory() as folder:
            tokenizer.model.save(folder)
            path = pathlib.Path(folder) / "vocab.json"
            vocab = json.loads(path.read_text())
            vocab["<mask>"] = len(vocab)
            path.write_text(json.dumps(vocab))
            self.compare(tokenizer, path, self.texts[:200] + self.random[:2000])
            self.check_pairs(tokenizer, path)

    def test_ill_formed_text(self):
        tokenizer = roberta(self.train[:100])
        generator = random.Random(3)
        texts = [bytes(generator.choice(b"ab \xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xed\xa0\xc0\xff")
                       for _ in range(generator.randrange(20))) for _ in range(2000)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            tokenizer.save(str(path))
            made = list(lists(encode(path, texts)))[6:]
            for text, ids, places in zip(texts, made[::2], made[1::2]):
                want = tokenizer.encode(text.decode(errors="replace"), add_special_tokens=False)
                self.assertEqual((ids, list(zip(places[::2], places[1::2]))), (want.ids, want.offsets), text)

    def test_a_difference_is_found(self):
        tokenizer = bert(self.train[:50])
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "tokenizer.json"
            tokenizer.save(str(path))
            tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=False)
            with self.assertRaises(AssertionError), contextlib.redirect_stdout(io.StringIO()):
                self.compare(tokenizer, path, ["caf\u00e9"])


if __name__ == "__main__":
    unittest.main()
