# SPDX-License-Identifier: Apache-2.0
"""unregister.py: runs a session after its library was unregistered, and another after it was registered again; on the
way out, both outlive the registration. A program of its own: a fault here would end the tests."""
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sessions import PLUGIN, session

value = helper.make_tensor_value_info
graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "one",
                          [value("x", TensorProto.FLOAT, ["n", 4])], [value("y", TensorProto.FLOAT, ["n", 4])],
                          [numpy_helper.from_array(np.eye(4, dtype=np.float32), "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
x = np.arange(8, dtype=np.float32).reshape(2, 4)
sessions = []
for _ in range(2):
    onnxruntime.register_execution_provider_library("bertcl", str(PLUGIN))
    sessions.append(session(model))
    onnxruntime.unregister_execution_provider_library("bertcl")
    for runner in sessions:
        np.testing.assert_array_equal(runner.run(None, {"x": x})[0], x)
runner = None
sessions.clear()
print("ended")
