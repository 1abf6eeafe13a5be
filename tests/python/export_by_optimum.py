# SPDX-License-Identifier: Apache-2.0
"""Small models of random weights as ONNX files of Hugging Face's optimum, with and without ONNX Runtime's optimization:

    build/venv-optimum/bin/python tests/python/export_by_optimum.py FOLDER [NAME...]

writes FOLDER/NAME/TASK/LEVEL/model.onnx of all architectures, or of those named; what optimum refuses is in
FOLDER/refused.json, a message for each name. Needs the packages of requirements-optimum.txt; downloads nothing."""
import json
import logging
import pathlib
import sys
import warnings

import torch
import transformers
from optimum.exporters.onnx import main_export, onnx_export_from_model

from architecture_models import ARCHITECTURES, DECODERS, FURTHER, SIZES, JinaV2
from transformer_models import spread_parameters

# By task: the class, and the levels of optimization.
TASKS = {
    "feature-extraction": (transformers.AutoModel, ("none", "O1", "O2", "O3")),
    "text-classification": (transformers.AutoModelForSequenceClassification, ("none", "O2")),
}
WITH_PAST = {"text-generation-with-past": (transformers.AutoModelForCausalLM, ("none",))}  # of decoders
# Their names in transformers 5; the one that optimum takes does not have them.
NEWER = {"nomic-bert": "nomic_bert", "gte": "gte", "eurobert": "eurobert"}


class JinaBert(JinaV2):
    """With the inputs that optimum gives what has BERT's configuration."""

    def __init__(self):
        super().__init__()
        self.config = transformers.BertConfig(**SIZES)
        self.types = torch.nn.Embedding(2, SIZES["hidden_size"])

    def forward(self, input_ids, attention_mask, token_type_ids):
        return super().forward(input_ids, attention_mask, self.types(token_type_ids))


JinaBert.__module__ = "transformers_modules.jina"  # as transformers imports code beside a checkpoint


def export_folder(name, folder):
    """As `optimum-cli export onnx` does, from what transformers has saved."""
    if name in NEWER:
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(dict(model_type=NEWER[name])))
        main_export(str(folder), folder, task="feature-extraction")
    for task, (made, levels) in (TASKS | WITH_PAST if name in DECODERS else TASKS).items():
        torch.manual_seed(0)
        config = {**ARCHITECTURES, **FURTHER}[name][0]().config
        config._attn_implementation = None  # what is the default
        model = made.from_config(config).eval()
        spread_parameters(model, 6)
        saved = folder / task / "saved"
        model.save_pretrained(saved)
        for level in levels[:1] if name in DECODERS else levels:  # it optimizes no decoders
            main_export(str(saved), folder / task / level, task=task, optimize=None if level == "none" else level,
                        do_validation=False)


def export_jina(folder):
    torch.manual_seed(0)
    model = JinaBert().eval()
    spread_parameters(model, 6)
    for level in TASKS["feature-extraction"][1]:
        onnx_export_from_model(model, folder / "feature-extraction" / level, task="feature-extraction",
                               optimize=None if level == "none" else level, do_validation=False)


def main(folder, *names):
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    refused = {}
    for name in names or (*ARCHITECTURES, *DECODERS):
        try:
            export_jina(folder / name) if name == "jina-v2" else export_folder(name, folder / name)
        except Exception as error:  # whatever optimum and what is below it raise
            refused[name] = f"{type(error).__name__}: {error}"
    (folder / "refused.json").write_text(json.dumps(refused, indent=2) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
