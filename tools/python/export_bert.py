#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Exports Hugging Face's BertForQuestionAnswering, small and with random weights, by every way that
torch offers: the classic exporter at several opsets and the dynamo exporter, eager and sdpa attention.

    tools/python/export_bert.py build/exports [--only dynamo]

Needs torch, transformers, onnx and onnxscript (requirements-torch.txt); downloads nothing.
Prints a line for each file; a combination that this torch cannot export is named with its reason.
"""
import argparse
import logging
import pathlib
import sys
import warnings

import torch
import transformers

CONFIGURATION = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
                     intermediate_size=128, vocab_size=600, max_position_embeddings=512)
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
OUTPUTS = ("start_logits", "end_logits")


class LogitsOnly(torch.nn.Module):
    """The model with a plain tuple of logits as its result."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, input_ids, attention_mask, token_type_ids):
        out = self.model(input_ids=input_ids, attention_mask=attention_mask,
                         token_type_ids=token_type_ids)
        return out.start_logits, out.end_logits


@torch.no_grad()
def spread_parameters(model, factor):
    """So that biases, LayerNorm and logits are not all alike: matrices but the embeddings times `factor`."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            parameter += 0.1 * torch.randn_like(parameter)
        elif "embeddings" not in name:
            parameter *= factor


def make_model(attention, activation="gelu"):
    torch.manual_seed(0)
    config = transformers.BertConfig(**CONFIGURATION, hidden_act=activation)
    config._attn_implementation = attention
    model = transformers.BertForQuestionAnswering(config).eval()
    spread_parameters(model, 3.5)
    return LogitsOnly(model).eval()


def example():
    ids = torch.randint(0, CONFIGURATION["vocab_size"], (2, 12))
    mask = torch.ones_like(ids)
    mask[1, 8:] = 0
    return ids, mask, torch.zeros_like(ids)


def export_classic(model, path, opset):
    axes = {name: {0: "batch", 1: "sequence"} for name in INPUTS + OUTPUTS}
    torch.onnx.export(model, example(), path, dynamo=False, opset_version=opset, dynamic_axes=axes,
                      input_names=list(INPUTS), output_names=list(OUTPUTS))


def export_dynamo(model, path, opset):
    batch, sequence = torch.export.Dim("batch"), torch.export.Dim("sequence", max=512)
    shapes = {name: {0: batch, 1: sequence} for name in INPUTS}
    torch.onnx.export(model, example(), path, dynamo=True, opset_version=opset, verbose=False,
                      dynamic_shapes=shapes, input_names=list(INPUTS), output_names=list(OUTPUTS),
                      external_data=False)


def variants():
    """Name, exporter, attention, opset, activation."""
    for attention in ("eager", "sdpa"):
        for opset in (11, 13, 14, 17, 20):
            if attention == "sdpa" and opset < 14:
                continue  # torch: scaled_dot_product_attention needs 14
            yield f"classic-{attention}-{opset}", export_classic, attention, opset, "gelu"
        for opset in (18, 20, 23):
            yield f"dynamo-{attention}-{opset}", export_dynamo, attention, opset, "gelu"
    for activation in ("gelu_new", "gelu_pytorch_tanh", "gelu_python"):
        yield f"classic-{activation}-17", export_classic, "eager", 17, activation
        yield f"dynamo-{activation}-20", export_dynamo, "eager", 20, activation


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=pathlib.Path, help="where the models go")
    parser.add_argument("--only", default="", metavar="TEXT", help="export only models whose name contains TEXT")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    made = 0
    for name, export, attention, opset, activation in variants():
        if options.only not in name:
            continue
        path = options.folder / f"{name}.onnx"
        try:
            export(make_model(attention, activation), str(path), opset)
        except Exception as error:  # exporters raise many types; the others should still be made
            print(f"{name}: not exported: {type(error).__name__}: {str(error).splitlines()[0][:160]}")
            path.unlink(missing_ok=True)
            continue
        print(path, flush=True)
        made += 1
    return 0 if made else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
