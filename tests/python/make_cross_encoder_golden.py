# SPDX-License-Identifier: Apache-2.0
"""make_cross_encoder_golden.py OUT.json: what sentence_transformers.CrossEncoder gives for cross_encoder_model.py."""
import pathlib
import sys
import tempfile

import sentence_transformers
import torch
import transformers
from cross_encoder_model import CASES, DOCUMENTS, QUERIES, make_model, pairs
from golden_file import write_golden

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "models" / "minilm-l6-squad"


def main():
    golden = {"sentence_transformers": sentence_transformers.__version__, "cases": {}}
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            make_model(**case).save_pretrained(folder)
            transformers.BertTokenizerFast.from_pretrained(str(FOLDER)).save_pretrained(folder)
            model = sentence_transformers.CrossEncoder(folder, device="cpu", max_length=48)
            made = {"predict": model.predict(pairs()).tolist(),
                    "softmax": model.predict(pairs(), apply_softmax=True).tolist(),
                    "tanh": model.predict(pairs(), activation_fn=torch.nn.Tanh()).tolist()}
            if case["labels"] == 1:
                made["rank"] = [model.rank(query, DOCUMENTS, return_documents=True) for query in QUERIES]
                made["top_k"] = model.rank(QUERIES[0], DOCUMENTS, top_k=2)
            golden["cases"][name] = made
    write_golden(pathlib.Path(sys.argv[1]), golden, 3)


main()
