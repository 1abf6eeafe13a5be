#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""EM and F1 of an ONNX model by ONNX Runtime, compared with those of `bertcl eval` on the same file.

    bench/peers/squad.py int8.onnx --data dev-v1.1.json --vocab models/minilm-l6-squad/vocab.txt --limit 500

Needs the packages of tools/python/requirements-torch.txt. Under `qemu-x86_64 -cpu Haswell` it shows what a CPU
with AVX2 alone would answer.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import onnxruntime

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "tools/python"))
import squad_data  # noqa: E402


def session_of(path, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def logits_of(session, windows):
    """Start and end logits of each window, run alone so that nothing is padded."""
    outputs = [o.name for o in session.get_outputs()]
    if len(outputs) != 2:
        raise ValueError(f"outputs {', '.join(outputs)}; expected start and end logits")
    for done, window in enumerate(windows):
        known = {"input_ids": window.ids, "attention_mask": [1] * len(window.ids),
                 "token_type_ids": window.types}
        inputs = {i.name: np.array([known[i.name]], np.int64) for i in session.get_inputs()}
        yield [x[0] for x in session.run(outputs, inputs)]
        if sys.stderr.isatty():
            print(f"\r{done + 1} of {len(windows)} windows", end="", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("model")
    parser.add_argument("--data", required=True, help="SQuAD file")
    parser.add_argument("--vocab", required=True, help="WordPiece vocabulary")
    parser.add_argument("--limit", type=int, help="only the first questions")
    parser.add_argument("--threads", type=int, default=0, help="0: as ONNX Runtime chooses")
    options = parser.parse_args()
    questions = squad_data.load_questions(options.data, options.limit)
    windows = squad_data.make_windows(questions, squad_data.load_tokenizer(options.vocab))
    logits = list(logits_of(session_of(options.model, options.threads), windows))
    result, _ = squad_data.evaluate(questions, windows, logits)
    print(json.dumps({"onnxruntime": onnxruntime.__version__, **result}))


if __name__ == "__main__":
    main()
