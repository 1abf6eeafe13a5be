# SPDX-License-Identifier: Apache-2.0
"""Arguments of programs written for transformers: what pipelines take, and what they refuse with a remedy."""
import dataclasses
import re
import unittest

from encoder_model import write_encoder
from package import DEFAULT_MODEL, bertcl
from support import scratch

LONG = "the engine was made by Ada Lovelace in the east of London"
CUT = "the engine was made by Ada"


class DataSet:
    """As torch's: neither an iterator nor an IndexError at its end."""

    def __init__(self, rows):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        if i >= len(self.rows):
            raise AssertionError("read beyond its end")
        return self.rows[i]


class Table:
    """As a DataFrame of pandas, whose items are the names of its columns."""
    columns = ["question", "context"]
    dtypes = ["object", "object"]

    def __iter__(self):
        return iter(self.columns)

    def __len__(self):
        return 5


class PipelineArgumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = scratch(cls) / "encoder"
        write_encoder(cls.model)
        cls.vectors = bertcl.pipeline("feature-extraction", model=cls.model)
        cls.answer = bertcl.pipeline("question-answering", model=DEFAULT_MODEL)
        for name in "vectors", "answer":
            cls.addClassCleanup(delattr, cls, name)

    def test_texts_are_truncated_to_max_length(self):
        expected = self.vectors(CUT)
        self.assertEqual(len(expected[0]), 8)
        for options in ({"max_length": 8}, {"truncation": True, "max_length": 8, "padding": True},
                        {"tokenize_kwargs": {"truncation": True, "max_length": 8}},
                        {"tokenizer_kwargs": {"truncation": "longest_first", "max_length": 8}, "padding": "longest"}):
            with self.subTest(**options):
                self.assertEqual(self.vectors(LONG, **options), expected)
                made = bertcl.pipeline("feature-extraction", model=self.model, **options)
                self.assertEqual(made(LONG), expected)
                self.assertEqual(len(made(LONG, max_length=5)[0]), 5)
        self.assertEqual(self.vectors(LONG, truncation=True, padding=False, max_length=100_000), self.vectors(LONG))

    def test_what_pipelines_do_not_do_is_refused(self):
        for options, message in (({"truncation": False}, "truncation is False, but .* always truncated.*; leave it"),
                                 ({"truncation": "only_second"}, "truncation is 'only_second'"),
                                 ({"padding": "max_length"}, "padding is 'max_length', but .* without padding; leave"),
                                 ({"max_length": 8.5}, "max_length is 8.5, expected an integer")):
            with self.subTest(**options):
                with self.assertRaisesRegex(TypeError, message):
                    self.vectors(LONG, **options)
                with self.assertRaisesRegex(TypeError, message):
                    bertcl.pipeline("feature-extraction", model=self.model, **options)
        for length, message in (0, "max_length is 0, expected 1 or more"), (1, "less than the 2 special ones"):
            with self.assertRaisesRegex(ValueError, message):
                self.vectors(LONG, max_length=length)

    def test_questions_have_max_seq_len(self):
        example = {"question": "Who made it?", "context": LONG}
        self.assertEqual(self.answer(example, truncation=True, padding="max_length"), self.answer(example))
        with self.assertRaisesRegex(TypeError, "max_length is not an option of question-answering; max_seq_len is"):
            self.answer(example, max_length=64)

    def test_data_sets_of_torch_are_lists(self):
        self.assertEqual(self.vectors(DataSet([CUT, LONG])), self.vectors([CUT, LONG]))
        embedder = bertcl.SentenceTransformer(self.model, pooling="mean")
        self.assertEqual(embedder.encode(DataSet([CUT, LONG])).tolist(), embedder.encode([CUT, LONG]).tolist())
        example = {"question": "Who made it?", "context": LONG}
        answer = self.answer(example)
        self.assertEqual(self.answer(DataSet([example, example])), [answer, answer])
        for one in [example], (example,):
            self.assertEqual(self.answer(one), answer)
        for one in DataSet([example]), (each for each in [example]), iter([example]), map(dict, [example]):
            self.assertEqual(self.answer(one), [answer])
        with self.assertRaisesRegex(TypeError, r"texts\[1\] is 3, expected a text"):
            self.vectors(DataSet([CUT, 3]))

    def test_names_of_columns_are_no_texts(self):
        embedder = bertcl.SentenceTransformer(self.model, pooling="mean")
        for call in self.vectors, embedder.encode, self.answer:
            with self.assertRaisesRegex(TypeError, "a Table is no list; give a column of it"):
                call(Table())

    def test_none_is_the_default(self):
        example = {"question": "Who made it?", "context": LONG}
        options = dict.fromkeys(("top_k", "doc_stride", "max_seq_len", "max_question_len", "max_answer_len",
                                 "handle_impossible_answer", "align_to_words", "padding", "truncation", "batch_size"))
        self.assertEqual(self.answer(example, **options), self.answer(example))
        twice = bertcl.pipeline("question-answering", model=DEFAULT_MODEL, **{**options, "top_k": 2})
        self.assertEqual(twice(example, **options), self.answer(example, top_k=2))
        self.assertEqual(twice(example, top_k=1), self.answer(example))
        self.assertEqual(self.vectors(CUT, return_tensors=None, max_length=None), self.vectors(CUT))

    def test_a_lone_surrogate_is_named(self):
        message = r"a text has the lone surrogate '\\ud800' at character 2, which no valid text has; replace it"
        embedder = bertcl.SentenceTransformer(self.model, pooling="mean", device=-1)
        for call in (lambda text: self.vectors(["fine", text]), embedder.encode,
                     lambda text: self.answer(question="Who?", context=text),
                     lambda text: self.answer(question=text, context="Ada.")):
            with self.assertRaisesRegex(ValueError, message):
                call("a \ud800 b")
        with self.assertRaisesRegex(TypeError, "3, expected a text"):
            self.vectors(["fine", 3])

    def test_a_device_may_be_its_index_or_that_of_torch(self):
        for device in -1, None, TorchDevice("cpu"):
            made = bertcl.pipeline("feature-extraction", model=self.model, device=device)
            self.assertEqual(made(CUT), self.vectors(CUT))
        with self.assertRaisesRegex(TypeError, "device is .*cuda.*, a device of torch; give 'gpu', or its index"):
            bertcl.pipeline("feature-extraction", model=self.model, device=TorchDevice("cuda"))


TorchDevice = dataclasses.make_dataclass("device", ["type"])


class OptionsOfTransformersTest(unittest.TestCase):
    """Those that bertcl does not have."""

    @classmethod
    def setUpClass(cls):
        cls.model = scratch(cls) / "encoder"
        write_encoder(cls.model)

    def makers(self):
        return (("pipeline('feature-extraction')",
                 lambda **options: bertcl.pipeline("feature-extraction", model=self.model, **options)(CUT)),
                ("SentenceTransformer()",
                 lambda **options: bertcl.SentenceTransformer(self.model, pooling="mean", **options).encode(CUT)
                 .tolist()))

    def test_what_would_change_nothing_is_taken(self):
        harmless = {"local_files_only": True, "token": "x", "trust_remote_code": False, "use_fast": True,
                    "revision": None, "torch_dtype": "auto", "num_workers": 2, "cache_folder": "/nowhere",
                    "backend": "onnx", "device_map": None,
                    "model_kwargs": {"attn_implementation": "sdpa", "torch_dtype": "float32"}}
        for name, make in self.makers():
            with self.subTest(name):
                expected = make()
                self.assertEqual(make(**harmless), expected)
                for folder in self.model, str(self.model) + "/":
                    self.assertEqual(make(tokenizer=folder, config=folder), expected)
        ours = bertcl.SentenceTransformer(model_name_or_path=self.model, pooling="mean")
        self.assertEqual(ours.encode(CUT).tolist(), expected)

    def test_what_might_change_results_is_refused_with_a_remedy(self):
        other = scratch(self)
        for options, message in (
                ({"trust_remote_code": True}, ": trust_remote_code is True, which is not supported; leave it out: no"),
                ({"use_fast": False}, ": use_fast is False, .*; leave it out: tokenizers are"),
                ({"tokenizer": other}, f": tokenizer is .*{other}.*; leave it out: the one in the model's folder"),
                ({"tokenizer": 3}, ": tokenizer is 3, "), ({"config": {}}, ": config is {}, .*config.json"),
                ({"torch_dtype": "float16"}, ": torch_dtype is 'float16', .*; give precision='fp16' or 'bf16'"),
                ({"revision": "main"}, ": revision is 'main', .*; leave it out, and export the revision"),
                ({"model_kwargs": {"file_name": "a.onnx"}},
                 ": model_kwargs got an unexpected keyword argument 'file_name'; give the file as the path"),
                ({"model_kwargs": {"dtype": "float16"}}, ": model_kwargs: dtype is 'float16'"),
                ({"model_kwargs": 3}, " got an unexpected keyword argument 'model_kwargs'"),
                ({"wrong": 1}, " got an unexpected keyword argument 'wrong'; it takes .*batch_tokens, .*precision")):
            for name, make in self.makers():
                with self.subTest(name, **options), self.assertRaisesRegex(TypeError, "^" + re.escape(name) + message):
                    make(**options)
        vectors = bertcl.pipeline("feature-extraction", model=self.model)
        self.assertEqual(vectors(CUT, num_workers=1), vectors(CUT))
        with self.assertRaisesRegex(TypeError, "^feature-extraction got an unexpected keyword argument 'top_k'; it "
                                               "takes texts, return_tensors, max_length$"):
            vectors(CUT, top_k=3)
        for given in {}, {"path": self.model, "model_name_or_path": self.model}:
            for make in bertcl.SentenceTransformer, bertcl.CrossEncoder:
                with self.assertRaisesRegex(TypeError, rf"^{make.__name__}\(\) takes either path or model_name"):
                    make(**given)


class HubNamesTest(unittest.TestCase):
    def test_a_model_that_is_not_there_is_exported(self):
        export = "bertcl does not download: optimum-cli export onnx --model {0} FOLDER"
        bare = scratch(self)
        (bare / "model.safetensors").touch()
        for model, found, error in (("dslim/bert-base-NER", "no such file or folder", bertcl.Error),
                                    (bare, "neither model.onnx nor onnx/model.onnx is there", FileNotFoundError)):
            for make in (bertcl.SentenceTransformer, bertcl.CrossEncoder, lambda model: bertcl.pipeline("ner", model)):
                with self.assertRaisesRegex(error, f"^{model}: {found}; {export.format(model)}") as raised:
                    make(model)
                self.assertEqual(getattr(raised.exception, "code", "io"), "io")
        with self.assertRaisesRegex(bertcl.Error, "nowhere.onnx: no such file"):
            bertcl.pipeline("ner", "nowhere.onnx")
