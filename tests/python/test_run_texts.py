# SPDX-License-Identifier: Apache-2.0
"""`bertcl run` on texts whose outputs have an axis of tokens in another place than the second."""
import json
import random
import unittest

import numpy as np
import onnx
from onnx import helper
from support import bertcl, model_of, scratch

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(200))]
IDS = {word: i for i, word in enumerate(WORDS)}
TABLE = np.stack([np.arange(len(WORDS)) / 100, -np.arange(len(WORDS)) / 50], 1).astype(np.float32)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def node(op, inputs, output, **attributes):
    return helper.make_node(op, inputs.split(), [output], **attributes)


def of_pairs(ids):
    """[classes, s], [heads, s, s] and [s, s] of a sequence."""
    vectors = TABLE[ids]
    return {"classes": vectors.T, "heads": np.einsum("ih,jh->hij", vectors, vectors), "pairs": vectors @ vectors.T}


class Texts(unittest.TestCase):
    def setUp(self):
        self.folder = scratch(self)
        self.folder.joinpath("vocab.txt").write_text("\n".join(WORDS) + "\n")
        draw = random.Random(3)
        self.texts = [" ".join(draw.choices(WORDS[5:], k=draw.choice([1, 2, 7, 30, 31, 90]))) for _ in range(60)]
        self.ids = [np.array([2, *(IDS[word] for word in text.split()), 3]) for text in self.texts]
        self.folder.joinpath("texts.txt").write_text("\n".join(self.texts) + "\n")

    def save(self, nodes, outputs, seq="s", **constants):
        model = model_of([node("Gather", "table input_ids", "vectors", axis=0), *nodes],
                         dict.fromkeys(INPUTS, (np.int64, ["b", seq])), outputs,
                         {name: np.array(value) for name, value in {"table": TABLE, **constants}.items()})
        onnx.checker.check_model(model)
        onnx.save(model, self.folder / "model.onnx")

    def save_pairs(self, seq="s"):
        self.save([node("Transpose", "vectors", "classes", perm=[0, 2, 1]), node("Unsqueeze", "classes two", "rows"),
                   node("Unsqueeze", "classes three", "columns"), node("MatMul", "columns rows", "heads"),
                   node("MatMul", "vectors classes", "pairs")],
                  {"pairs": ["b", seq, seq], "heads": ["b", 2, seq, seq], "classes": ["b", 2, seq]}, seq,
                  two=[2], three=[3])

    def run_texts(self, *options, expect=0):
        return bertcl("run", self.folder / "model.onnx", self.folder / "texts.txt", *options, expect=expect)

    def check(self, found, expected):
        self.assertEqual(found.shape, expected.shape)
        np.testing.assert_allclose(found, expected, atol=1e-3)

    def arrays(self):
        self.run_texts("--outputs", self.folder / "y.npz")
        with np.load(self.folder / "y.npz") as arrays:
            return dict(arrays)

    def lines(self):
        return [json.loads(line)["outputs"] for line in self.run_texts().stdout.splitlines()]

    def test_lines_have_no_padding_on_any_axis(self):
        self.save_pairs()
        lines = self.lines()
        self.assertEqual(len(lines), len(self.ids))
        for ids, line in zip(self.ids, lines):
            for name, expected in of_pairs(ids).items():
                self.check(np.array(line[name]), expected)

    def test_arrays_are_filled_up_with_zeros_on_every_axis(self):
        self.save_pairs()
        longest = max(map(len, self.ids))
        shapes = {"classes": (2, longest), "heads": (2, longest, longest), "pairs": (longest, longest)}
        arrays = self.arrays()
        for i, ids in enumerate(self.ids):
            for name, values in of_pairs(ids).items():
                expected = np.zeros(shapes[name], np.float32)
                expected[tuple(map(slice, values.shape))] = values
                self.check(arrays[name][i], expected)

    def test_a_fixed_length_is_an_extent_as_any_other(self):
        self.save_pairs(seq=96)
        arrays = self.arrays()
        self.assertEqual(arrays["heads"].shape, (60, 2, 96, 96))
        for i, ids in enumerate(self.ids):
            for name, expected in of_pairs(ids).items():
                own = arrays[name][i][tuple(map(slice, expected.shape))]
                self.check(own, expected)

    def test_texts_are_not_padded_where_an_axis_does_not_say_what_it_is(self):
        self.save([node("Reshape", "vectors flat", "flat_vectors")], {"flat_vectors": ["b", "n"]}, flat=[0, -1])
        arrays, longest = self.arrays()["flat_vectors"], 2 * max(map(len, self.ids))
        for i, (ids, line) in enumerate(zip(self.ids, self.lines())):
            expected = TABLE[ids].reshape(-1)
            self.check(np.array(line["flat_vectors"]), expected)
            self.check(arrays[i], np.pad(expected, (0, longest - len(expected))))

    def test_outputs_that_are_not_of_texts_are_refused_by_name(self):
        self.save([node("Reshape", "vectors flat", "all")], {"all": ["n", 2]}, flat=[-1, 2])
        self.assertIn("output 'all'", self.run_texts(expect=2).stderr)
        self.save([node("ReduceSum", "vectors", "sum", keepdims=0)], {"sum": []})
        self.assertIn("output 'sum'", self.run_texts(expect=2).stderr)
