# SPDX-License-Identifier: Apache-2.0
"""int8 BERT inference on any OpenCL device."""
import importlib
from typing import TYPE_CHECKING

try:
    from ._bertcl import Error, __version__
except ImportError as error:
    if "libOpenCL" not in str(error):
        raise
    raise ImportError(f"{error}: install the OpenCL loader (apt-get install ocl-icd-libopencl1)", name=error.name,
                      path=error.path) from None
from .evaluation import evaluate
from .quantization import quantize
from .session import ModelInfo, NodeArg, Session

if TYPE_CHECKING:
    from .cross_encoder import CrossEncoder
    from .sentence_transformer import SentenceTransformer


def pipeline(task, model, **options):
    """A pipeline with the inputs and results of those of Hugging Face; see bertcl.pipelines."""
    from . import pipelines  # needs tokenizers, which a Session does not

    return pipelines.pipeline(task, model, **options)


# These need tokenizers, which a Session does not.
_LAZY = {"CrossEncoder": "cross_encoder", "SentenceTransformer": "sentence_transformer"}


def __getattr__(name):
    if name in _LAZY:
        return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module 'bertcl' has no attribute '{name}'")


def __dir__():
    return sorted(__all__)


__all__ = ["CrossEncoder", "Error", "ModelInfo", "NodeArg", "SentenceTransformer", "Session", "__version__", "evaluate",
           "pipeline", "quantize"]
