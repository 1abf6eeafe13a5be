#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tunes an encoder for question answering or classification and writes it as float ONNX.

    tools/python/finetune.py --encoder my-encoder/ --data train-v1.1.json --eval dev-v1.1.json -o qa.onnx
    tools/python/finetune.py --encoder encoder.onnx --data train.tsv --eval dev.tsv -o classes.onnx

The encoder is a Hugging Face folder or a float ONNX file; the data say which task it is: .json in SQuAD
format, or .tsv or .jsonl with texts and labels. The vocabulary is copied beside the result, where bertcl
looks for it, and what its tokenizer does with case, accents and ideographs into a tokenizer_config.json. The
names of the classes go into the file itself: `bertcl eval --task` reads them. Needs the packages of
requirements-torch.txt; downloads nothing.
"""
import argparse
import collections
import functools
import json
import pathlib
import random
import shutil
import sys
import time

import torch

import class_labels
import evaluate
import heads
import onnx_module
import output_files
import squad_data
import task_data
import training


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0],
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--encoder", required=True, help="Hugging Face folder or float .onnx")
    parser.add_argument("-o", "--output", required=True, help="ONNX model to write")
    parser.add_argument("--eval", help="data of the same kind, to measure the result")
    parser.add_argument("--eval-limit", type=task_data.positive, help="only the first questions or texts of it")
    task_data.add_options(parser)
    training.add_options(parser, steps=1000, learning_rate=5e-5, tokens=2048)
    return parser.parse_args(arguments)


class QuestionAnswering:
    name, classes, names = "qa", 2, None

    def __init__(self, options, tokenizer):
        self._options, self._tokenizer = options, tokenizer

    def read(self, path, limit):
        questions = squad_data.load_questions(path, limit)
        return questions, squad_data.make_windows(questions, self._tokenizer, self._options.max_length,
                                                  self._options.stride)

    def measure(self, model, collated):
        questions, windows = self.read(self._options.eval, self._options.eval_limit)
        logits = evaluate.window_logits(model.logits, windows, self._options.tokens, collated, model.padded)
        return squad_data.evaluate(questions, windows, logits)[0]


class Classification:
    name = "classification"

    def __init__(self, options, tokenizer):
        self._options, self._tokenizer = options, tokenizer
        rows, labels = task_data.load_texts(options.data)
        if len(labels) < 2:
            raise ValueError(f"{options.data}: all texts have the label {labels[0]!r}")
        counts = collections.Counter(label for _, label in rows)
        if [label for label, count in counts.items() if count == 1] == [rows[0][1]]:
            print(f"finetune: {options.data}: only the first text has the label {labels[rows[0][1]]!r}; if that is a "
                  'header, name its columns "text" and "label"', file=sys.stderr)
        self.names = self._known(options, labels) or labels
        self.classes = len(self.names)

    @staticmethod
    def _known(options, labels):
        """The classes of the encoder, if the data name no others: it keeps its head then, and their order."""
        names = class_labels.names_of(options.encoder)
        try:
            return names if names and class_labels.match(labels, names, by_number=False) else None
        except ValueError:
            return None

    def read(self, path, limit):
        rows, _ = task_data.load_texts(path, limit, self.names)
        return rows, task_data.encode_texts(rows, self._tokenizer, self._options.max_length)

    def measure(self, model, collated):
        _, examples = self.read(self._options.eval, self._options.eval_limit)
        right = 0
        for batch in training.batches_of(examples, self._options.tokens, model.padded):
            classes = model.logits(*collated(batch))[0].argmax(-1).tolist()
            right += sum(c == e.labels[0] for c, e in zip(classes, batch))
        return {"accuracy": 100 * right / len(examples), "total": len(examples)}


class Beside:
    """What bertcl reads beside the model: vocab.txt, and in tokenizer_config.json how its tokenizer treats text, or
    tokenizer.json. Files that are there stay; if they say otherwise, that is an error before the training."""

    def __init__(self, options, folder):
        self._source = task_data.vocabulary_of(options, folder)
        beside = pathlib.Path(options.output).parent
        self._vocabulary, self._settings = beside / "tokenizer.json", {}
        if self._source.suffix != ".json":
            if self._vocabulary.exists():
                raise ValueError(f"{beside} holds a tokenizer.json, which bertcl reads first; write to another folder")
            self._vocabulary, self._settings = beside / "vocab.txt", task_data.settings_of(options, folder)
        if pathlib.Path(options.output).name in (self._vocabulary.name, "tokenizer_config.json"):
            raise ValueError(f"{options.output}: bertcl reads a file of this name beside the model; choose another")
        if self._vocabulary.exists() and self._vocabulary.read_bytes() != self._source.read_bytes():
            raise ValueError(f"{self._vocabulary} differs from {self._source}, the vocabulary used for "
                             "training; write to another folder")
        if not self._vocabulary.exists() and not (beside / "tokenizer_config.json").exists():
            return
        others = task_data.settings_beside(self._vocabulary)
        for name, value in self._settings.items():
            if value != others[name]:
                raise ValueError(f"{self._vocabulary.parent} holds models with {name}={others[name]}, this one has "
                                 f"{value}; write to another folder")

    def write(self):
        if self._vocabulary.exists():
            return
        shutil.copyfile(self._source, self._vocabulary)
        config = self._vocabulary.with_name("tokenizer_config.json")
        if self._settings and task_data.settings_beside(self._vocabulary) != self._settings:
            config.write_text(json.dumps(self._settings) + "\n", encoding="utf-8")


@torch.no_grad()
def measured(task, model, collated):
    return json.dumps(task.measure(model, collated))


def run(options):
    device = training.prepare(options)
    encoder = pathlib.Path(options.encoder)
    folder = encoder if encoder.is_dir() else encoder.parent
    models = (file for file in encoder.iterdir() if file.suffix != ".onnx") if encoder.is_dir() else (
        onnx_module.files_of(encoder))
    output_files.check(options.output, "--output", options.force,
                       [*models, options.data, options.eval, *task_data.files_of(options, folder)])
    tokenizer = task_data.tokenizer_of(options, folder)
    beside = Beside(options, folder)
    kind = QuestionAnswering if task_data.suffix_of(options.data) == ".json" else Classification
    task = kind(options, tokenizer)
    _, examples = task.read(options.data, options.limit)
    if options.eval:
        task.read(options.eval, 1)  # what is wrong with it is known before the training
    model = heads.load(options.encoder, task.name, task.classes, device).eval()
    collated = functools.partial(training.collate, device=device, padding=task_data.padding_of(folder))
    training.check_runs(model.logits, examples, tokenizer, collated, options.encoder, [options.data])
    model.to_onnx()  # what cannot be written is known before the training
    print(f"{task.name}: {len(examples):,} examples of {options.data}"
          + (f", classes {', '.join(task.names)}" if task.names else ""))
    if options.eval:
        print(f"before: {measured(task, model, collated)}", flush=True)
    batches = training.endless_batches(examples, options.tokens, random.Random(options.seed), model.padded)

    def loss_of(batch):
        ids, mask, types = collated(batch)
        return training.label_loss(model.logits(ids, mask, types), mask, batch)

    begin = time.monotonic()
    model.train()
    _, steps = training.train(model, model.groups(options.learning_rate), batches, loss_of, options)
    print(f"{steps} steps in {time.monotonic() - begin:.0f} s")
    model.eval()
    metadata = {"bertcl.finetune.steps": steps, "bertcl.finetune.seed": options.seed,
                "bertcl.finetune.learning_rate": options.learning_rate,
                "bertcl.finetune.data": pathlib.Path(options.data).name,
                "bertcl.classes": json.dumps(task.names) if task.names else None}
    onnx_module.save(model.to_onnx(), options.output, metadata)
    beside.write()
    print(options.output)
    if options.eval:
        print(f"after: {measured(task, model, collated)}")


def main(arguments):
    return training.main("finetune", run, parse(arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
