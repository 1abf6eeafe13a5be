# SPDX-License-Identifier: Apache-2.0
"""bertcl together with packages that bring a protobuf and classes of ONNX of their own, loaded before or after it."""
import itertools
import subprocess
import sys
import unittest

import numpy as np  # noqa: F401 (of the processes below)
import onnx  # noqa: F401
import onnxruntime  # noqa: F401
from package import DEFAULT_MODEL, PACKAGE

IMPORTS = {"bertcl": "import bertcl", "onnxruntime": "import onnxruntime",
           "onnx": "import onnx; onnx.load(MODEL, load_external_data=False)"}
RUN = """
import numpy as np
ids = np.array([[101, 2040, 2081, 1996, 3194, 1029, 102]])
feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
ours = bertcl.Session(MODEL, device="cpu")
theirs = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
for _ in range(2):
    for a, b in zip(ours.run(None, feeds), theirs.run(None, feeds)):
        np.testing.assert_allclose(a, b, atol=2e-4)
print("agree")
"""


class TogetherTest(unittest.TestCase):
    def test_every_order_of_imports(self):
        for order in itertools.permutations(IMPORTS):
            with self.subTest(order=order):
                program = "\n".join([f"import sys; sys.path.insert(0, {str(PACKAGE)!r})",
                                     f"MODEL = {str(DEFAULT_MODEL / 'model.onnx')!r}",
                                     *(IMPORTS[name] for name in order), RUN])
                done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stdout), (0, "agree\n"), done.stderr)
