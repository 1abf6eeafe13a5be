#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""EM and F1 of an ONNX model by torch: float, or quantized with fake quantizers as qat.py trains it.

    tools/python/evaluate.py qat.onnx --data dev-v1.1.json [--limit 2000]

Compared with `bertcl eval` of the same file: two implementations of one model, from the tokenizer to the score.
"""
import argparse
import functools
import json
import pathlib
import sys

import torch
from tqdm import tqdm

import onnx_module
import output_files
import squad_data
import task_data
import training
from model_inputs import ModelInputs, logits_of


@torch.no_grad()
def window_logits(run, windows, tokens, collated, padded):
    """Start and end logits of each window, as numpy. `run(ids, mask, types)` gives both."""
    logits = {}
    bar = tqdm(total=len(windows), unit="window", disable=None, leave=False)
    for batch in training.batches_of(windows, tokens, padded):
        start, end = run(*collated(batch))
        for window, s, e in zip(batch, start.float().cpu().numpy(), end.float().cpu().numpy()):
            logits[id(window)] = s[:len(window.ids)], e[:len(window.ids)]
        bar.update(len(batch))
    bar.close()
    return [logits[id(window)] for window in windows]


def evaluate(module, path, options, device):
    """{"exact_match", "f1", "total"} of the questions of options.data, and the answers by id."""
    inputs_of = ModelInputs(module, path)
    if len(module.outputs) != 2:
        raise ValueError(f"{path}: outputs {', '.join(module.outputs)}; expected start and end logits")
    questions = squad_data.load_questions(options.data, options.limit)
    tokenizer = task_data.tokenizer_of(options, pathlib.Path(path).parent)
    windows = squad_data.make_windows(questions, tokenizer, options.max_length, options.stride)
    collated = functools.partial(training.collate, device=device,
                                 padding=task_data.padding_of(pathlib.Path(path).parent))

    def run_batch(ids, mask, types):
        start, end = logits_of(module(inputs_of(ids, mask, types)))
        if not start.shape == end.shape == ids.shape:
            raise ValueError(f"{path}: the outputs of tokens {list(ids.shape)} are {list(start.shape)} and "
                             f"{list(end.shape)}; expected start and end logits [batch, seq]")
        return start, end

    logits = window_logits(run_batch, windows, options.tokens, collated, inputs_of.takes_mask)
    return squad_data.evaluate(questions, windows, logits)


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("model", help="ONNX model with start and end logits")
    task_data.add_options(parser)
    parser.add_argument("--tokens", type=task_data.positive, default=2048, help="tokens of a batch")
    parser.add_argument("--device", default="cpu", help="torch device")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: torch's default")
    parser.add_argument("--predictions", help="file for the answers, id -> text")
    parser.add_argument("--force", action="store_true", help="overwrite the file of --predictions")
    return training.main("evaluate", run, parser.parse_args(arguments))


def run(options):
    device = training.device_of(options)
    if options.predictions and not output_files.is_special(options.predictions):
        output_files.check(options.predictions, "--predictions", options.force, [
            *onnx_module.files_of(options.model), options.data,
            *task_data.files_of(options, pathlib.Path(options.model).parent)])
    module = onnx_module.OnnxModule(options.model, device)
    result, answers = evaluate(module, options.model, options, device)
    print(json.dumps(result))
    if options.predictions:
        output_files.write_text(options.predictions, json.dumps(answers, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
