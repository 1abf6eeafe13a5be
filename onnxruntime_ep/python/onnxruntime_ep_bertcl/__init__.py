# SPDX-License-Identifier: Apache-2.0
"""bertcl as an execution provider of ONNX Runtime 1.23 and later.

    onnxruntime.register_execution_provider_library("bertcl", onnxruntime_ep_bertcl.get_library_path())
"""
import pathlib

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


def get_library_path() -> str:
    """The plug-in, for onnxruntime.register_execution_provider_library()."""
    return str(pathlib.Path(__file__).with_name("libonnxruntime_ep_bertcl.so"))


def get_ep_name() -> str:
    """The provider's name, that of OrtEpDevice.ep_name."""
    return "BertclExecutionProvider"


def get_ep_names() -> list[str]:
    """All providers of the plug-in."""
    return [get_ep_name()]
