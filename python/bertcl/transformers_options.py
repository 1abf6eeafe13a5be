# SPDX-License-Identifier: Apache-2.0
"""Options of transformers and sentence-transformers that bertcl does not have: where they would change nothing,
programs that give them run as they are."""
from __future__ import annotations

import inspect
import os
import pathlib
import reprlib

from .files import model_file
from .session import Session

SESSION = [each.name for each in inspect.signature(Session.__init__).parameters.values()
           if each.kind is each.KEYWORD_ONLY]

# None of them changes results of files on this machine.
ANY_VALUE = {"cache_dir", "cache_folder", "framework", "local_files_only", "low_cpu_mem_usage", "model_card_data",
             "num_workers", "token", "use_auth_token"}
# Of these only None and the values here change nothing.
VALUES = {"attn_implementation": ("eager", "sdpa"), "backend": ("onnx", "torch"), "device_map": (),
          "dtype": ("auto", "float32"), "force_download": (False,), "revision": (), "torch_dtype": ("auto", "float32"),
          "trust_remote_code": (False,), "use_fast": (True,)}
OF_THE_FOLDER = ("config", "tokenizer")  # the folder of the model, or None
DICTIONARIES = ("automodel_args", "config_args", "config_kwargs", "model_kwargs", "processor_kwargs", "tokenizer_args",
                "tokenizer_kwargs")
REMEDIES = {
    "attn_implementation": "leave it out",
    "backend": "leave it out: the graph is always ONNX",
    "config": "leave it out: the config.json of the model's folder is read",
    "device_map": "give device",
    "dtype": "give precision='fp16' or 'bf16'",
    "file_name": "give the file as the path",
    "force_download": "leave it out: bertcl does not download",
    "grouped_entities": "give aggregation_strategy='simple'",
    "return_all_scores": "give top_k=None",
    "revision": "leave it out, and export the revision that you want",
    "subfolder": "give the folder as the path",
    "tokenizer": "leave it out: the one in the model's folder is read; write yours there with save_pretrained()",
    "topk": "give top_k",
    "torch_dtype": "give precision='fp16' or 'bf16'",
    "trust_remote_code": "leave it out: no code of a folder is run",
    "use_fast": "leave it out: tokenizers are always the fast ones",
}


def model_path(caller, path, model_name_or_path):
    """The one that is given. TypeError: none, or both."""
    if (path is None) == (model_name_or_path is None):
        raise TypeError(f"{caller} takes either path or model_name_or_path: a folder, or an .onnx file")
    return model_name_or_path if path is None else path


def own_options(caller, options, known, model=None, with_none=()):
    """Those of the options whose names are known, without None except `with_none`. TypeError: another one might change
    results; the message names the caller's function, and what to do."""
    own = {}
    for name, value in options.items():
        if name in known:
            if value is not None or name in with_none:
                own[name] = value
        elif name in DICTIONARIES and (value is None or isinstance(value, dict)):
            own_options(f"{caller}: {name}", value or {}, (), model)
        elif not _changes_nothing(name, value, model):
            raise TypeError(_refusal(caller, name, value, known))
    return own


def _changes_nothing(name, value, model):
    if name in OF_THE_FOLDER:
        return value is None or _is_folder_of(value, model)
    if name in VALUES:
        return value is None or value in VALUES[name] or str(value).removeprefix("torch.") in VALUES[name]
    return name in ANY_VALUE


def _is_folder_of(given, model):
    if model is None or not isinstance(given, (str, os.PathLike)):
        return False
    folder = model_file(model).absolute().parent
    folders = [folder, folder.parent] if folder.name == "onnx" else [folder]
    return pathlib.Path(given).is_dir() and any(each.samefile(given) for each in folders)


def _refusal(caller, name, value, known):
    if name in VALUES or name in OF_THE_FOLDER:
        return f"{caller}: {name} is {reprlib.repr(value)}, which is not supported; {REMEDIES[name]}"
    remedy = REMEDIES.get(name, f"it takes {', '.join(known)}" if known else "leave it out")
    return f"{caller} got an unexpected keyword argument '{name}'; {remedy}"
