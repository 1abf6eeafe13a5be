# SPDX-License-Identifier: Apache-2.0
"""A pipeline of bertcl, that of transformers and the command for the same, on one model with random weights."""
import json
import random
import subprocess
import unittest

import torch
import transformers
from package import DEFAULT_MODEL, bertcl
from support import BERTCL, scratch
from transformer_models import export_outputs, spread_parameters

torch.set_num_threads(1)
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
CLASSES = {"text-classification": "BertForSequenceClassification",
           "token-classification": "BertForTokenClassification",
           "fill-mask": "BertForMaskedLM", "feature-extraction": "BertModel"}
OUTPUTS = {"feature-extraction": "last_hidden_state"}


def texts(count, mask=None):
    """Of words that the vocabulary has whole, in pieces, and not at all, with accents and punctuation."""
    chosen = random.Random(0)
    words = ["London", "engine", "Lovelace", "Analytical", "unaffable", "Zürich", "naïve", "it's", "3.14", "(sic)",
             "\u2603\u2603", "tokenization", "東京", "well-known", "E.U.", "the", "was", "Babbage's", "programmable"]
    made = [[chosen.choice(words) for _ in range(chosen.randint(1, 40))] for _ in range(count)]
    for text in made:
        if mask:
            text.insert(chosen.randrange(len(text) + 1), mask)
    return [" ".join(text) for text in made]


class PipelineCase(unittest.TestCase):
    def pipelines(self, task, tokenizer=None, labels=LABELS, **config):
        path = scratch(self)
        torch.manual_seed(0)
        settings = transformers.BertConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
            id2label=dict(enumerate(labels)), label2id={label: i for i, label in enumerate(labels)}, **config)
        settings._attn_implementation = "eager"
        head = CLASSES.get(task, "BertForSequenceClassification")
        model = getattr(transformers, head)(settings).eval()
        spread_parameters(model, 6)
        tokenizer = tokenizer or transformers.BertTokenizerFast.from_pretrained(str(DEFAULT_MODEL))
        tokenizer.save_pretrained(path)
        (path / "config.json").write_text(json.dumps(settings.to_dict(), default=str))
        self.model = path / "model.onnx"
        rows = "by_text" if head == "BertForSequenceClassification" else "by_token"
        export_outputs(model, self.model, **{rows: [OUTPUTS.get(task, "logits")]})
        return (bertcl.pipeline(task, model=path),
                transformers.pipeline(task, model=model, tokenizer=tokenizer))

    def command(self, name, texts, *options):
        """The results of `bertcl NAME` for lines of JSON."""
        lines = "".join(json.dumps(each if isinstance(each, dict) else {"text": each}) + "\n" for each in texts)
        done = subprocess.run([BERTCL, name, self.model, "--json", "-", *options], input=lines, capture_output=True,
                              text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        results = json.loads(done.stdout)["results"]
        self.assertEqual([each["text"] for each in results],
                         [each["text"] if isinstance(each, dict) else each for each in texts])
        return results

    def assert_same(self, ours, theirs):
        if isinstance(theirs, dict):
            self.assertEqual(list(sorted(ours)), list(sorted(theirs)))
            for key in theirs:
                self.assert_same(ours[key], theirs[key])
        elif isinstance(theirs, (list, tuple)):
            self.assertIsInstance(ours, (list, tuple))
            self.assertEqual(len(ours), len(theirs))
            for a, b in zip(ours, theirs):
                self.assert_same(a, b)
        elif isinstance(theirs, (str, int)):
            self.assertEqual(ours, theirs)
        else:
            self.assertAlmostEqual(ours, float(theirs), delta=1e-4)
