# SPDX-License-Identifier: Apache-2.0
"""Pipelines by each kind of vocabulary that is not a tokenizer.json, against the commands on the same model."""
import importlib.util
import json
import unittest

import numpy as np
from package import bertcl
from support import bertcl as run_bertcl, scratch
from test_tokenizer_models import TEXTS, save_model
from tokenizer_makers import bert, roberta, sentence_piece, sentencepiece

ODD = [*TEXTS[:2], "", "A <new> <NEW>b", "A [SEP] b </s> [PAD]<pad> <unk>",
       "\u039f\u0394\u039f\u03a3  \U0010ffff\u6771\u4eac", "Who?\tCAF\u00c9"]

NEW = ["<added>", "<Special>"]
# No space is before <added>: transformers 5 drops it where the vocabulary is SentencePiece's.
ODD_NEW = [*ODD, "<added> <ADDED>b a<added>b", "A <Special> <SPECIAL>b <special>c <Special>"]


def write_word_pieces(folder):
    bert(TEXTS).model.save(str(folder))
    return "[MASK]"


def write_merges(folder):
    roberta(TEXTS).model.save(str(folder))
    path = folder / "vocab.json"
    vocabulary = json.loads(path.read_text())
    path.write_text(json.dumps({**vocabulary, "<mask>": len(vocabulary)}))
    return "<mask>"


def write_sentence_piece(folder):
    if not sentencepiece:
        raise unittest.SkipTest("the package sentencepiece is not installed")
    sentence_piece(TEXTS, folder, hard_vocab_limit=False)
    return "<mask>"


def write_new_tokens(folder, first, tokenizer_class, in_decoder):
    """Files that add the tokens NEW, the second of them special, from id `first` on."""
    settings = {"additional_special_tokens": NEW[1:]}
    if in_decoder:
        flags = {"lstrip": True, "rstrip": False, "single_word": False}
        settings = {"added_tokens_decoder": {
            first + i: {"content": name, **flags, "normalized": not i, "special": bool(i)} for i, name in enumerate(NEW)}}
    else:
        (folder / "added_tokens.json").write_text(json.dumps({name: first + i for i, name in enumerate(NEW)}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": tokenizer_class, **settings}))
    (folder / "config.json").write_text("{}")  # transformers needs it


WRITERS = {write_word_pieces: "BertTokenizer", write_merges: "RobertaTokenizer",
           write_sentence_piece: "XLMRobertaTokenizer"}


class VocabulariesTest(unittest.TestCase):
    def make(self, write, add=None):
        """The folder of a model whose logits are [batch, seq, vocabulary], and its mask token. add(folder, words) writes
        files that name the two tokens NEW."""
        folder = scratch(self)
        mask = write(folder)
        save_model(folder / "model.onnx", 4000, ["input_ids"])  # for the size of the vocabulary
        words = bertcl.pipeline("token-classification", model=folder).tokenizer.get_vocab_size()
        if add:
            add(folder, words)
            words += len(NEW)
        weights = np.random.default_rng(5).standard_normal((words, words)).astype(np.float32)
        save_model(folder / "model.onnx", words, ["input_ids", "token_type_ids"], weights)
        return folder, mask

    def check_tokens(self, folder, texts=ODD):
        ours = bertcl.pipeline("fill-mask", model=folder)
        texts = [*texts, *zip(texts, texts[::-1])]
        names = [(text,) if isinstance(text, str) else text for text in texts]
        lines = folder / "texts.jsonl"
        lines.write_text("".join(json.dumps(dict(zip(("text", "text_pair"), each))) + "\n" for each in names))
        of_program = run_bertcl("run", folder / "model.onnx", "--texts", lines, "--device", "cpu").stdout.splitlines()
        for text, line in zip(texts, of_program, strict=True):
            (encoding,), made = ours.encodings([text]), json.loads(line)
            self.assertEqual([ours.tokenizer.id_to_token(i) for i in encoding.ids], made["tokens"])
            (logits,), = ours.rows([encoding], "logits")
            np.testing.assert_allclose(logits, made["outputs"]["logits"], atol=1e-5)

    def test_tokens_are_those_of_the_program(self):
        for write in WRITERS:
            with self.subTest(write.__name__):
                self.check_tokens(self.make(write)[0])

    def test_settings_of_word_pieces_are_those_of_the_program(self):
        folder, _ = self.make(write_word_pieces)
        for settings in ({"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False},
                         {"model_input_names": ["input_ids"]}):
            for in_json in False, True:
                with self.subTest(**settings, in_json=in_json):
                    (folder / "tokenizer.json").unlink(missing_ok=True)
                    if in_json:
                        bert(TEXTS).save(str(folder / "tokenizer.json"))
                    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
                    self.check_tokens(folder)

    def check_added_tokens(self, check):
        """check(folder) for each vocabulary and each place of the two tokens NEW."""
        for write, name in WRITERS.items():
            for in_decoder in False, True:
                def add(folder, first, name=name, in_decoder=in_decoder):
                    write_new_tokens(folder, first, name, in_decoder)

                with self.subTest(write.__name__, in_decoder=in_decoder):
                    check(self.make(write, add)[0])

    def test_added_tokens_are_those_of_the_program(self):
        def check(folder):
            ours = bertcl.pipeline("fill-mask", model=folder).tokenizer
            tokens = [ours.id_to_token(i) for i in ours.encode("a<added> <Special>b").ids]
            self.assertEqual([each for each in tokens if each in NEW], NEW)
            self.check_tokens(folder, [*ODD_NEW, "a <added> b"])

        self.check_added_tokens(check)

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "the package transformers is not installed")
    def test_added_tokens_are_those_of_transformers(self):
        import transformers

        def check(folder):
            theirs = transformers.AutoTokenizer.from_pretrained(folder)
            ours = bertcl.pipeline("fill-mask", model=folder).tokenizer
            for text in ODD_NEW:
                self.assertEqual(ours.encode(text).ids, theirs.encode(text), text)

        self.check_added_tokens(check)

    def test_a_document_that_tokenizers_cannot_read_is_named(self):
        folder, _ = self.make(write_word_pieces)
        path = folder / "tokenizer.json"
        path.write_text(json.dumps({**json.loads(bert(TEXTS).to_str()), "version": "9.9"}))
        with self.assertRaisesRegex(bertcl.Error, f"^{path}: .*version.*; save it again with tokenizers or transformers$"):
            bertcl.pipeline("fill-mask", model=folder)

    def test_the_one_result_of_a_list_is_not_in_a_list(self):
        folder, mask = self.make(write_word_pieces)
        fill, text = bertcl.pipeline("fill-mask", model=folder), TEXTS[0].replace("a day", mask)
        expected = fill(text)
        for one in [text], (text,):
            self.assertEqual(fill(one), expected)
        for one in iter([text]), map(str, [text]), np.array([text]):
            self.assertEqual(fill(one), [expected])

    def test_masks_are_filled_as_by_the_program(self):
        for write in WRITERS:
            with self.subTest(write.__name__):
                self.check_masks(*self.make(write))

    def check_masks(self, folder, mask):
        texts = [TEXTS[0].replace("a day", mask), f"{mask} friend, the caf\u00e9"]
        (folder / "texts.txt").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
        report = json.loads(run_bertcl("fill-mask", folder / "model.onnx", folder / "texts.txt", "--json", "-",
                                       "--device", "cpu").stdout)
        for made, of_program in zip(bertcl.pipeline("fill-mask", model=folder)(texts), report["results"], strict=True):
            (expected,) = of_program["masks"]
            self.assertEqual([{**each, "score": 0} for each in made], [{**each, "score": 0} for each in expected])
            np.testing.assert_allclose([each["score"] for each in made], [each["score"] for each in expected],
                                       atol=1e-5)
