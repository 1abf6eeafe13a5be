# SPDX-License-Identifier: Apache-2.0
"""Models with tokenizers that are not BERT's, fed with texts: each of the model's inputs gets what
Hugging Face's tokenizer gives, and answers are cut from the text as they stand there."""
import json
import unittest

import numpy as np
import onnx
from onnx import TensorProto, helper
from support import bertcl, model_of, scratch
from tokenizer_makers import TOKENIZERS

TEXTS = ["The caf\u00e9 of K\u00f6ln, in 1823,  cost 3.14 \u20ac a day.", "Who? Ren\u00e9\u2019s \U0001f600 friend."] * 40
CONTEXT = "In  K\u00f6ln, Ren\u00e9\u2019s \U0001f600 caf\u00e9 opened in 1823;\nit cost 3.14 \u20ac."


def save_model(path, words, inputs, weights=None):
    """logits [batch, seq, 2], or as wide as `weights`: a table of words; input 1 and 2 (mask, types) add their value."""
    generator = np.random.default_rng(5)
    table = generator.standard_normal((words, 2)).astype(np.float32) if weights is None else weights
    nodes = [helper.make_node("Gather", ["table", inputs[0]], ["words"])]
    total = "words"
    for name in inputs[1:]:
        nodes += [helper.make_node("Cast", [name], [f"{name}_f"], to=TensorProto.FLOAT),
                  helper.make_node("Unsqueeze", [f"{name}_f", "last"], [f"{name}_u"]),
                  helper.make_node("Add", [total, f"{name}_u"], [f"{name}_sum"])]
        total = f"{name}_sum"
    nodes.append(helper.make_node("Identity", [total], ["logits"]))
    onnx.save(model_of(nodes, dict.fromkeys(inputs, (np.int64, ["batch", "seq"])),
                       {"logits": ["batch", "seq", table.shape[1]]}, {"table": table, "last": np.array([-1])}), path)
    return table


class TokenizerModels(unittest.TestCase):
    def each_tokenizer(self):
        for name in ("roberta", "xlm_roberta", "modern_bert"):
            tokenizer, folder = TOKENIZERS[name](TEXTS), scratch(self)
            tokenizer.save(str(folder / "tokenizer.json"))
            yield tokenizer, folder

    def test_inputs_are_those_that_the_model_has(self):
        texts = [(TEXTS[0], None), (TEXTS[1], None), (TEXTS[1], TEXTS[0])]
        for tokenizer, folder in self.each_tokenizer():
            lines = folder / "texts.jsonl"
            lines.write_text("".join(json.dumps({"text": a, **({"text_pair": b} if b else {})}) + "\n"
                                     for a, b in texts), encoding="utf-8")
            for inputs in (["input_ids"], ["input_ids", "attention_mask"],
                           ["input_ids", "attention_mask", "token_type_ids"]):
                table = save_model(folder / "model.onnx", tokenizer.get_vocab_size(), inputs)
                done = bertcl("run", folder / "model.onnx", "--texts", lines, "--device", "cpu")
                for (a, b), line in zip(texts, done.stdout.splitlines(), strict=True):
                    encoding = tokenizer.encode(a, b) if b else tokenizer.encode(a)
                    made = json.loads(line)
                    self.assertEqual(made["tokens"], [tokenizer.id_to_token(i) for i in encoding.ids])
                    expected = table[encoding.ids] + (len(inputs) > 1)
                    if len(inputs) > 2:
                        expected = expected + np.array(encoding.type_ids)[:, None]
                    np.testing.assert_allclose(made["outputs"]["logits"], expected, atol=1e-5)

    def test_answers_are_cut_from_the_text(self):
        for tokenizer, folder in self.each_tokenizer():
            encoding = tokenizer.encode("Who?", CONTEXT)
            # Tokens that occur once, so that they tell a place.
            place = [i for i, sequence in enumerate(encoding.sequence_ids)
                     if sequence == 1 and encoding.ids.count(encoding.ids[i]) == 1]
            far = [i for i in place if i < place[1] + 30][-1]  # the longest answer has 30 tokens
            seen = set()
            for first, last in [(place[0], place[2]), (place[1], far), (place[3], place[3])]:
                weights = np.zeros((tokenizer.get_vocab_size(), 2), np.float32)
                weights[encoding.ids[first], 0] = weights[encoding.ids[last], 1] = 9
                save_model(folder / "model.onnx", len(weights), ["input_ids"], weights)
                (folder / "text.txt").write_text(CONTEXT, encoding="utf-8")
                answer = json.loads(bertcl("answer", folder / "model.onnx", "-q", "Who?", "--context",
                                           folder / "text.txt", "--device", "cpu", "--json", "-").stdout)
                begin, end = encoding.offsets[first][0], encoding.offsets[last][1]
                expected = CONTEXT[begin:end].strip()
                self.assertEqual(answer["answer"], expected)
                self.assertEqual(CONTEXT[answer["answer_start"]:][:len(expected)], expected)
                seen.add(expected)
            self.assertGreater(len(seen), 1)

    def test_options_of_bert_are_refused(self):
        for tokenizer, folder in self.each_tokenizer():
            save_model(folder / "model.onnx", tokenizer.get_vocab_size(), ["input_ids"])
            done = bertcl("answer", folder / "model.onnx", "-q", "Who?", "--no-lower-case", expect=2)
            self.assertIn("--lower-case and --strip-accents are for BERT's", done.stderr)
