# SPDX-License-Identifier: Apache-2.0
"""int8 BERT inference on any OpenCL device."""
from typing import TYPE_CHECKING

from ._bertcl import Error, __version__
from .evaluation import evaluate
from .quantization import quantize
from .session import ModelInfo, NodeArg, Session

if TYPE_CHECKING:
    from .cross_encoder import CrossEncoder


def pipeline(task, model, **options):
    """A pipeline with the inputs and results of those of Hugging Face; see bertcl.pipelines."""
    from . import pipelines  # needs tokenizers, which a Session does not

    return pipelines.pipeline(task, model, **options)


def __getattr__(name):
    # These need tokenizers, which a Session does not.
    if name == "CrossEncoder":
        from .cross_encoder import CrossEncoder

        return CrossEncoder
    if name == "SentenceTransformer":
        from .sentence_transformer import SentenceTransformer

        return SentenceTransformer
    raise AttributeError(f"module 'bertcl' has no attribute '{name}'")


__all__ = ["CrossEncoder", "Error", "ModelInfo", "NodeArg", "SentenceTransformer", "Session", "__version__", "evaluate",
           "pipeline", "quantize"]
