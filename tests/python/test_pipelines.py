# SPDX-License-Identifier: Apache-2.0
"""Pipelines of transformers and of bertcl, and the commands for the same, on one model with random weights, 200 texts
each."""
import json
import re
import subprocess
import warnings

from support import BERTCL, needs

needs("torch")

import numpy as np
import onnx
import transformers
from package import DEFAULT_MODEL, bertcl
from pipeline_cases import CLASSES, LABELS, PipelineCase, texts
from tokenizer_makers import xlm_roberta
from tokenizers import Tokenizer, decoders, processors
from transformers.pipelines.pt_utils import KeyDataset


def with_outputs(model, kind):
    """A copy of a model with one output, in another type."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    output, = copy.graph.output
    last = next(node for node in copy.graph.node if output.name in node.output)
    last.output[list(last.output).index(output.name)] = "whole"
    copy.graph.node.append(onnx.helper.make_node("Cast", ["whole"], [output.name], to=kind))
    output.type.tensor_type.elem_type = kind
    return copy


class PipelinesTest(PipelineCase):
    def test_a_token_added_beyond_the_table_is_an_error_of_its_texts(self):
        tokenizer = transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL))
        tokenizer.add_tokens(["<image>"])
        ours, theirs = self.pipelines("text-classification", tokenizer)
        given = texts(5)
        self.assert_same(ours(given), theirs(given))
        with self.assertRaisesRegex(bertcl.Error, "'<image>'.* token 30,522.* 30,522 rows"):
            ours("an <image> here")

    def test_labels_may_be_numbers(self):
        ours, _ = self.pipelines("text-classification")
        config = self.model.with_name("config.json")
        settings = json.loads(config.read_text())
        config.write_text(json.dumps({**settings, "id2label": {str(i): i for i in range(len(LABELS))}}))
        numbered = bertcl.pipeline("text-classification", model=self.model.parent)
        self.assertEqual([each["label"] for each in numbered(texts(20))],
                         [str(LABELS.index(each["label"])) for each in ours(texts(20))])

    def test_text_classification(self):
        ours, theirs = self.pipelines("text-classification")
        given = texts(200)
        self.assert_same(ours(given), theirs(given))
        self.assert_same(ours(given[:20], top_k=3), theirs(given[:20], top_k=3))
        self.assert_same(ours(given[0], top_k=None), theirs(given[0], top_k=None))
        self.assert_same(ours(given[:20], function_to_apply="sigmoid"),
                         theirs(given[:20], function_to_apply="sigmoid"))
        pairs = [{"text": a, "text_pair": b} for a, b in zip(given[:20], [*given[20:39], ""])]
        self.assert_same(ours(pairs), theirs(pairs))
        self.assert_same([each["labels"] for each in self.command("classify", given, "--top-k", "3")],
                         theirs(given, top_k=3))
        self.assert_same([each["labels"][0] for each in self.command("classify", pairs)], theirs(pairs))
        odd = [*given[:20], "a [SEP] b", "a [MASK] b", "\u039f\u0394\u039f\u03a3 street", "the \U0010ffff engine", "[PAD]"]
        by_vocabulary = self.command("classify", odd, "--top-k", "3", "--vocab", DEFAULT_MODEL / "vocab.txt")
        self.assert_same([each["labels"] for each in by_vocabulary], theirs(odd, top_k=3))

    def test_lists_are_nested_as_in_transformers(self):
        ours, theirs = self.pipelines("text-classification")
        text, pair = "Ada was in London", {"text": "Ada", "text_pair": "London was"}
        empty = {"text": "Ada", "text_pair": ""}  # no pair
        for given in text, pair, empty, [text], [pair], [text, pair, empty]:
            for of_pipeline in {}, {"top_k": 1}, {"top_k": 2}, {"top_k": None}:
                ours = bertcl.pipeline("text-classification", model=self.model, **of_pipeline)
                wanted = transformers.pipeline("text-classification", model=theirs.model, tokenizer=theirs.tokenizer,
                                               **of_pipeline)
                for of_call in {}, {"top_k": 1}, {"top_k": 2}, {"top_k": None}, {"function_to_apply": "sigmoid"}:
                    with self.subTest(given=given, of_pipeline=of_pipeline, of_call=of_call):
                        self.assert_same(ours(given, **of_call), wanted(given, **of_call))
                        self.assertEqual(ours(inputs=given, **of_call), ours(given, **of_call))

    def test_classes_are_named_as_fine_tuning_wrote_into_the_model(self):
        self.pipelines("text-classification")
        model = onnx.load(self.model)
        entry = model.metadata_props.add(key="bertcl.classes")

        def pipeline(names):
            entry.value = names
            onnx.save(model, self.model)
            return bertcl.pipeline("text-classification", model=self.model)

        self.assertEqual(sorted(each["label"] for each in pipeline('["a", "b", "c", "d", "e"]')("x", top_k=None)),
                         ["a", "b", "c", "d", "e"])
        self.assertIn(pipeline("[]")("x")[0]["label"], LABELS)
        for wrong in "[1, 2]", "{}", "a, b":
            with self.assertRaisesRegex(bertcl.Error, "bertcl.classes in the metadata(: invalid JSON| must be a list)"):
                pipeline(wrong)

    def test_text_classification_of_several_labels(self):
        ours, theirs = self.pipelines("text-classification", problem_type="multi_label_classification")
        given = texts(40)
        self.assert_same(ours(given, top_k=None), theirs(given, top_k=None))
        self.assertGreater(max(sum(each["score"] for each in made) for made in ours(given, top_k=None)), 1.01,
                           "not shares of one")
        for function in "softmax", "sigmoid", "none":
            self.assert_same(ours(given[:5], top_k=2, function_to_apply=function),
                             theirs(given[:5], top_k=2, function_to_apply=function))
            of_command = self.command("classify", given[:5], "--top-k", "2", "--activation", function)
            self.assert_same([each["labels"] for each in of_command],
                             theirs(given[:5], top_k=2, function_to_apply=function))
        self.assert_same([each["labels"] for each in self.command("classify", given, "--top-k", "9")],
                         theirs(given, top_k=None))
        with self.assertRaisesRegex(ValueError, "tanh.*softmax"):
            ours(given[0], function_to_apply="tanh")

    def test_zero_shot_classification(self):
        tokenizer = transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL), model_max_length=512)
        for labels in ["contradiction", "neutral", "entailment"], ["entailment", "not_entailment"]:
            ours, theirs = self.pipelines("zero-shot-classification", tokenizer, labels)
            given = texts(40) + ["the engine was made " * 200]
            for options in {"candidate_labels": ["art", "the east", "naïve Zürich"]}, {
                    "candidate_labels": "london, engine ,", "hypothesis_template": "It is about {}!"}, {
                    "candidate_labels": ["one"]}:
                for multi_label in False, True:
                    with self.subTest(labels=labels, multi_label=multi_label, **options):
                        self.assert_same(ours(given, **options, multi_label=multi_label),
                                         theirs(given, **options, multi_label=multi_label))
            for named in np.array(["a", "b"]), iter(["a", "b"]), ["a", "b"]:
                self.assert_same(ours(given[0], named), theirs(given[0], ["a", "b"]))
        self.assertEqual(ours([], ["a"]), [])
        with self.assertRaisesRegex(ValueError, "candidate_labels is empty"):
            ours(given[0])
        with self.assertRaisesRegex(TypeError, "candidate_labels is {'a': 1}, expected the names of classes"):
            ours(given[0], {"a": 1})
        for wrong in "It is.", "{} {}", "{label}":
            with self.assertRaisesRegex(ValueError, f"hypothesis_template is '{wrong}', expected a sentence with {{}}"):
                ours(given[0], ["a"], wrong)
        self.assertEqual(ours("", ["a " * 505], "{}")["scores"], [ours("", ["a " * 505], "{}")["scores"][0]])
        with self.assertRaisesRegex(ValueError, "the hypothesis for 'a a .* has 603 tokens .* at most 512"):
            ours(["a"], ["b", "a " * 600], "{}")
        self.pipelines("text-classification")
        with self.assertRaisesRegex(ValueError, "needs a class 'entailment'; the model has O, B-PER"):
            bertcl.pipeline("zero-shot-classification", model=self.model)

    def test_token_classification(self):
        ours, theirs = self.pipelines("token-classification")
        given = texts(200)
        for strategy in "none", "simple", "first", "average", "max":
            with self.subTest(strategy=strategy):
                self.assert_same(ours(given, aggregation_strategy=strategy),
                                 theirs(given, aggregation_strategy=strategy))
                self.assert_same(ours(given[:1], aggregation_strategy=strategy),
                                 theirs(given[:1], aggregation_strategy=strategy))
                expected = theirs(given, aggregation_strategy=strategy)
                for text, entities in zip(given, expected):
                    for entity in entities:  # transformers spells words anew, from their lower-cased tokens
                        entity["word"] = text[entity["start"]:entity["end"]]
                of_command = self.command("tag", given, "--aggregation", strategy)
                self.assert_same([each["entities"] for each in of_command], expected)
        without_json = self.command("tag", given, "--aggregation", "max", "--vocab", DEFAULT_MODEL / "vocab.txt")
        self.assertEqual(without_json, of_command)

    def test_the_tokenizer_says_how_texts_are_truncated(self):
        ours, _ = self.pipelines("token-classification")
        config = self.model.parent / "tokenizer_config.json"
        settings = json.loads(config.read_text())
        for side in "right", "left":
            config.write_text(json.dumps({**settings, "model_max_length": 6, "truncation_side": side}))
            cut = bertcl.pipeline("ner", model=self.model, ignore_labels=[])
            self.assertEqual([each["word"] for each in cut("the london engine was made in the east")],
                             ["the", "london", "engine", "was"] if side == "right" else ["made", "in", "the", "east"])
        config.write_text(json.dumps({**settings, "truncation_side": "up"}))
        with self.assertRaisesRegex(bertcl.Error, 'tokenizer_config.json: truncation_side is "up"'):
            bertcl.pipeline("ner", model=self.model)

    def test_a_row_for_a_text_is_one_where_each_text_has_one_token(self):
        ours, _ = self.pipelines("text-classification")
        ours.tokenizer.post_processor = processors.Sequence([])
        for texts in ["the"], ["the", "was"]:
            rows = [row.shape for row, in ours.rows(ours.encodings(texts), "logits")]
            self.assertEqual(rows, [(len(LABELS),)] * len(texts))
        ours, _ = self.pipelines("token-classification")
        ours.tokenizer.post_processor = processors.Sequence([])
        rows = [row.shape for row, in ours.rows(ours.encodings(["the", "was"]), "logits")]
        self.assertEqual(rows, [(1, len(LABELS))] * 2)

    def test_texts_without_tokens(self):
        given = ["london engine", "", "the"]
        for task, found in ("feature-extraction", [[]]), ("token-classification", []):
            ours, _ = self.pipelines(task)
            ours.tokenizer.post_processor = processors.Sequence([])
            made = ours(given)
            self.assertEqual(made[1], found)
            self.assertEqual(ours(""), found)
            self.assert_same([made[0], made[2]], ours([given[0], given[2]]))
        ours, _ = self.pipelines("text-classification")
        ours.tokenizer.post_processor = processors.Sequence([])
        with self.assertRaisesRegex(ValueError, r"texts\[1\] has no tokens"):
            ours(given)

    def test_unknown_tokens_of_unigram(self):
        made = xlm_roberta(texts(200))
        settings = json.loads(made.to_str())
        for added in settings["added_tokens"]:
            added["content"] = added["content"].replace("<unk>", "<unknown>")
        settings["model"]["vocab"][settings["model"]["unk_id"]][0] = "<unknown>"
        made = transformers.PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(settings)),
                                                    unk_token="<unknown>", pad_token="<pad>")
        made.backend_tokenizer.decoder = decoders.Metaspace()
        given = [text.replace("the", "the\u4eac\u90fd\u3042was") for text in texts(100)]
        self.assertIn(made.unk_token_id, made(given[0])["input_ids"])
        ours, theirs = self.pipelines("token-classification", made)
        for strategy in "first", "average", "max":
            expected = theirs(given, aggregation_strategy=strategy)
            self.assert_same(ours(given, aggregation_strategy=strategy), expected)
            for text, entities in zip(given, expected):
                for entity in entities:
                    entity["word"] = text[entity["start"]:entity["end"]]
            of_command = self.command("tag", given, "--aggregation", strategy)
            self.assert_same([each["entities"] for each in of_command], expected)

    def test_fill_mask(self):
        ours, theirs = self.pipelines("fill-mask")
        given = texts(200, "[MASK]")
        self.assert_same(ours(given), theirs(given))
        for targets in ["london", "engine"], np.array(["london", "engine"]), iter(["london", "engine"]):
            self.assert_same(ours(given[0], targets=targets), theirs(given[0], targets=["london", "engine"]))
        with self.assertWarnsRegex(UserWarning, "'zzzzq' is not in the vocabulary; its first piece 'z' is taken"):
            pieces = ours(given[0], targets=["london", "zzzzq", "Engine", " "])
        self.assert_same(pieces, theirs(given[0], targets=["london", "zzzzq", "Engine", " "]))
        for none, message in ([], "is empty"), ([" "], "are not tokens"):
            with self.assertRaisesRegex(ValueError, f"'targets' {message}"), warnings.catch_warnings(action="ignore"):
                ours(given[0], targets=none)
        two = "[MASK] was in [MASK] ."
        self.assert_same(ours(two, top_k=2), theirs(two, top_k=2))
        blank, _ = self.command("fill-mask", ["", given[0]], "--top-k", "2")
        self.assertEqual(blank, {"text": "", "masks": []}, "a blank line hides nothing")
        of_command = self.command("fill-mask", [*given, two], "--top-k", "2")
        self.assertEqual(self.command("fill-mask", [*given, two], "--top-k", "2", "--vocab",
                                      DEFAULT_MODEL / "vocab.txt"), of_command)
        def table_of(*lines):
            return subprocess.run([BERTCL, "fill-mask", self.model, "--top-k", "1"], input="\n".join(lines),
                                  capture_output=True, text=True).stdout.splitlines()
        several = [row.split() for row in table_of("", *given[:2])]
        self.assertEqual(several[0], ["line", "score", "id", "token", "text"])
        self.assertEqual([row[0] for row in several[1:]], ["2", "3"])
        table = table_of(given[0])
        best = theirs(given[0], top_k=1)[0]
        self.assertEqual(table[0].split(), ["score", "id", "token", "text"])
        self.assertEqual(table[1].split()[1:3], [str(best["token"]), best["token_str"]])
        masks = [each["masks"] for each in of_command]
        self.assert_same([of_one for (of_one,) in masks[:-1]], theirs(given, top_k=2))
        self.assert_same(masks[-1], theirs(two, top_k=2))
        with self.assertRaisesRegex(ValueError, r"\[MASK\]"):
            ours("nothing hidden")

    def test_outputs_in_half_precision(self):
        """Only they are rounded: scores are float32."""
        for task, text in ("text-classification", "Ada was in London"), ("fill-mask", "Ada was in [MASK]"):
            plain, _ = self.pipelines(task)
            expected = plain(text, top_k=None if task == "text-classification" else 30522)
            whole = onnx.load(self.model)
            for kind, error in (onnx.TensorProto.FLOAT16, 1e-3), (onnx.TensorProto.BFLOAT16, 2e-2):
                with self.subTest(task, kind=kind):
                    half = self.model.with_name(f"{kind}.onnx")
                    onnx.save(with_outputs(whole, kind), half)
                    found = bertcl.pipeline(task, half)(text, top_k=len(expected))
                    self.assertEqual(found[0]["score"], max(each["score"] for each in found))
                    self.assertAlmostEqual(found[0]["score"], expected[0]["score"], delta=error)
                    self.assertAlmostEqual(sum(each["score"] for each in found), 1, delta=1e-5)
                    if task == "text-classification":
                        pair, = bertcl.CrossEncoder(half).predict([(text, text)], apply_softmax=True)
                        best = plain({"text": text, "text_pair": text})["score"]
                        self.assertAlmostEqual(pair.max(), best, delta=error)

    def test_names_of_options_are_in_any_case_and_none_is_the_default(self):
        text = texts(1)[0]
        for task, name, values in (("token-classification", "aggregation_strategy", ("SIMPLE", "First", None)),
                                   ("token-classification", "ignore_labels", (None,)),
                                   ("text-classification", "function_to_apply", ("SIGMOID", "None", None)),
                                   ("fill-mask", "top_k", (None,)), ("fill-mask", "targets", (None,))):
            ours, theirs = self.pipelines(task)
            given = "[MASK] " + text if task == "fill-mask" else text
            for value in values:
                with self.subTest(task, **{name: value}):
                    expected = theirs(given, **{name: value})
                    self.assert_same(ours(given, **{name: value}), expected)
                    self.assert_same(bertcl.pipeline(task, model=self.model, **{name: value})(given), expected)
        ours, theirs = self.pipelines("token-classification")
        grouping = bertcl.pipeline("ner", model=self.model, aggregation_strategy="simple")
        expected = theirs(text, aggregation_strategy="simple")
        self.assert_same(grouping(text, aggregation_strategy=None), expected)

    def test_options_of_calls_are_defaults_of_the_pipeline(self):
        self.pipelines("token-classification")
        text = texts(1)[0]
        grouping = bertcl.pipeline("ner", model=self.model, aggregation_strategy="simple", batch_size=4)
        plain = bertcl.pipeline("ner", model=self.model)
        self.assertEqual(grouping(text), plain(text, aggregation_strategy="simple"))
        self.assertEqual(grouping(text, aggregation_strategy="none", batch_size=8), plain(text))
        self.assertEqual(grouping(texts=text), grouping(text))
        self.assertEqual(grouping(text, "none"), plain(text))
        for wrong in {"aggregation": "simple"}, {"top_k": 2}:
            with self.assertRaisesRegex(TypeError, f"unexpected keyword argument '{min(wrong)}'"):
                bertcl.pipeline("ner", model=self.model, **wrong)
        with self.assertRaisesRegex(ValueError, "batch_size is 0"):
            plain(text, batch_size=0)
        answer = bertcl.pipeline("question-answering", model=DEFAULT_MODEL, top_k=2, max_answer_len=5)
        self.assertEqual(len(answer(question="Who?", context="Ada Lovelace was here.")), 2)

    def test_files_may_lie_above_the_folder_onnx(self):
        self.pipelines("token-classification")
        expected, folder = bertcl.pipeline("ner", model=self.model)("Ada was in London."), self.model.parent
        (folder / "onnx").mkdir()
        self.model.rename(folder / "onnx" / "model.onnx")
        for path in folder, folder / "onnx", folder / "onnx" / "model.onnx":
            self.assertEqual(bertcl.pipeline("ner", model=path)("Ada was in London."), expected)
        (folder / "onnx").rename(folder / "other")
        with self.assertRaisesRegex(FileNotFoundError, "other: no vocabulary is beside the model"):
            bertcl.pipeline("ner", model=folder / "other")
        words = "".join(f"word{i}\n" for i in range(40000))
        (folder / "other" / "vocab.txt").write_text(words)
        with self.assertRaisesRegex(bertcl.Error, r"other/vocab.txt: .* lacks \[PAD\], \[UNK\], \[CLS\], \[SEP\]"):
            bertcl.pipeline("ner", model=folder / "other")
        (folder / "other" / "tokenizer_config.json").write_text('{"tokenizer_class": "MPNetTokenizerFast"}')
        with self.assertRaisesRegex(bertcl.Error, "other/vocab.txt: this is a vocabulary of MPNetTokenizerFast"):
            bertcl.pipeline("ner", model=folder / "other")
        (folder / "other" / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizerFast"}')
        (folder / "other" / "vocab.txt").write_text(words + "[PAD]\n[UNK]\n[CLS]\n[SEP]\n")
        with self.assertRaisesRegex(bertcl.Error, "the tokenizer .* has 40,004 tokens, .* table 30,522 rows"):
            bertcl.pipeline("ner", model=folder / "other")

    def test_another_head_is_refused(self):
        heads = {"text-classification": r"\[batch, classes\]", "token-classification": r"\[batch, seq, labels\]",
                 "fill-mask": r"\[batch, seq, vocabulary\], of 30522 tokens",
                 "feature-extraction": "last_hidden_state", "question-answering": "start_logits"}
        for task in CLASSES:
            self.pipelines(task)
            for other, form in heads.items():
                if other != task:
                    with self.subTest(model=task, pipeline=other), \
                            self.assertRaisesRegex(ValueError, f"{self.model}: {other} needs .*{form}.*; the model has "
                                                               rf"\S+ \[.*, the head of {task}$"):
                        bertcl.pipeline(other, model=self.model)

    def test_spans_are_no_classes(self):
        with self.assertRaisesRegex(ValueError, "text-classification needs .*the head of question-answering"):
            bertcl.pipeline("text-classification", model=DEFAULT_MODEL)

    def test_names_of_transformers(self):
        for alias, task in ("ner", "token-classification"), ("sentiment-analysis", "text-classification"):
            ours, _ = self.pipelines(task)
            self.assertIs(type(bertcl.pipeline(alias, model=self.model)), type(ours))
        with self.assertRaisesRegex(ValueError, "unknown task 'translation' .*ner, sentiment-analysis"):
            bertcl.pipeline("translation", model=self.model)

    def test_what_is_no_text_is_named(self):
        for task in CLASSES:
            ours, _ = self.pipelines(task)
            for given in None, 3, b"a [MASK]":
                expected = re.escape(f"{given!r}, expected a text")
                with self.assertRaisesRegex(TypeError, expected):
                    ours(given)
                with self.assertRaisesRegex(TypeError, expected):
                    ours(["a [MASK]", given])
            if task != "text-classification":
                with self.assertRaisesRegex(TypeError, "{'a .MASK.': 1}, expected a text"):
                    ours({"a [MASK]": 1})
        ours, _ = self.pipelines("text-classification")
        with self.assertRaisesRegex(ValueError, "'text' is missing in {'txt': 'a'}"):
            ours({"txt": "a"})
        with self.assertRaisesRegex(TypeError, "3, expected a text"):
            ours({"text": "a", "text_pair": 3})

    def test_data_sets(self):
        for task in CLASSES:
            ours, theirs = self.pipelines(task)
            for count in 1, 3:
                given = KeyDataset([{"a": text} for text in texts(count, "[MASK]")], "a")
                self.assert_same(ours(given), list(theirs(given)))
                self.assert_same(ours(text for text in given), list(theirs(given)))

    def test_feature_extraction(self):
        ours, theirs = self.pipelines("feature-extraction")
        given = texts(200)
        self.assert_same(ours(given), theirs(given))
        self.assert_same(ours(given[0]), theirs(given[0]))
