# SPDX-License-Identifier: Apache-2.0
"""`bertcl eval --task retrieval` and `--task reranking` on SQuAD against NumPy on the outputs of ONNX Runtime, with
the tokenizer of Hugging Face and BM25 written out here."""
import collections
import json
import math
import re
import unittest

from support import ROOT, SHARED, Reference, bertcl, needs, scratch

needs("torch")

import numpy as np
import tokenizers
import torch
import transformers
from cross_encoder_model import make_model
from transformer_models import export_outputs

DATA = SHARED / "data" / "squad" / "xquad.en.json"
torch.set_num_threads(1)


def questions(limit=None):
    """(id, question, index of its paragraph), and the paragraphs; equal ones are one."""
    asked, places = [], {}
    for article in json.loads(DATA.read_text(encoding="utf-8"))["data"]:
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                if limit is None or len(asked) < limit:
                    place = places.setdefault(paragraph["context"], len(places))
                    asked.append((qa["id"], qa["question"], place))
    return asked, list(places)


def scores_at_10(ranks):
    found = [rank for rank in ranks if rank <= 10]
    return {"ndcg_at_10": 100 * sum(1 / math.log2(1 + rank) for rank in found) / len(ranks),
            "mrr_at_10": 100 * sum(1 / rank for rank in found) / len(ranks),
            "recall_at_10": 100 * len(found) / len(ranks)}


class Retrieval(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not DATA.exists():
            raise unittest.SkipTest(f"third-party file ../shared/{DATA.relative_to(SHARED)} is absent")
        cls.folder = scratch(cls)
        vocabulary = ROOT / "models" / "minilm-l6-squad" / "vocab.txt"
        cls.tokenizer = tokenizers.BertWordPieceTokenizer(str(vocabulary), lowercase=True)

    def evaluate(self, task, model, *options):
        report, predictions = self.folder / "r.json", self.folder / "p.json"
        vocabulary = ROOT / "models" / "minilm-l6-squad" / "vocab.txt"
        bertcl("eval", *model, "--task", task, "--data", DATA, "--vocab", vocabulary, "--json", report,
               "--predictions", predictions, "--force", *options)
        return json.loads(report.read_text())["models"], json.loads(predictions.read_text(encoding="utf-8"))

    def embedding_model(self, seed):
        """Two layers of random weights that pool by the mean, with sentence-transformers' files beside them. Its
        vectors are near those of its words, which find a part of the paragraphs."""
        folder = self.folder / f"embedding-{seed}"
        (folder / "1_Pooling").mkdir(parents=True)
        modules = [{"type": f"sentence_transformers.models.{name}", "path": path}
                   for name, path in (("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize"))]
        (folder / "modules.json").write_text(json.dumps(modules))
        (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
        (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 96, "do_lower_case": false}')
        torch.manual_seed(seed)
        config = transformers.BertConfig(vocab_size=30522, hidden_size=64, num_hidden_layers=2,
                                         num_attention_heads=4, intermediate_size=128, max_position_embeddings=128)
        config._attn_implementation = "eager"
        export_outputs(transformers.BertModel(config), folder / "model.onnx", by_token=["last_hidden_state"])
        return folder / "model.onnx"

    def vectors(self, model, texts):
        reference, rows = Reference(model), []
        for text in texts:
            ids = self.tokenizer.encode(text).ids
            ids = np.array([ids[:95] + ids[-1:] if len(ids) > 96 else ids])
            run = reference.run(dict(input_ids=ids, attention_mask=np.ones_like(ids), token_type_ids=0 * ids))
            rows.append(run["last_hidden_state"][0].astype(np.float64).mean(0))
        return np.array(rows) / np.linalg.norm(rows, axis=1, keepdims=True)

    def test_retrieval(self):
        asked, paragraphs = questions(limit=150)
        one, other = self.embedding_model(0), self.embedding_model(1)
        models, predictions = self.evaluate("retrieval", (one, "--compare", other), "--limit", "150")
        made = [(self.vectors(model, [q for _, q, _ in asked]), self.vectors(model, paragraphs))
                for model in (one, other)]
        for (queries, documents), found in zip(made, models):
            cosines = queries @ documents.T
            right = np.array([place for _, _, place in asked])
            own = cosines[np.arange(len(asked)), right]
            # Cosines that differ by rounding alone may come in any order.
            ranks = [1 + (cosines > (own - sign * 1e-5)[:, None]).sum(1) - (sign > 0) for sign in (1, -1)]
            for name, least in scores_at_10(ranks[0]).items():
                most = scores_at_10(ranks[1])[name]
                self.assertGreaterEqual(found[name], least - 1e-9, name)
                self.assertLessEqual(found[name], most + 1e-9, name)
                self.assertGreater(found[name], 20, "finds nothing")
                self.assertLess(most - least, 2)
        cosines = made[0][0] @ made[0][1].T
        for row, (id, _, _) in enumerate(asked):
            self.assertGreater(cosines[row, predictions[id]], cosines[row].max() - 1e-5)
        both = [np.concatenate(each) for each in made]
        agreement = (both[0] * both[1]).sum(1)
        self.assertAlmostEqual(models[1]["mean_cosine"], agreement.mean(), places=5)
        self.assertAlmostEqual(models[1]["least_cosine"], agreement.min(), places=5)

    def test_reranking(self):
        asked, paragraphs = questions()
        limit = 12
        folder = self.folder / "cross"
        folder.mkdir()
        export_outputs(make_model(labels=1, longest=64), folder / "model.onnx", by_text=["logits"])
        longest = "64"
        (found,), predictions = self.evaluate("reranking", (folder / "model.onnx",), "--limit", limit,
                                              "--max-seq-length", longest)
        words = [re.findall(r"\w+", text.lower()) for text in paragraphs]
        counts = [collections.Counter(each) for each in words]
        having = collections.Counter(word for each in counts for word in each)
        mean = sum(map(len, words)) / len(words)

        def bm25(query, place):
            score = 0
            for word in re.findall(r"\w+", query.lower()):
                idf = math.log(1 + (len(words) - having[word] + 0.5) / (having[word] + 0.5))
                count = counts[place][word]
                score += idf * count / (count + 1.2 * (0.25 + 0.75 * len(words[place]) / mean))
            return score

        reference = Reference(folder / "model.onnx")
        self.tokenizer.enable_truncation(int(longest))
        self.addCleanup(self.tokenizer.no_truncation)
        ranks, before = [], []
        for id, question, right in asked[:limit]:
            scores = [bm25(question, place) for place in range(len(words))]
            order = sorted(range(len(words)), key=lambda place: (-round(scores[place], 9), place))
            before.append(order.index(right) + 1)
            logits = []
            for place in order[:20]:
                each = self.tokenizer.encode(question, paragraphs[place])
                run = reference.run(dict(input_ids=np.array([each.ids]), attention_mask=np.array([each.attention_mask]),
                                         token_type_ids=np.array([each.type_ids])))
                logits.append(float(run["logits"].ravel()[0]))
            self.assertGreater(logits[order[:20].index(predictions[id])], max(logits) - 1e-4)
            if right in order[:20]:
                ranks.append(1 + sum(logit > logits[order.index(right)] for logit in logits))
            else:
                ranks.append(1000)
        self.assertAlmostEqual(found["mrr_at_10"], scores_at_10(ranks)["mrr_at_10"], places=9)
        self.assertAlmostEqual(found["bm25_mrr_at_10"], scores_at_10(before)["mrr_at_10"], places=9)
        self.assertAlmostEqual(found["bm25_recall_at_20"], 100 * np.mean(np.array(before) <= 20), places=9)
        self.assertGreater(found["bm25_mrr_at_10"], 50, "BM25 is no good")
