# SPDX-License-Identifier: Apache-2.0
"""Pipelines by each kind of vocabulary that is not a tokenizer.json, against the commands on the same model."""
import json
import unittest

import numpy as np
from package import bertcl
from support import bertcl as run_bertcl, scratch
from test_tokenizer_models import TEXTS, save_model
from tokenizer_makers import bert, roberta, sentence_piece, sentencepiece

ODD = [*TEXTS[:2], "", "A <new> <NEW>b", "A [SEP] b </s> [PAD]<pad> <unk>",
       "\u039f\u0394\u039f\u03a3  \U0010ffff\u6771\u4eac", "Who?\tCAF\u00c9"]


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
    sentence_piece(TEXTS, folder, hard_vocab_limit=False)
    return "<mask>"


WRITERS = [write_word_pieces, write_merges, write_sentence_piece]


class VocabulariesTest(unittest.TestCase):
    def make(self, write):
        """The folder of a model whose logits are [batch, seq, vocabulary], and its mask token."""
        if write is write_sentence_piece and not sentencepiece:
            self.skipTest("the package sentencepiece is not installed")
        folder = scratch(self)
        mask = write(folder)
        save_model(folder / "model.onnx", 4000, ["input_ids"])  # for the size of the vocabulary
        words = bertcl.pipeline("token-classification", model=folder).tokenizer.get_vocab_size()
        weights = np.random.default_rng(5).standard_normal((words, words)).astype(np.float32)
        save_model(folder / "model.onnx", words, ["input_ids", "token_type_ids"], weights)
        return folder, mask

    def check_tokens(self, folder):
        ours = bertcl.pipeline("fill-mask", model=folder)
        texts = [*ODD, *zip(ODD, ODD[::-1])]
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

    def test_added_tokens_are_those_of_the_program(self):
        for write in WRITERS:
            def write_and_add(folder, write=write):
                mask = write(folder)
                save_model(folder / "model.onnx", 4000, ["input_ids"])
                words = bertcl.pipeline("token-classification", model=folder).tokenizer.get_vocab_size()
                (folder / "added_tokens.json").write_text(json.dumps({"<new>": words}))
                return mask

            with self.subTest(write.__name__):
                folder, _ = self.make(write_and_add)
                tokens = bertcl.pipeline("fill-mask", model=folder).tokenizer.encode("A <new> b").tokens
                self.assertIn("<new>", tokens)
                self.check_tokens(folder)

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
