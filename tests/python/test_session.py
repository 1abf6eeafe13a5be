# SPDX-License-Identifier: Apache-2.0
"""bertcl.Session and onnxruntime.InferenceSession, in one process."""
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

import numpy as np
import onnxruntime
from package import DEFAULT_MODEL, PACKAGE, bertcl

MODEL = DEFAULT_MODEL / "model.onnx"


# Threads that run when the interpreter ends.
ENDS_AT_ONCE = """
import sys, threading
sys.path.insert(0, sys.argv[1])
import bertcl
session = bertcl.Session(sys.argv[2], device="cpu")
running = threading.Semaphore(0)

def work():
    while True:
        session.run_sequences([[101, 2040, 102]])
        running.release()

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
for _ in range(6):
    running.acquire()
"""


def padded(sequences):
    ids = np.zeros((len(sequences), max(map(len, sequences))), np.int64)
    for row, sequence in zip(ids, sequences):
        row[:len(sequence)] = sequence
    lengths = np.array([len(sequence) for sequence in sequences])
    mask = (np.arange(ids.shape[1]) < lengths[:, None]).astype(np.int64)
    return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}


def sequences(count, seed=0):
    random = np.random.default_rng(seed)
    return [[101, *random.integers(1000, 30000, random.integers(1, 60)), 102] for _ in range(count)]


class SessionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.session = bertcl.Session(MODEL, device="cpu")
        cls.addClassCleanup(delattr, cls, "session")  # before the interpreter ends
        cls.reference = onnxruntime.InferenceSession(str(MODEL), providers=["CPUExecutionProvider"])

    def test_dir_lists_what_is_loaded_late(self):
        self.assertEqual(dir(bertcl), sorted(bertcl.__all__))
        for name in dir(bertcl):
            self.assertTrue(hasattr(bertcl, name), name)

    def test_options_of_another_type_are_named(self):
        for options, message in (({"device": 0.5}, "device is 0.5, expected a text or an index"),
                                 ({"device": True}, "device is True, expected a text or an index"),
                                 ({"precision": None}, "precision is None, expected a text"),
                                 ({"requests": "4"}, "requests is '4', expected an integer"),
                                 ({"require_int8": "no"}, "require_int8 is 'no', expected True or False"),
                                 ({"pooling": 3}, "pooling is 3, expected a text")):
            with self.assertRaisesRegex(TypeError, f"^{message}$"):
                bertcl.Session(MODEL, **options)

    def test_flags_may_be_numbers_of_numpy(self):
        bertcl.Session(MODEL, allow_nonfinite=np.bool_(True), require_int8=np.int64(0))
        with self.assertRaisesRegex(bertcl.Error, "int8"):
            bertcl.Session(MODEL, require_int8=1)

    def test_a_device_may_be_its_index(self):
        self.assertEqual(bertcl.Session(MODEL, device=-1).info.device, self.session.info.device)
        self.assertEqual(bertcl.Session(MODEL, device=np.int64(0)).info, bertcl.Session(MODEL, device="0").info)
        with self.assertRaisesRegex(bertcl.Error, "99"):
            bertcl.Session(MODEL, device=99)
        with self.assertRaisesRegex(ValueError, "device is -2, expected an index, or -1 for the CPU"):
            bertcl.Session(MODEL, device=-2)

    def test_options_that_mean_nothing_are_refused(self):
        for options, message in (({"requests": 0}, "'requests' is 0"), ({"requests": -5}, "'requests' is -5"),
                                 ({"requests": 2**31}, "'requests' is 2147483648, expected 1 to 1024$"),
                                 ({"max_memory": -1}, "'max_memory' is -1"),
                                 ({"max_memory": 2**63}, "'max_memory' is 9223372036854775808, expected 0 to ")):
            with self.assertRaisesRegex(bertcl.Error, message):
                bertcl.Session(MODEL, **options)
        for options in {"requests": True}, {"max_memory": False}:
            (name, value), = options.items()
            with self.assertRaisesRegex(TypeError, f"{name} is {value}, expected an integer"):
                bertcl.Session(MODEL, **options)
        for options in {"device": "a\0b"}, {"device": "\udc80"}, {"precision": "fp32\0"}:
            with self.assertRaisesRegex(ValueError, "has a zero byte or a lone surrogate"):
                bertcl.Session(MODEL, **options)
        for options in {"normalize": True}, {"dimensions": 8}:
            with self.assertRaisesRegex(ValueError, "need pooling"):
                bertcl.Session(MODEL, **options)

    def test_inputs_and_outputs_are_named_and_typed_as_onnxruntime_does(self):
        for ours, theirs in [(self.session.get_inputs(), self.reference.get_inputs()),
                             (self.session.get_outputs(), self.reference.get_outputs())]:
            self.assertEqual([(a.name, a.type) for a in ours], [(a.name, a.type) for a in theirs])
            for a, b in zip(ours, theirs):
                self.assertEqual(a.shape, [x if isinstance(x, int) else None for x in b.shape])

    def test_run_gives_what_onnxruntime_gives_at_real_tokens(self):
        feeds = padded(sequences(3))
        real = feeds["attention_mask"].astype(bool)
        for ours, theirs in zip(self.session.run(None, feeds), self.reference.run(None, feeds)):
            self.assertEqual((ours.dtype, ours.shape), (theirs.dtype, theirs.shape))
            np.testing.assert_allclose(ours[real], theirs[real], atol=2e-4)
            self.assertFalse(ours[~real].any())

    def test_a_model_is_given_as_bytes(self):
        feeds = padded(sequences(2))
        session = bertcl.Session(MODEL.read_bytes(), device="cpu")
        for a, b in zip(session.run(None, feeds), self.session.run(None, feeds)):
            np.testing.assert_array_equal(a, b)
        with self.assertRaisesRegex(bertcl.Error, "ONNX"):
            bertcl.Session(b"not a model")

    def test_no_names_mean_all_outputs(self):
        feeds = padded(sequences(1))
        for names in None, []:
            self.assertEqual(len(self.session.run(names, input_feed=feeds)), 2)
            self.assertEqual(len(self.reference.run(names, input_feed=feeds)), 2)
        with self.assertRaisesRegex(TypeError, r"\['end_logits'\]"):
            self.session.run("end_logits", feeds)

    def test_outputs_come_in_the_order_asked_for(self):
        feeds = padded(sequences(1))
        start, end = self.session.run(["start_logits", "end_logits"], feeds)
        swapped = self.session.run(["end_logits", "start_logits"], feeds)
        np.testing.assert_array_equal(swapped[0], end)
        np.testing.assert_array_equal(swapped[1], start)
        both = self.session.run(np.array(["end_logits", "start_logits"]), feeds)
        np.testing.assert_array_equal(both[0], end)
        only, = self.session.run((name for name in ["end_logits"]), feeds)
        np.testing.assert_array_equal(only, end)
        self.assertFalse((start == end).all())
        rows, = self.session.run_sequences([[101, 2040, 102]], output_names=["end_logits"])
        np.testing.assert_array_equal(rows, self.session.run_sequences([[101, 2040, 102]])[1])

    def test_what_is_no_sequence_is_named(self):
        with self.assertRaisesRegex(TypeError, r"ids\[0\] has shape \[2, 2\], expected a sequence of numbers"):
            self.session.run_sequences([[[101, 102], [101, 102]]])
        np.testing.assert_array_equal(self.session.run_sequences([np.array([[101, 102]])]),
                                      self.session.run_sequences([[101, 102]]))
        with self.assertRaisesRegex(TypeError, r"ids\[0\] is 101, expected a sequence of numbers; .* as \[ids\]"):
            self.session.run_sequences([101, 2040, 102])
        with self.assertRaisesRegex(TypeError, r"token_type_ids\[1\] is 0, expected"):
            self.session.run_sequences([[101], [102]], [[0], 0])

    def test_an_output_may_be_written_to(self):
        feeds = padded(sequences(1))
        output, = self.session.run(["end_logits"], feeds)
        expected = output.copy()
        output[:] = 0
        again, = self.session.run(["end_logits"], feeds)
        np.testing.assert_array_equal(again, expected)
        np.testing.assert_array_equal(output, np.zeros_like(expected))

    def test_views_and_other_integers_are_taken(self):
        feeds = padded(sequences(2))
        expected = self.session.run(None, feeds)
        strided = {name: np.repeat(array, 2, axis=1)[:, ::2] for name, array in feeds.items()}
        narrow = {name: array.astype(np.int32) for name, array in feeds.items()}
        foreign = {name: array.astype(">i8") for name, array in feeds.items()}
        for other in strided, narrow, foreign:
            for a, b in zip(expected, self.session.run(None, other)):
                np.testing.assert_array_equal(a, b)

    def test_sequences_give_the_rows_of_the_padded_batch(self):
        some = sequences(5)
        feeds = padded(some)
        real = feeds["attention_mask"].astype(bool)
        for rows, batch in zip(self.session.run_sequences(some), self.session.run(None, feeds)):
            np.testing.assert_allclose(rows, batch[real], atol=1e-5)
        with_types = self.session.run_sequences(some, [[1] * len(each) for each in some])
        self.assertGreater(np.abs(with_types[0] - self.session.run_sequences(some)[0]).max(), 1e-3)

    def test_info(self):
        self.assertEqual(self.session.info[:4], (512, 30522, 12, False))
        self.assertTrue(self.session.info.device)

    def test_bad_input_is_an_error_that_names_it(self):
        with self.assertRaisesRegex(bertcl.Error, "/nowhere/model.onnx"):
            bertcl.Session("/nowhere/model.onnx")
        with self.assertRaisesRegex(bertcl.Error, "fp8.*choose from fp32"):
            bertcl.Session(MODEL, precision="fp8")
        with self.assertRaisesRegex(bertcl.Error, "input_ids"):
            self.session.run(None, {"attention_mask": np.ones((1, 3), np.int64)})
        with self.assertRaisesRegex(ValueError, "scores.*start_logits"):
            self.session.run(["scores"], padded(sequences(1)))
        with self.assertRaisesRegex(bertcl.Error, "'input_ids' has dtype complex64, expected real numbers"):
            self.session.run(None, {"input_ids": np.ones((1, 3), np.complex64)})
        for name in 1, b"input_ids", None:
            with self.assertRaisesRegex(TypeError, "a name of input_feed is .*, expected a text"):
                self.session.run(None, {name: np.ones((1, 3), np.int64)})
        with self.assertRaisesRegex(ValueError, "lone surrogate"):
            self.session.run(None, {"\udc80": np.ones((1, 3), np.int64)})
        for feeds in None, [np.ones((1, 3), np.int64)]:
            with self.assertRaisesRegex(TypeError, "input_feed is of type .*, expected arrays by the names of inputs"):
                self.session.run(None, feeds)
        for ids in {"a": 1}, "ids":
            with self.assertRaisesRegex(TypeError, "ids is of type .*, expected sequences of numbers"):
                self.session.run_sequences(ids)
        for values in np.array([["a"]]), None:
            with self.assertRaisesRegex(bertcl.Error, "'input_ids' has dtype .*, expected numbers"):
                self.session.run(None, {"input_ids": values})
        with self.assertRaisesRegex(bertcl.Error, "token id beyond the vocabulary"):
            self.session.run_sequences([[101, 40000, 102]])
        with self.assertRaisesRegex(ValueError, r"token_type_ids\[1\] and ids\[1\] have different lengths, 1 and 2$"):
            self.session.run_sequences([[101], [101, 102], [102]], [[0], [0], [0, 0]])
        with self.assertRaisesRegex(ValueError, "token_type_ids and ids have different lengths, 1 and 2$"):
            self.session.run_sequences([[101, 102], [102]], [[0, 0]])
        for values, found in ([101.0, 102.7], "float64"), (["a"], "<U1"), ([2**64], "object"):
            with self.assertRaisesRegex(bertcl.Error, rf"^ids\[1\] has dtype {found}, expected integers"):
                self.session.run_sequences([[101, 102], values])
        with self.assertRaisesRegex(bertcl.Error, r"token_type_ids\[0\] has dtype float64"):
            self.session.run_sequences([[101, 102]], [[0, 0.5]])
        with self.assertRaisesRegex(bertcl.Error, "input_ids.*expected numbers of at most 64 bits"):
            self.session.run(None, {"input_ids": np.ones((1, 3), np.longdouble)})
        with self.assertRaisesRegex(ValueError, "the path contains a zero byte"):
            bertcl.Session(f"{MODEL}\0x")

    def test_a_path_may_be_any_bytes(self):
        """Names of files on Linux need not be valid Unicode; Python has their bytes as surrogates."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / os.fsdecode(b"mod\xe8le")
            path.mkdir()
            for name in "model.onnx", "vocab.txt":
                (path / name).symlink_to(DEFAULT_MODEL / name)
            self.assertEqual(bertcl.Session(path).info, self.session.info)
            with self.assertRaisesRegex(bertcl.Error, "mod\udce8le/other.onnx: no such file"):
                bertcl.Session(path / "other.onnx")
            for name, options in ("int8", {}), (os.fsdecode(b"q\xff"), {"vocab": path / "vocab.txt"}):
                report = bertcl.quantize(path, path / name, dynamic=True, progress=False, **options)
                self.assertTrue(report["quantized_nodes"])
                bertcl.Session(path / name, require_int8=True)
            answer = bertcl.pipeline("question-answering", path)(question="Who came?", context="Ada came.")
            self.assertEqual(answer["answer"], "Ada")

    def test_the_arguments_of_onnxruntime(self):
        feeds = padded(sequences(1))
        for found, expected in zip(self.session.run(None, feeds, None), self.session.run(None, feeds)):
            np.testing.assert_array_equal(found, expected)
        with self.assertRaisesRegex(TypeError, "run_options is 5, expected None"):
            self.session.run(None, feeds, 5)

    def test_threads_get_the_bits_of_one_thread(self):
        work = [sequences(1 + seed % 3, seed) for seed in range(24)]
        expected = [self.session.run_sequences(each) for each in work]
        made = [None] * len(work)

        def take(first):
            for i in range(first, len(work), 4):
                made[i] = self.session.run_sequences(work[i])

        threads = [threading.Thread(target=take, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for ours, alone in zip(made, expected):
            for a, b in zip(ours, alone):
                np.testing.assert_array_equal(a, b)

    def test_a_program_ends_while_threads_run(self):
        done = subprocess.run([sys.executable, "-c", ENDS_AT_ONCE, PACKAGE, MODEL], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stderr)
