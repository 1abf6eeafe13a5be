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
import functools
import math
import pathlib
import random
import sys
import time

import torch

import class_labels
import onnx_module
import output_files
import task_data
import training
from model_inputs import ModelInputs, logits_of


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--model", required=True, help="float ONNX model, the teacher")
    parser.add_argument("--quantized", required=True, help="its quantized model, written by bertcl quantize")
    parser.add_argument("-o", "--output", required=True, help="Q/DQ model to write")
    task_data.add_options(parser, several=True)
    parser.add_argument("--labels", type=float, default=0.0,
                        help="weight of the loss against the labels of the data (0 to 1); the rest is distillation")
    parser.add_argument("--temperature", type=float, default=2.0, help="distillation temperature")
    parser.add_argument("--scale-rate", type=float, default=5e-3,
                        help="learning rate of the logarithms of scales, a tenth of it where there is one for "
                        "each channel; 0: scales stay as calibrated")
    parser.add_argument("--held-out", type=int, default=128, help="windows held out for validation; 0: none")
    training.add_options(parser, steps=500, learning_rate=3e-5, tokens=1024)
    options = parser.parse_args(arguments)
    finite = 0 < options.temperature < math.inf and 0 <= options.scale_rate < math.inf
    if not 0 <= options.labels <= 1 or not finite or options.held_out < 0:
        parser.error("--labels must be 0 to 1, --temperature above 0, --scale-rate and --held-out 0 or more, all of them "
                     "finite")
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
    for module in teacher, student:
        module.check_types()
    found, weights = student.start_from(teacher)
    print(f"{len(student.quantizers)} quantizers; {found} of {weights} quantized weights start from "
          "the float model" + ("" if found == weights else ", the others from their integers"))
    return teacher, student


class Distillation:
    """The student learns the teacher's outputs; examples that are held out measure how near they are."""

    def __init__(self, options, device):
        self._options = options
        self.collated = functools.partial(training.collate, device=device,
                                          padding=task_data.padding_of(pathlib.Path(options.model).parent))
        self._teacher, self.student = load(options, device)
        self._teacher_inputs = ModelInputs(self._teacher, options.model)
        self._student_inputs = ModelInputs(self.student, options.quantized)
        self.padded = self._teacher_inputs.takes_mask and self._student_inputs.takes_mask
        self._held_out = []
        short, longer = (self.wanted(*self.collated([task_data.Example([1] * tokens, [0] * tokens, ())]))
                         for tokens in (3, 5))
        self._over_tokens = {name for name, x in short.items() if x.dim() == 2 and x.shape != longer[name].shape}
        kinds = {name: training.kind_of(name, x.shape[-1], name in self._over_tokens) for name, x in short.items()}
        self._classes = [x.shape[-1] for name, x in short.items() if x.dim() == 2 and kinds[name] == "classes"]
        self.outputs = [f"{name} ({f'{short[name].shape[-1]} ' if kind == 'classes' else ''}{kind})"
                        for name, kind in kinds.items()]

    @torch.no_grad()
    def wanted(self, ids, mask, types):
        return self._teacher(self._teacher_inputs(ids, mask, types))

    def check_labels(self, examples):
        """Raises where labels of the data are not what the model answers."""
        if not examples[0].labels:
            raise ValueError("--labels: the texts have none")
        of_tokens = len(examples[0].labels) == 2
        if of_tokens and len(self._over_tokens) == 2:
            return
        classes = 0 if of_tokens else 1 + max(example.labels[0] for example in examples)
        if of_tokens or len(self.outputs) != 1 or not self._classes or self._classes[0] < classes:
            expected = "start and end logits" if of_tokens else f"one output of {classes} classes or more"
            raise ValueError(f"--labels: the data need {expected}; {self._options.model} has {', '.join(self.outputs)}")

    def hold_out(self, examples):
        self._held_out = [(batch, self.wanted(*self.collated(batch)))
                          for batch in training.batches_of(examples, self._options.tokens, self.padded)]

    def _loss(self, batch, encoded, wanted, temperature):
        found, share = self.student(self._student_inputs(*encoded)), self._options.labels
        loss = training.distillation_loss(found, wanted, encoded[1], self._over_tokens, temperature)
        if share > 0:
            loss = (1 - share) * loss + share * training.label_loss(logits_of(found), encoded[1], batch)
        return loss

    def loss(self, batch):
        encoded = self.collated(batch)
        return self._loss(batch, encoded, self.wanted(*encoded), self._options.temperature)

    @torch.no_grad()
    def held_out_loss(self):
        """Mean over the examples that are held out, at temperature 1."""
        total = sum(self._loss(batch, self.collated(batch), wanted, 1.0).item() * len(batch)
                    for batch, wanted in self._held_out)
        return total / sum(len(batch) for batch, _ in self._held_out)


def parameter_groups(student, options):
    """Weights, scales of tensors and scales of channels, each with its learning rate."""
    groups = [dict(params=[student.weight(name) for name in student.weights],
                   lr=options.learning_rate, weight_decay=0.0)]
    for of_channels, rate in ((False, options.scale_rate), (True, options.scale_rate / 10)):
        scales = [q.log_ratio for q in student.quantizers.values()
                  if q.log_ratio.requires_grad and (q.log_ratio.dim() > 0) == of_channels]
        for scale in scales:
            scale.requires_grad = rate > 0
        if rate > 0 and scales:
            groups.append(dict(params=scales, lr=rate, weight_decay=0.0))
    return groups


def names_for(options):
    """Of the model's classes, for --labels. Without names, numbers count them, and there may be a negative and a
    positive one."""
    if options.labels == 0 or task_data.suffix_of(options.data[0]) in (".json", ".txt"):
        return None
    names = class_labels.names_of(options.model)
    if names:
        return names
    labels = {label for path in options.data for label in task_data.load_texts(path, options.limit)[1]}
    if class_labels.are_polar(labels) and not all(label.isdecimal() for label in labels):
        return ["negative", "positive"]
    if not all(label.isdecimal() for label in labels):
        raise ValueError(f"--labels: the classes of {options.model} have no names; put its config.json with id2label "
                         "beside it")
    if (largest := max(map(int, labels))) > 65535:
        raise ValueError(f"--labels: label {largest}, read as a class index, exceeds the limit of 65535")
    return [str(i) for i in range(largest + 1)]


def print_measures(measures, steps, options):
    if not measures:
        return
    best = min(measures, key=lambda m: m[1])
    what = "loss" if options.labels else "divergence from the float model"
    print(f"{what} on held-out data: {measures[0][1]:.3g} before, {best[1]:.3g} at step {best[0]}, whose weights are "
          "written")
    if best[0] == 0 and steps == options.steps > 0:
        print("qat: training gave no improvement; try a smaller --learning-rate", file=sys.stderr)


def run(options):
    device = training.prepare(options)
    folder = pathlib.Path(options.model).parent
    models = onnx_module.files_of(options.model) + onnx_module.files_of(options.quantized)
    output_files.check(options.output, "--output", options.force,
                       [*models, *options.data, *task_data.files_of(options, folder)])
    distillation = Distillation(options, device)
    student = distillation.student
    examples = task_data.load(options, folder, names_for(options))
    training.check_runs(distillation.wanted, examples, task_data.tokenizer_of(options, folder), distillation.collated,
                        options.model, options.data)
    if options.labels > 0:
        distillation.check_labels(examples)
    print(f"outputs: {', '.join(distillation.outputs)}")
    generator = random.Random(options.seed)
    generator.shuffle(examples)
    held_out = examples[:min(options.held_out, len(examples) // 5)]
    print(f"{len(examples):,} windows of {', '.join(options.data)}, {len(held_out)} of them held out")
    distillation.hold_out(held_out)
    batches = training.endless_batches(examples[len(held_out):], options.tokens, generator, distillation.padded)
    begin = time.monotonic()
    measures, steps = training.train(student, parameter_groups(student, options), batches, distillation.loss, options,
                                     distillation.held_out_loss if held_out else None)
    seconds = time.monotonic() - begin
    recorded = ("seed", "learning_rate", "scale_rate", "tokens", "labels", "temperature")
    onnx_module.save(student.updated_model(), options.output,
                     {"bertcl.qat.steps": steps, **{f"bertcl.qat.{name}": getattr(options, name) for name in recorded}})
    print(f"{steps} steps in {seconds:.0f} s")
    print_measures(measures, steps, options)
    print(options.output)


def main(arguments):
    return training.main("qat", run, parse(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
