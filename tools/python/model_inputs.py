# SPDX-License-Identifier: Apache-2.0
"""Which input and output of a BERT graph is which."""
import torch
from onnx_operators import DTYPES


class ModelInputs:
    """Called with ids, mask and types [batch, seq], gives the inputs that the graph names."""

    ROLES = (("mask", "mask"), ("position", "positions"), ("type", "types"), ("segment", "types"),
             ("ids", "ids"))

    def __init__(self, module, path):
        self._roles = {}
        for name, element_type in module.inputs.items():
            role = next((role for part, role in self.ROLES if part in name.lower()), None)
            if role is None or role in [r for r, _ in self._roles.values()]:
                raise ValueError(f"{path}: unknown or duplicate role of input {name} (names must "
                                 "contain ids, mask, type, segment or position)")
            self._roles[name] = role, DTYPES[element_type]
        if "ids" not in [role for role, _ in self._roles.values()]:
            raise ValueError(f"{path}: no input for the token ids among {', '.join(module.inputs)}")

    @property
    def takes_mask(self):
        return "mask" in [role for role, _ in self._roles.values()]

    def __call__(self, ids, mask, types):
        tensors = dict(ids=ids, mask=mask, types=types)
        tensors["positions"] = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        return {name: tensors[role].to(dtype) for name, (role, dtype) in self._roles.items()}


def logits_of(outputs):
    """The tensors of `outputs` (name -> tensor); start logits come before end logits, as their names say."""
    starts, ends = ([name for name in outputs if part in name] for part in ("start", "end"))
    if len(outputs) == 2 and len(starts) == len(ends) == 1:
        return [outputs[starts[0]], outputs[ends[0]]]
    # "unstack:0" and "unstack:1" in any order; names that tell nothing in the order of the file.
    in_order = sorted(outputs) if len({name[:-1] for name in outputs}) == 1 else outputs
    return [outputs[name] for name in in_order]
