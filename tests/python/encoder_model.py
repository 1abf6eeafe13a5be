# SPDX-License-Identifier: Apache-2.0
"""A small BERT with random weights whose one output is hidden states, with a vocabulary beside it."""
import shutil

import onnx
from support import ROOT

import make_bert


def write_encoder(folder):
    """Writes model.onnx and vocab.txt into `folder`, which is made."""
    model = make_bert.build(make_bert.Spec(vocabulary=30522))
    graph = model.graph
    head = next(node for node in graph.node if any("qa_outputs" in name for name in (*node.input, node.name)))
    hidden = next(name for name in head.input if "qa_outputs" not in name)
    del graph.output[:]
    graph.node.append(onnx.helper.make_node("Identity", [hidden], ["last_hidden_state"]))
    graph.output.append(onnx.helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT,
                                                           ["batch", "seq", 64]))
    folder.mkdir(parents=True)
    onnx.save(model, folder / "model.onnx")
    shutil.copy(ROOT / "models" / "minilm-l6-squad" / "vocab.txt", folder)
