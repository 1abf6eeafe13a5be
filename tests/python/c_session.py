# SPDX-License-Identifier: Apache-2.0
"""bertcl in the process of a test, by its C interface: OpenCL starts once, and a model is compiled once for all its
runs."""
import ctypes
import functools
import os
import weakref

import numpy as np
from support import BERTCL

# By bertcl_type; NumPy has no bfloat16.
TYPES = [np.float32, np.float16, None, np.float64, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32,
         np.int64, np.uint64, np.bool_]


class Tensor(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("type", ctypes.c_int32),
                ("rank", ctypes.c_int32), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


@functools.cache
def library():
    loaded = ctypes.CDLL(str(BERTCL.parent / "libbertcl.so"))
    loaded.bertcl_last_error.restype = ctypes.c_char_p
    loaded.bertcl_results_count.restype = ctypes.c_size_t
    loaded.bertcl_session_free.restype = loaded.bertcl_results_free.restype = None
    return loaded


def check(status):
    if status:
        raise AssertionError(f"bertcl: status {status}: {library().bertcl_last_error().decode()}")


def tensor_of(name, array):
    """Points into `array`."""
    return Tensor(ctypes.sizeof(Tensor), name.encode(), TYPES.index(array.dtype.type), array.ndim,
                  (ctypes.c_int64 * array.ndim)(*array.shape), array.ctypes.data, array.nbytes)


def array_of(tensor):
    """A copy, which cannot be written to."""
    shape = tensor.shape[:tensor.rank]
    assert TYPES[tensor.type], "NumPy has no bfloat16"
    return np.frombuffer(ctypes.string_at(tensor.data, tensor.bytes), TYPES[tensor.type]).reshape(shape)


class Session:
    """A model, a file, with the interface of Reference; what `bertcl run` computes without options."""

    def __init__(self, model):
        handle = ctypes.c_void_p()
        check(library().bertcl_session_load(os.fsencode(model), None, ctypes.byref(handle)))
        self._handle = handle
        self._free = weakref.finalize(self, library().bertcl_session_free, handle)

    def run(self, inputs):
        """Outputs by name."""
        arrays = {name: np.asarray(array, order="C") for name, array in inputs.items()}
        tensors = (Tensor * len(arrays))(*(tensor_of(name, array) for name, array in arrays.items()))
        results = ctypes.c_void_p()
        check(library().bertcl_session_run(self._handle, tensors, ctypes.c_size_t(len(tensors)), None,
                                           ctypes.byref(results)))
        try:
            outputs = {}
            for index in range(library().bertcl_results_count(results)):
                output = Tensor(ctypes.sizeof(Tensor))
                check(library().bertcl_results_get(results, ctypes.c_size_t(index), ctypes.byref(output)))
                outputs[output.name.decode()] = array_of(output)
            return outputs
        finally:
            library().bertcl_results_free(results)
