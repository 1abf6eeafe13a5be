# SPDX-License-Identifier: Apache-2.0
"""bertcl.quantize: the model that the program writes, its report, progress and errors, in the library."""
import json
import pathlib
import re
import subprocess
import threading

import numpy as np
import onnx
from package import DEFAULT_MODEL, bertcl
from test_evaluation import MODEL, Scratch

import bertcl.arguments
import bertcl.program

QUICK = {"smooth": "off", "weight_rounding": "nearest", "progress": False}
# What depends on the clock and on where the file is.
OTHER = {"calibrate_seconds", "total_seconds", "output"}
TEXTS = {"text": "Ada lives in London.\nWho?\n", "fill-mask": "Ada lives in London.\nWho?\n",
         "classify": "Ada lives in London.\tA\nWho?\tB\n", "similarity": "Ada.\tLondon?\t3\nWho?\tAda.\t1\n",
         "tag": "Ada B-x\nlives O\n\nWho O\n"}


def in_python(report):
    """A report of the program whose reasons name options as Python does: 'adds=layer-norm' of --adds layer-norm."""
    text = re.sub(r"--([a-z-]+)(?: ([a-z-]+))?(?= to quantize)",
                  lambda m: "'" + m[1].replace("-", "_") + ("=" + m[2] if m[2] else "") + "'", json.dumps(report))
    return json.loads(text)


class QuantizationTest(Scratch):
    def both(self, data, **options):
        """What the library and the program write and report."""
        made = []
        for name in "library", "program":
            output = self.path / name / "int8.onnx"
            output.parent.mkdir(exist_ok=True)
            if name == "library":
                with self.without_program():
                    report = bertcl.quantize(MODEL, output, data, force=True, **{**QUICK, **options})
            else:
                wanted = {**QUICK, **options}
                wanted.pop("progress")
                report = in_python(bertcl.program.report_of(
                    "quantize", [MODEL], False, {"output": output, "data": data, "force": True, **wanted}))
            files = {file.name: file.read_bytes() for file in output.parent.iterdir()}
            made.append((files, {key: value for key, value in report.items() if key not in OTHER}))
        return made

    def test_the_library_and_the_program_write_one_model(self):
        data = self.squad()
        for options in ({}, {"samples": 2, "first_samples": True, "max_seq_length": 12},
                        {"preset": "ort-tensorrt", "activations": "s8", "exclude": ["*query*", "*key*"]},
                        {"smooth": "0.5", "weight_rounding": "gptq", "method": "percentile", "percentile": 99.9}):
            with self.subTest(options):
                library, program = self.both(data, **options)
                self.assertEqual(library[0], program[0])
                self.assertEqual(library[1], program[1])
                self.assertIn("vocab.txt", library[0])

    def test_samples_of_every_task(self):
        for task, text in TEXTS.items():
            data = self.write("data.tsv", text)
            with self.subTest(task):
                library, program = self.both(data, task=task, model_only=True)
                self.assertEqual(library[0], program[0])
                self.assertEqual(library[1], program[1])

    def test_ranges_of_tables_and_of_each_run(self):
        table = self.path / "ranges.json"
        with self.without_program():
            bertcl.quantize(MODEL, self.path / "a.onnx", self.squad(), write_table=table, progress=False)
            by_table = bertcl.quantize(MODEL, self.path / "b.onnx", read_table=table, progress=False)
            bertcl.quantize(MODEL, self.path / "c.onnx", dynamic=True, per_token=True, progress=False)
        self.assertIn("smoothing", by_table["left_out_by_table"])
        for name in "abc":
            self.assertTrue(bertcl.Session(self.path / f"{name}.onnx", require_int8=True).info.int8)

    def test_the_choice_of_ops_is_left_to_the_program(self):
        report = bertcl.quantize(MODEL, self.path / "q.onnx", self.squad(), sensitivity=True, sensitivity_samples=1,
                                 json=self.path / "report.json",
                                 **QUICK)
        self.assertIn("sensitivity", report)
        self.assertEqual(json.loads((self.path / "report.json").read_text()), report)
        with self.without_program(), self.assertRaises(FileNotFoundError):
            bertcl.quantize(MODEL, self.path / "q.onnx", self.squad(), sensitivity=True, **QUICK)

    def test_samples_fit_inputs_of_a_fixed_length(self):
        fixed, output = self.path / "fixed.onnx", self.path / "q.onnx"
        model = onnx.load(MODEL)
        for value in model.graph.input:
            value.type.tensor_type.shape.dim[1].dim_value = 16
        onnx.save(model, fixed)
        options = {**QUICK, "vocab": DEFAULT_MODEL / "vocab.txt"}
        with self.without_program():
            bertcl.quantize(fixed, output, self.squad(), **options)
            with self.assertRaisesRegex(bertcl.Error, "sequences of 20 tokens exceed the model's maximum of 16"):
                bertcl.quantize(fixed, self.path / "r.onnx", self.squad(), max_seq_length=20, **options)
        self.assertTrue(bertcl.Session(output).info.int8)

    def test_errors_are_those_of_the_program_with_arguments_named(self):
        data, output = self.squad(), self.path / "q.onnx"
        self.write("made.onnx", "")
        cases = [("unknown option 'activation' .did you mean 'activations'", {"activation": "s8"}),
                 ("^'activations': unknown value 's9'", {"activations": "s9"}),
                 ("unknown preset 'best'|unknown value 'best'", {"preset": "best"}),
                 ("'x' is not an integer", {"weight_bits": "x"}),
                 ("no source of ranges", {"data": None}),
                 ("'dynamic' cannot be combined with 'data'", {"dynamic": True}),
                 ("sequences of 600 tokens exceed", {"max_seq_length": 600}),
                 ("already exists.*'force'", {"output": self.path / "made.onnx"}),
                 ("'write_table': .*already exists", {"write_table": self.path / "made.onnx"}),
                 ("the same file", {"write_table": output}),
                 ("'exclude' needs a value", {"exclude": [""], "per_tensor": True}),
                 ("/nowhere.json", {"data": "/nowhere.json"}),
                 ("'smooth' has no effect here", {"smooth": "0.5", "write_table": self.path / "t.json"})]
        for message, options in cases:
            with self.subTest(message), self.without_program():
                wanted = {"output": output, "data": data, **options}
                with self.assertRaisesRegex(bertcl.Error, message):
                    bertcl.quantize(MODEL, wanted.pop("output"), wanted.pop("data"), **{**QUICK, **wanted})
                self.assertFalse(output.exists())
        with self.without_program(), self.assertRaisesRegex(bertcl.Error, "/nowhere.onnx"):
            bertcl.quantize("/nowhere.onnx", output, data, vocab=DEFAULT_MODEL / "vocab.txt", **QUICK)

    def test_data_are_a_file(self):
        for options in {}, {"max_drop": 1}:
            with self.assertRaisesRegex(TypeError, "data is of type list, expected the name of a file; write what it"):
                bertcl.quantize(MODEL, self.path / "q.onnx", ["a", "b"], task="text", **options)
            with self.assertRaisesRegex(TypeError, "data is of type bytes, expected the name of a file"):
                bertcl.evaluate(MODEL, data=b"a", **options)
        made = bertcl.quantize(MODEL, self.path / "q.onnx", self.squad(), device=-1, **QUICK)
        self.assertEqual(made["samples"], bertcl.quantize(MODEL, self.path / "q.onnx", self.squad(), device="cpu",
                                                          force=True, **QUICK)["samples"])

    def test_false_is_the_negation_of_a_flag(self):
        output = self.path / "q.onnx"

        def report(**options):
            with self.without_program():
                return bertcl.quantize(MODEL, output, dynamic=True, model_only=True, force=True, **options)

        usual = report(first_samples=False, fuse_qkv=False, per_tensor=False)
        self.assertTrue(usual["weights"]["per_channel"])
        self.assertFalse(report(per_channel=False)["weights"]["per_channel"])
        self.assertTrue(report(per_tensor=np.False_)["weights"]["per_channel"])
        self.assertTrue(report(weights="u8")["weights"]["symmetric"])  # per channel always
        self.assertFalse(report(weights="u8", per_channel=False)["weights"]["symmetric"])
        self.assertEqual(report(head=False)["quantized_nodes"], usual["quantized_nodes"] - 1)
        for name in "smooth", "exclude", "json", "activation":
            with self.subTest(name), self.assertRaisesRegex(TypeError, f"{name} is False, but is not a flag"):
                report(**{name: False})

    def test_flags_are_those_of_the_program(self):
        script = subprocess.run([bertcl.program.PROGRAM, "completion", "bash"], capture_output=True, text=True,
                                check=True).stdout
        flags = set()
        for command in "quantize", "eval":
            words = set(re.search(rf"'{command}'\) words='([^']*)'", script)[1].split())
            flags |= words - set(re.findall(rf"{command}:(--[a-z-]+)", script)) - {"--help", "--help-all"}
        self.assertEqual({flag[2:].replace("-", "_") for flag in flags}, bertcl.arguments.FLAGS.keys())

    def test_files_that_are_read_are_not_written(self):
        files = {"data": self.squad(), "overrides": self.write("overrides.json", "{}"), "read_table":
                 self.write("ranges.json", "{}"), "vocab": self.write("vocab.txt", "[UNK]\n")}
        link = self.path / "link.json"
        link.symlink_to(files["data"])
        for name, file in {**files, "link": link}.items():
            content = file.read_bytes()
            read = {"data": files["data"]} if name == "link" else {"data": files["data"], name: file}
            if name == "read_table":
                del read["data"]
            for made in {"output": file}, {"output": self.path / "q.onnx", "write_table": file}:
                wanted = {"data": None, **read, **made}
                with self.subTest(name=name, made=made), self.without_program(), \
                     self.assertRaisesRegex(bertcl.Error, f"'{list(made)[-1]}' would overwrite .*; give another file"):
                    bertcl.quantize(MODEL, wanted.pop("output"), wanted.pop("data"), force=True, **wanted)
                self.assertEqual(file.read_bytes(), content)

    def test_reviews_that_are_read_are_not_written(self):
        reviews = self.path / "reviews"
        (reviews / "pos").mkdir(parents=True)
        review = reviews / "pos" / "1.txt"
        review.write_text("words")
        for made in {"output": review}, {"output": self.path / "q.onnx", "write_table": review}:
            wanted = {"task": "classify", "force": True, **made}
            with self.subTest(made=made), self.without_program(), \
                 self.assertRaisesRegex(bertcl.Error, f"'{list(made)[-1]}' would overwrite .*, which is read as 'data'"):
                bertcl.quantize(MODEL, wanted.pop("output"), reviews, **wanted)
            self.assertEqual(review.read_text(), "words")

    def test_weights_beside_a_model_are_not_written(self):
        source, data = self.path / "source", self.squad()
        source.mkdir()
        onnx.save(onnx.load(MODEL), source / "model.onnx", save_as_external_data=True, location="int8.onnx.data",
                  size_threshold=0)
        weights = source / "int8.onnx.data"
        content = weights.read_bytes()
        options = {**QUICK, "vocab": DEFAULT_MODEL / "vocab.txt", "force": True, "model_only": True}
        for made in ({"output": weights}, {"output": self.path / "q.onnx", "write_table": weights},
                     {"output": source / "int8.onnx"}):
            with self.subTest(made):
                with self.assertRaisesRegex(bertcl.Error, "would overwrite (a file|weights)"):
                    wanted = {**options, **made}
                    bertcl.quantize(source / "model.onnx", wanted.pop("output"), data, **wanted)
                wanted = {**options, "data": data, **made}
                wanted.pop("progress")
                with self.assertRaisesRegex(bertcl.Error, "would overwrite"):
                    bertcl.program.report_of("quantize", [source / "model.onnx"], False, wanted)
                self.assertEqual(weights.read_bytes(), content)

    def test_a_missing_model_is_named_before_its_vocabulary(self):
        with self.assertRaisesRegex(bertcl.Error, "/nowhere.onnx: no such file"):
            bertcl.quantize("/nowhere.onnx", self.path / "q.onnx", self.squad(), **QUICK)

    def test_options_without_effect_and_of_other_types_are_refused(self):
        data, table = self.squad(), self.write("ranges.json", "{}")
        sampling = {"samples": 3, "first_samples": True, "max_seq_length": 8, "max_query_length": 8}
        for name, value in sampling.items():
            for source, reason in ({"dynamic": True}, "'dynamic'"), ({"read_table": table}, "a table of ranges"):
                with self.subTest(name=name, source=source), \
                     self.assertRaisesRegex(bertcl.Error, f"'{name}' has no effect here: {reason}"):
                    bertcl.quantize(MODEL, self.path / "q.onnx", **source, **{name: value})
        cases = [(bertcl.Error, "'max_seq_length' is 0, expected 1 or more", {"max_seq_length": 0}),
                 (bertcl.Error, "'samples' is -1, expected 0 or more", {"samples": -1}),
                 (bertcl.Error, "table_format requires write_table", {"table_format": "cache"}),
                 (bertcl.Error, "'max_query_length' is for", {"max_query_length": 8, "task": "text"}),
                 (TypeError, "samples is '3', expected an integer", {"samples": "3"}),
                 (TypeError, "max_seq_length is '5', expected an integer", {"max_seq_length": "5"}),
                 (TypeError, "first_samples is 'no', expected True or False", {"first_samples": "no"}),
                 (TypeError, "exclude is {'a': 1}, expected a text or a list of texts", {"exclude": {"a": 1}}),
                 (TypeError, "exclude holds b'a', expected texts", {"exclude": [b"a"]}),
                 (ValueError, "exclude is .*, which has a zero byte or a lone surrogate", {"exclude": ["a", "\udce9"]}),
                 (bertcl.Error, "'op_types' is empty; name one or more, or leave it out", {"op_types": []}),
                 (bertcl.Error, "'places' is empty", {"places": (), "preset": "accurate", "max_error": 1}),
                 (TypeError, "task is 3, expected a text", {"task": 3}),
                 (TypeError, "overrides is {}, expected the name of a file", {"overrides": {}})]
        for kind, message, options in cases:
            with self.subTest(message), self.assertRaisesRegex(kind, message):
                bertcl.quantize(MODEL, self.path / "q.onnx", data, **{**QUICK, **options})
        for model, output in (b"m", "q"), ("m", 3):
            with self.assertRaisesRegex(TypeError, "expected the name of a file"):
                bertcl.quantize(model, output, data)
        self.assertFalse((self.path / "q.onnx").exists())

    def test_nodes_to_exclude_may_be_any_of_several(self):
        reports = [bertcl.quantize(MODEL, self.path / "q.onnx", dynamic=True, force=True, progress=False, exclude=names)
                   for names in (["*query*"], {"*query*"}, (name for name in ["*query*"]), "*query*")]
        self.assertTrue(any("query" in str(node) for node in reports[0]["left_in_float"]))
        for report in reports[1:]:
            self.assertEqual(report["left_in_float"], reports[0]["left_in_float"])

    def test_progress_is_told_and_may_raise(self):
        seen, output = [], self.path / "q.onnx"
        with self.without_program():
            bertcl.quantize(MODEL, output, self.squad(), **{**QUICK, "progress": lambda *now: seen.append(now)})
        self.assertEqual([now[1] for now in seen if now[0] == seen[-1][0]][-1], 3)
        self.assertEqual({now[2:] for now in seen}, {(3, "questions")})
        pathlib.Path(output).unlink()

        def stop(*_):
            raise KeyboardInterrupt

        with self.without_program(), self.assertRaises(KeyboardInterrupt):
            bertcl.quantize(MODEL, output, self.squad(), **{**QUICK, "progress": stop})
        self.assertFalse(output.exists())

    def test_other_threads_run_meanwhile(self):
        counts, count, data = [], 0, self.squad()
        work = threading.Thread(target=lambda: bertcl.quantize(
            MODEL, self.path / "q.onnx", data, **{**QUICK, "progress": lambda *_: counts.append(count)}))
        work.start()
        while work.is_alive():
            count += 1
        work.join()
        self.assertLess(counts[0], counts[-1])
