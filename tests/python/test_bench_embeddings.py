# SPDX-License-Identifier: Apache-2.0
"""bench/embeddings: the texts that it takes, and the engines that it has."""
import ast
import json
import pathlib
import sys
import unittest

from support import ROOT, scratch

PEERS = ROOT / "bench" / "peers"
sys.path.insert(0, str(PEERS))
import embed


class Texts(unittest.TestCase):
    def test_sentences_are_those_of_all_paragraphs_each_once(self):
        contexts = ["One is here. Two (2.5) is \"there\".  Is it?", "Is it? No e.g. here", "A"]
        data = {"data": [{"paragraphs": [{"context": context} for context in contexts]}]}
        path = scratch(self) / "d.json"
        path.write_text(json.dumps(data), encoding="utf-8")
        self.assertEqual(embed.sentences(path),
                         ["One is here.", 'Two (2.5) is "there".', "Is it?", "No e.g. here", "A"])

    def test_they_are_spread_evenly(self):
        self.assertEqual(embed.spread(list(range(10)), 4), [0, 2, 5, 7])
        self.assertEqual(embed.spread([1, 2], 5), [1, 2])

    def test_every_engine_has_a_worker(self):
        source = ast.parse((PEERS / "embed_worker.py").read_text(encoding="utf-8"))
        makers = next(node.value for node in ast.walk(source)
                      if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "makers")
        options = type("Options", (), {"onnx": pathlib.Path("o"), "source": pathlib.Path("s"), "engines": []})
        options.work = scratch(self)
        (options.work / "int8").mkdir()
        (options.work / "int8" / "model.onnx").touch()
        models = embed.make_models(options, None)
        self.assertEqual(set(models), set(embed.ENGINES))
        self.assertEqual({kind for kind, _ in models.values()}, {"bertcl", *(key.value for key in makers.keys)})
