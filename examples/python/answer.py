# SPDX-License-Identifier: Apache-2.0
"""answer.py MODEL QUESTION CONTEXT: the answer to a question about a text. MODEL is a folder with model.onnx and
vocab.txt or tokenizer.json."""
import sys

import bertcl

if len(sys.argv) != 4:
    sys.exit(__doc__)
try:
    answers = bertcl.pipeline("question-answering", model=sys.argv[1])
    print(answers(question=sys.argv[2], context=sys.argv[3])["answer"])
except (bertcl.Error, OSError, ValueError) as error:
    sys.exit(f"answer.py: {error}")
