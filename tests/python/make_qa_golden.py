# SPDX-License-Identifier: Apache-2.0
"""make_qa_golden.py OUT.json: answers of the question-answering pipeline of transformers, whose last releases to have
one are those of 4.57, with ONNX Runtime under it. Writes options and answers of questions of dev-v1.1.json by id."""
import json
import pathlib
import sys

import numpy as np
import onnxruntime
import torch
import transformers
from golden_file import write_golden

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "models" / "minilm-l6-squad"
OPTIONS = [{"top_k": 3}, {"max_seq_len": 64, "doc_stride": 16}, {"handle_impossible_answer": True, "top_k": 2},
           {"align_to_words": False, "max_answer_len": 5}]


class Model(transformers.BertForQuestionAnswering):
    """The ONNX file in the place of the module."""

    def __init__(self):
        super().__init__(transformers.BertConfig(hidden_size=12, num_hidden_layers=1, intermediate_size=12))
        self.onnx = onnxruntime.InferenceSession(str(FOLDER / "model.onnx"), providers=["CPUExecutionProvider"])

    def forward(self, input_ids, attention_mask, token_type_ids, **_):
        given = dict(input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids)
        start, end = self.onnx.run(["start_logits", "end_logits"],
                                   {name: value.numpy().astype(np.int64) for name, value in given.items()})
        return transformers.modeling_outputs.QuestionAnsweringModelOutput(
            start_logits=torch.from_numpy(start), end_logits=torch.from_numpy(end))


def main():
    answer = transformers.pipeline("question-answering", model=Model().eval(), framework="pt",
                                   tokenizer=transformers.BertTokenizerFast(str(FOLDER / "vocab.txt")))
    data = json.loads((ROOT.parent / "shared/data/squad/dev-v1.1.json").read_text())
    questions = [(qa["id"], qa["question"], paragraph["context"]) for article in data["data"]
                 for paragraph in article["paragraphs"] for qa in paragraph["qas"]]
    questions = questions[::len(questions) // 200][:200]
    groups = [({}, questions)] + [(options, questions[i::10]) for i, options in enumerate(OPTIONS)]
    golden = [{"options": options,
               "answers": {key: answer(question=question, context=context, **options)
                           for key, question, context in some}} for options, some in groups]
    write_golden(pathlib.Path(sys.argv[1]), {"transformers": transformers.__version__, "groups": golden}, 4)


main()
