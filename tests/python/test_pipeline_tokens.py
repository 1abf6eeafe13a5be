# SPDX-License-Identifier: Apache-2.0
"""Tokens with names and flags of their own, in pipelines of transformers and of bertcl and in the commands."""
import json
import os
import subprocess

from support import BERTCL, needs

needs("torch")

import transformers
from package import DEFAULT_MODEL, bertcl
from pipeline_cases import PipelineCase, texts
from tokenizer_makers import roberta
from tokenizers import AddedToken, Tokenizer


class PipelineTokensTest(PipelineCase):
    def test_the_mask_token_is_that_of_the_files(self):
        made = json.loads(transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL)).backend_tokenizer.to_str()
                          .replace("[MASK]", "<|mask|>"))
        made = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(made)),
                                                    mask_token="<|mask|>", pad_token="[PAD]", unk_token="[UNK]")
        ours, theirs = self.pipelines("fill-mask", made)
        given = texts(20, "<|mask|>")
        expected = theirs(given, top_k=2)
        self.assert_same(ours(given, top_k=2), expected)
        masks = [each["masks"] for each in self.command("fill-mask", given, "--top-k", "2")]
        self.assert_same([of_one for (of_one,) in masks], expected)
        config = self.model.with_name("tokenizer_config.json")
        settings = json.loads(config.read_text())
        config.write_text(json.dumps({**settings, "mask_token": {"content": "<|mask|>", "lstrip": True}}))
        self.assert_same(bertcl.pipeline("fill-mask", model=self.model)(given, top_k=2), expected)
        made = bertcl.pipeline("fill-mask", model=self.model)
        config.write_text(json.dumps({**settings, "mask_token": "[GONE]"}))
        self.assert_same(made(given, top_k=2), expected)
        self.model.with_name("special_tokens_map.json").write_text('{"mask_token": "[MASK]"}')
        self.model.with_name("config.json").unlink()
        refusal = (r'has no mask token: none of "\[GONE\]", "\[MASK\]", "<mask>" is in its vocabulary; name it as '
                   "mask_token in tokenizer_config.json, special_tokens_map.json or config.json")
        with self.assertRaisesRegex(ValueError, refusal):
            bertcl.pipeline("fill-mask", model=self.model)(given)
        refused = subprocess.run([BERTCL, "fill-mask", self.model], input=given[0], capture_output=True, text=True)
        self.assertRegex(refused.stderr, refusal)

    def test_pad_tokens_are_not_in_sequences(self):
        ours, theirs = self.pipelines("fill-mask")
        text, targets = "the [MASK] [MASK] was", ["[PAD]", "engine"]
        expected = theirs(text, targets=targets)
        self.assertEqual({each["sequence"] for of_mask in expected for each in of_mask if each["token"] == 0},
                         {"[CLS] the [MASK] was [SEP]"})
        words = ours.tokenizer.get_vocab_size()
        self.model.with_name("special_tokens_map.json").unlink(missing_ok=True)
        for found_by in "tokenizer_config.json", "config.json", "name":
            with self.subTest(found_by):
                self.assert_same(bertcl.pipeline("fill-mask", model=self.model)(text, targets=targets), expected)
                (of_command,) = self.command("fill-mask", [text], "--top-k", str(words))
                chosen = [[each for each in of_mask if each["token"] in (0, ours.tokenizer.token_to_id("engine"))]
                          for of_mask in of_command["masks"]]
                self.assert_same(chosen, expected)
            self.model.with_name(found_by).unlink(missing_ok=True)

    def test_token_types_are_those_that_the_tokenizer_gives(self):
        pair = {"text": "Ada was in London", "text_pair": "the engine"}
        made = []
        for names in ["input_ids", "attention_mask"], ["input_ids", "token_type_ids", "attention_mask"]:
            tokenizer = transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL), model_input_names=names)
            ours, theirs = self.pipelines("text-classification", tokenizer)
            with self.subTest(names=names):
                self.assertEqual(json.loads(self.model.with_name("tokenizer_config.json").read_text())
                                 .get("model_input_names", names), names)
                made.append(ours(pair, top_k=None))
                self.assert_same(made[-1], theirs(pair, top_k=None))
                scores = bertcl.CrossEncoder(self.model.parent).predict(tuple(pair.values()), apply_softmax=True)
                self.assert_same(sorted(scores.tolist()), sorted(each["score"] for each in made[-1]))
                (of_command,) = self.command("classify", [pair], "--top-k", "5")
                self.assert_same(of_command["labels"], made[-1])
        self.assertNotEqual(*made)

    def check_tokenizer_of_files(self, ours_before, model, given):
        """The pipeline and the command, where files have changed since `ours_before`, against transformers."""
        theirs = transformers.pipeline("text-classification", model=model,
                                       tokenizer=transformers.AutoTokenizer.from_pretrained(self.model.parent))
        ours = bertcl.pipeline("text-classification", model=self.model)
        expected = theirs(given, top_k=None)
        self.assert_same(ours(given, top_k=None), expected)
        self.assert_same([each["labels"] for each in self.command("classify", given, "--top-k", "5")], expected)
        self.assertEqual([ours.tokenizer.encode(text).ids for text in given],
                         [theirs.tokenizer(text)["input_ids"] for text in given])
        with self.assertRaises(AssertionError):
            self.assert_same(ours_before(given, top_k=None), expected)

    def test_settings_go_before_a_tokenizer_json(self):
        ours, theirs = self.pipelines("text-classification")
        config = self.model.with_name("tokenizer_config.json")
        settings = json.loads(config.read_text())
        for changed in {"do_lower_case": False}, {"strip_accents": False}, {"tokenize_chinese_chars": False}:
            with self.subTest(**changed):
                config.write_text(json.dumps({**settings, "tokenizer_class": "BertTokenizer", **changed}))
                self.check_tokenizer_of_files(ours, theirs.model, ["Zürich naïve É", "東京 Lovelace"])

    def test_tokens_that_files_add_to_a_vocabulary_are_found(self):
        ours, theirs = self.pipelines("text-classification")
        tokens = sorted(vocabulary := ours.tokenizer.get_vocab(), key=vocabulary.get)
        names = "tokenizer.json", "added_tokens.json", "tokenizer_config.json"
        whole, added, config = (self.model.with_name(name) for name in names)
        whole.unlink()
        self.model.with_name("vocab.txt").write_text("".join(each + "\n" for each in tokens[:-2]))
        first, second = len(tokens) - 2, len(tokens) - 1
        flags = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, "special": True}
        given = ["the <e1> Ada <E1> was", "the <e2>engine<e2>"]
        for settings in {}, {"additional_special_tokens": ["<e1>"]}, {"added_tokens_decoder": {
                first: {"content": "<e1>", **flags}, second: {"content": "<e2>", **flags, "normalized": True}}}:
            with self.subTest(**settings):
                config.write_text(json.dumps({"tokenizer_class": "BertTokenizer", **settings}))
                added.write_text(json.dumps({"<e1>": first, "<e2>": second}))
                if "added_tokens_decoder" in settings:
                    added.unlink()
                self.check_tokenizer_of_files(ours, theirs.model, given)

    def test_sequences_are_cleaned_up_as_the_tokenizer_says(self):
        given = ["it ' s [MASK] , the .", "i do n't [MASK] !", "we ' ve [MASK] ?", "[MASK] ."]
        for cleaned in True, False:
            made = transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL),
                                                                  clean_up_tokenization_spaces=cleaned)
            ours, theirs = self.pipelines("fill-mask", made)
            expected = theirs(given, targets=["london", ".", "'"])
            self.assertIn("it's london" if cleaned else "it ' s london", str(expected))
            self.assert_same(ours(given, targets=["london", ".", "'"]), expected)
            masks = [each["masks"] for each in self.command("fill-mask", given, "--top-k", "40")]
            self.assert_same([of_one for (of_one,) in masks], theirs(given, top_k=40))

    def test_sequences_of_bpe_keep_their_spaces(self):
        made = transformers.PreTrainedTokenizerFast(
            tokenizer_object=roberta(texts(50)), mask_token="<mask>", pad_token="<pad>", unk_token="<unk>",
            clean_up_tokenization_spaces=True)
        ours, theirs = self.pipelines("fill-mask", made)
        self.assert_same(ours("it ' s <mask> ."), theirs("it ' s <mask> ."))
        (of_command,) = self.command("fill-mask", ["it ' s <mask> ."])
        self.assertIn("it ' s", of_command["masks"][0][0]["sequence"])

    def test_the_pad_token_is_that_of_the_tokenizer(self):
        made = json.loads(transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL)).backend_tokenizer.to_str()
                          .replace("[PAD]", "<|pad|>"))
        made = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(made)),
                                                    mask_token="[MASK]", pad_token="<|pad|>", unk_token="[UNK]")
        # The configuration says another token, as some do; the tokenizer goes before it.
        ours, theirs = self.pipelines("fill-mask", made, pad_token_id=7)
        text, targets = "the [MASK] [MASK] was", ["<|pad|>", "engine"]
        expected = theirs(text, targets=targets)
        config, tokenizer = (self.model.with_name(name) for name in ("tokenizer_config.json", "tokenizer.json"))
        settings = {**json.loads(config.read_text()), "pad_token": None}
        map_of_names = self.model.with_name("special_tokens_map.json")
        padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
                   "pad_type_id": 0, "pad_token": "<|pad|>"}

        def found_in(file):
            map_of_names.write_text("[]")
            if file != "tokenizer_config.json":
                config.write_text(json.dumps(settings))
            if file == "special_tokens_map.json":
                map_of_names.write_text(json.dumps({"pad_token": {"content": "<|pad|>"}}))
            if file == "tokenizer.json":
                tokenizer.write_text(json.dumps({**json.loads(tokenizer.read_text()), "padding": padding}))

        for file in "tokenizer_config.json", "special_tokens_map.json", "tokenizer.json":
            found_in(file)
            with self.subTest(file):
                self.assert_same(bertcl.pipeline("fill-mask", model=self.model)(text, targets=targets), expected)
                (of_command,) = self.command("fill-mask", [text], "--top-k", str(ours.tokenizer.get_vocab_size()))
                chosen = [[each for each in of_mask if each["token"] in (0, ours.tokenizer.token_to_id("engine"))]
                          for of_mask in of_command["masks"]]
                self.assert_same(chosen, expected)

    def test_files_of_a_model_are_regular_files(self):
        self.pipelines("fill-mask")
        (self.model.parent / "onnx").mkdir()
        model = self.model.rename(self.model.parent / "onnx" / "model.onnx")
        for path in self.model.parent, model.parent:
            for name in "tokenizer.json", "config.json", "special_tokens_map.json":
                file = path / name
                moved = file.rename(file.with_suffix(".kept")) if file.exists() else None
                with self.subTest(file):
                    os.mkfifo(file)
                    with self.assertRaisesRegex(bertcl.Error, f"{name}: not a regular file"):
                        bertcl.pipeline("fill-mask", model=model)
                    file.unlink()
                    file.symlink_to(name)
                    with self.assertRaisesRegex((OSError, bertcl.Error),
                                                f"Too many levels of symbolic links.*{name}|{name}.*Too many levels"):
                        bertcl.pipeline("fill-mask", model=model)
                file.unlink()
                if moved:
                    moved.rename(file)

    def test_long_texts_are_tagged_in_windows(self):
        tokenizer = transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL), model_max_length=16)
        ours, theirs = self.pipelines("token-classification", tokenizer)
        given = texts(20)
        for strategy in "simple", "first", "average", "max":
            for stride in 0, 5, 13:
                with self.subTest(strategy=strategy, stride=stride):
                    options = {"aggregation_strategy": strategy, "stride": stride, "ignore_labels": ["B-PER"]}
                    self.assert_same(ours(given, **options), theirs(given, **options))
        self.assertGreater(len(ours(given[0], aggregation_strategy="simple", stride=5)),
                           len(ours(given[0], aggregation_strategy="simple")))
        reading = bertcl.pipeline("ner", model=self.model, aggregation_strategy="simple", stride=5, batch_tokens=20)
        self.assert_same(reading(given), theirs(given, aggregation_strategy="simple", stride=5))
        self.assertEqual(reading(["", given[0]]), [[], reading(given[0])])
        for stride in 14, -1:
            with self.assertRaisesRegex(ValueError, f"stride is {stride}, expected less than the 14 tokens .* 16"):
                ours(given, aggregation_strategy="simple", stride=stride)
        with self.assertRaisesRegex(TypeError, "stride is 1.5, expected an integer"):
            ours(given, aggregation_strategy="simple", stride=1.5)
        with self.assertRaisesRegex(ValueError, "stride needs another aggregation_strategy than 'none'"):
            ours(given, stride=5)
        tokenizer.add_tokens(["<image>"])
        ours, _ = self.pipelines("token-classification", tokenizer)
        text = "the " * 20 + "<image>"
        self.assertEqual(len(ours(text, ignore_labels=[])), 14)
        with self.assertRaisesRegex(bertcl.Error, "'<image>'.* token 30,522.* 30,522 rows"):
            ours(text, aggregation_strategy="simple", stride=5)

    def test_words_of_added_tokens_have_no_white_space(self):
        made = transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL))
        made.add_tokens([AddedToken("[X]", lstrip=True, rstrip=True, normalized=False), AddedToken("[Yy]", lstrip=True)])
        ours, theirs = self.pipelines("token-classification", made, vocab_size=len(made))
        given = ["the [X] was", "[X] [Yy]", "London\n[Yy]engine", "a[X]  b [X]", " [Yy]"]
        for strategy in "none", "simple", "first", "average", "max":
            with self.subTest(strategy):
                self.assert_same(ours(given, aggregation_strategy=strategy, ignore_labels=[]),
                                 theirs(given, aggregation_strategy=strategy, ignore_labels=[]))
        self.assertIn("[X]", [each["word"] for each in ours(given[0], ignore_labels=[])])
