# SPDX-License-Identifier: Apache-2.0
"""Random token ids for a model, full rows: no engine gains from padding.

    inputs.py MODEL.onnx BATCH SEQ INPUTS.npz
"""
import sys

import numpy as np
import onnx


def main():
    model, batch, seq, path = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    random = np.random.default_rng(batch * 1000 + seq)
    arrays = {}
    for value in onnx.load(model, load_external_data=False).graph.input:
        name = value.name
        dtype = {6: np.int32, 7: np.int64}[value.type.tensor_type.elem_type]
        if "mask" in name:
            array = np.ones((batch, seq))
        elif "type" in name or "segment" in name:
            array = np.zeros((batch, seq))
        else:
            array = random.integers(1000, 20000, (batch, seq))
        arrays[name] = array.astype(dtype)
    np.savez(path, **arrays)


if __name__ == "__main__":
    main()
