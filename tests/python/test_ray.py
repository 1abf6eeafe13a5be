# SPDX-License-Identifier: Apache-2.0
"""bertcl.ray: a node is lost in the middle of a data set, and all answers are those of one process; a deployment
answers. ray_cluster.py does it in the environment that holds Ray."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import package

import encoder_model

PYTHON = package.PACKAGE.parent / "venv-ray" / "bin" / "python"


@unittest.skipUnless((PYTHON.parents[1] / "requirements.txt").is_file(),
                     f"no Ray in {PYTHON.parents[1]} (tools/test makes it; it needs a network)")
class RayTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as name:
            folder, here = pathlib.Path(name), pathlib.Path(__file__).parent
            encoder_model.write_encoder(folder / "encoder")
            variables = {name: value for name, value in os.environ.items() if name != "POCL_MAX_PTHREAD_COUNT"}
            run = subprocess.run(
                [PYTHON, here / "ray_cluster.py", folder / "encoder", folder / "results.json"], text=True,
                env={**variables, "PYTHONPATH": f"{package.PACKAGE}:{here}"}, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, timeout=900)
            if run.returncode:
                raise AssertionError(run.stdout[-8000:])
            cls.seen = json.loads((folder / "results.json").read_text())

    def test_answers_survive_the_loss_of_a_node(self):
        answers = self.seen["answers"]
        self.assertEqual(answers["nodes"], [3, 2])  # when the first answers had come, and at the end
        self.assertEqual(answers["made"], answers["expected"])
        self.assertGreater(len({answer for _, answer, *_ in answers["made"]}), 20)

    def test_a_worker_takes_the_cores_that_are_its_own(self):
        self.assertEqual(self.seen["answers"]["threads"], ["1"])
        self.assertEqual(self.seen["threads"], ["1", "2", None], "of 0.5, 1.5 and no core")

    def test_vectors_are_those_of_one_process(self):
        self.assertEqual(self.seen["vectors"]["different_bits"], 0)
        self.assertGreater(self.seen["vectors"]["rows"], 20)

    def test_a_deployment_answers_by_its_handle_and_by_http(self):
        served = self.seen["served"]
        self.assertEqual(served["by_handle"], served["expected"])
        self.assertEqual(served["by_http"], [200, {"outputs": served["expected"]}])
        self.assertEqual(served["together"], [[answer] for answer in served["expected"]])

    def test_an_error_reaches_only_the_request_that_causes_it(self):
        found = self.seen["picky"]
        self.assertEqual([found["together"][i] for i in (0, 2, 4)], [["A"], ["B"], ["C"]])
        self.assertIn("a bad text", found["together"][1])
        self.assertIn("Panic: a panic", found["together"][3])
        self.assertEqual(found["by_http"], [500, "a bad text"], "a ValueError of the model is not the client's")
        self.assertEqual(found["afterwards"], ["D"])

    def test_bad_requests_are_answered_by_422(self):
        for body, (status, error) in self.seen["refused"].items():
            self.assertEqual(status, 422, body[:80])
            self.assertTrue(error, body[:80])

    def test_a_handle_takes_what_http_takes(self):
        text, dictionary, texts, number = self.seen["served"]["refused_by_handle"]
        for error in (text, dictionary, number):
            self.assertIn("'inputs' must be a list", error)
        self.assertIn("inputs[0] has to be a dictionary with a question and a context", texts)

    def test_bad_arguments_are_named(self):
        errors = self.seen["errors"]
        self.assertIn("unknown task 'classfy' (choose from embed, classify, answer)", errors["task"])
        self.assertIn("batch_size is 0", errors["batch_size"])
        self.assertIn("leave out top_k", errors["top_k"])
        self.assertEqual(errors["surrogate"], "inputs[1] has to be a text")
        self.assertIn("no column 'text' (choose from sentence)", errors["column"])
        self.assertEqual(errors["null"], "texts[1] is None, expected a text")
