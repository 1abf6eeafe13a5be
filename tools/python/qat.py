#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantization-aware training: trains a quantized model to answer as the float model does.

    build/bertcl quantize model.onnx -o q.onnx --data train-v1.1.json
    tools/python/qat.py --model model.onnx --quantized q.onnx --data train-v1.1.json -o qat.onnx

The file of `bertcl quantize` says where quantizers stand and with which scales and zero points they
start; the file written has the same form with other numbers. The float model is the teacher: its
logits are what the quantized one learns (`--labels` mixes in the answers of the data). Part of the
data is held out; the weights that come closest to the teacher there are the ones written.
Needs the packages of requirements-torch.txt. docs/qat.md tells more.
"""
import argparse
import pathlib
import random
import sys
import time

import onnx
import torch

import onnx_module
import task_data
import training
from model_inputs import ModelInputs


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", required=True, help="float ONNX model, the teacher")
    parser.add_argument("--quantized", required=True, help="what bertcl quantize made of it")
    parser.add_argument("-o", "--output", required=True, help="Q/DQ model to write")
    task_data.add_options(parser)
    parser.add_argument("--labels", type=float, default=0.0,
                        help="share of the loss that comes from the answers of the data (0 to 1)")
    parser.add_argument("--temperature", type=float, default=2.0, help="of the distillation")
    parser.add_argument("--scale-rate", type=float, default=5e-3,
                        help="learning rate of the logarithms of scales, a tenth of it where there is one for "
                        "each channel; 0: scales stay as calibrated")
    parser.add_argument("--held-out", type=int, default=128, help="windows that measure the progress")
    training.add_options(parser, steps=500, learning_rate=3e-5, tokens=1024)
    options = parser.parse_args(arguments)
    if not 0 <= options.labels <= 1 or options.temperature <= 0 or options.scale_rate < 0:
        parser.error("--labels has to be 0 to 1, --temperature above 0, --scale-rate 0 or more")
    return options


def load(options, device):
    """Teacher and student; the student starts from the teacher's float weights."""
    teacher = onnx_module.OnnxModule(options.model, device).requires_grad_(False)
    if teacher.quantizers:
        raise ValueError(f"{options.model} is quantized; --model takes the float model")
    student = onnx_module.OnnxModule(options.quantized, device)
    if not student.quantizers:
        raise ValueError(f"{options.quantized} has no QuantizeLinear/DequantizeLinear pairs")
    if set(student.outputs) != set(teacher.outputs):
        raise ValueError(f"{options.quantized} has the outputs {', '.join(student.outputs)}, "
                         f"{options.model} {', '.join(teacher.outputs)}")
    found, weights = student.start_from(teacher)
    print(f"{len(student.quantizers)} quantizers; {found} of {weights} quantized weights start from "
          "the float model" + ("" if found == weights else ", the others from their integers"))
    return teacher, student


def main(arguments):
    options = parse(arguments)
    try:
        run(options)
    except (ValueError, OSError, onnx.checker.ValidationError) as error:
        print(f"qat: {error}", file=sys.stderr)
        return 2
    return 0


def run(options):
    device = training.prepare(options)
    training.check_output(options.output)
    teacher, student = load(options, device)
    inputs_of = ModelInputs(teacher, options.model), ModelInputs(student, options.quantized)
    examples = task_data.load(options, pathlib.Path(options.model).parent)
    generator = random.Random(options.seed)
    generator.shuffle(examples)
    held_out = examples[:min(options.held_out, len(examples) // 5)]
    print(f"{len(examples):,} windows of {options.data}, {len(held_out)} of them held out")
    batches = training.endless_batches(examples[len(held_out):], options.tokens, generator)

    def outputs(batch):
        encoded = training.collate(batch, device)
        with torch.no_grad():
            wanted = teacher(inputs_of[0](*encoded))
        return wanted, student(inputs_of[1](*encoded)), encoded[1]

    def loss_of(batch):
        wanted, found, mask = outputs(batch)
        loss = training.distillation_loss(found, wanted, mask, options.temperature)
        if options.labels > 0:
            by_labels = training.label_loss(list(found.values()), mask, batch)
            loss = (1 - options.labels) * loss + options.labels * by_labels
        return loss

    @torch.no_grad()
    def measure():
        total = 0.0
        for batch, wanted in held_out_batches:
            encoded = training.collate(batch, device)
            found = student(inputs_of[1](*encoded))
            total += training.distillation_loss(found, wanted, encoded[1]).item() * len(batch)
        return total / len(held_out)

    with torch.no_grad():
        held_out_batches = [(batch, teacher(inputs_of[0](*training.collate(batch, device))))
                            for batch in training.batches_of(held_out, options.tokens)]

    groups = [dict(params=[student.weight(name) for name in student.weights],
                   lr=options.learning_rate, weight_decay=0.0)]
    for of_channels, rate in ((False, options.scale_rate), (True, options.scale_rate / 10)):
        scales = [q.log_ratio for q in student.quantizers.values()
                  if q.log_ratio.requires_grad and (q.log_ratio.dim() > 0) == of_channels]
        for scale in scales:
            scale.requires_grad = rate > 0
        if rate > 0 and scales:
            groups.append(dict(params=scales, lr=rate, weight_decay=0.0))
    begin = time.monotonic()
    measures = training.train(student, groups, batches, loss_of, options,
                              measure if held_out else None)
    seconds = time.monotonic() - begin
    onnx_module.save(student.updated_model(), options.output, {
        "bertcl.qat.steps": options.steps, "bertcl.qat.seed": options.seed,
        "bertcl.qat.learning_rate": options.learning_rate, "bertcl.qat.scale_rate": options.scale_rate,
        "bertcl.qat.tokens": options.tokens, "bertcl.qat.labels": options.labels,
        "bertcl.qat.temperature": options.temperature})
    print(f"{options.steps} steps in {seconds:.0f} s")
    if measures:
        best = min(measures, key=lambda m: m[1])
        print(f"divergence from the float model on what was held out: {measures[0][1]:.4f} before, "
              f"{best[1]:.4f} at step {best[0]}, whose weights are written")
        if best[0] == 0 and options.steps:
            print("qat: training made it no better; try a smaller --learning-rate", file=sys.stderr)
    print(options.output)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
