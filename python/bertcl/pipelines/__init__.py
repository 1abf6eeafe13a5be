# SPDX-License-Identifier: Apache-2.0
"""Tasks with the inputs and results of Hugging Face's pipelines. They need the package tokenizers."""
from .feature_extraction import FeatureExtraction
from .fill_mask import FillMask
from .question_answering import QuestionAnswering
from .text_classification import TextClassification
from .token_classification import TokenClassification
from .zero_shot_classification import ZeroShotClassification

TASKS = {
    "feature-extraction": FeatureExtraction,
    "fill-mask": FillMask,
    "question-answering": QuestionAnswering,
    "text-classification": TextClassification,
    "token-classification": TokenClassification,
    "zero-shot-classification": ZeroShotClassification,
}
# As transformers has them.
ALIASES = {"ner": "token-classification", "sentiment-analysis": "text-classification"}


def pipeline(task, model, **options):
    """The pipeline of a task ("ner" is token-classification, "sentiment-analysis" text-classification). model: an
    .onnx file, or a folder with model.onnx, onnx/model.onnx or one .onnx file; beside it, or above its folder onnx, lie
    tokenizer.json or another vocabulary, and config.json with the labels. options: those of calls, as their defaults,
    and those of bertcl.Session. ValueError: the model has another head."""
    name = ALIASES.get(task, task)
    if name not in TASKS:
        raise ValueError(f"unknown task '{task}' (choose from {', '.join([*TASKS, *ALIASES])})")
    return TASKS[name](model, **options)


__all__ = ["pipeline", *sorted(each.__name__ for each in TASKS.values())]
