# SPDX-License-Identifier: Apache-2.0
"""A BERT whose attention is torch's scaled_dot_product_attention, as both of torch's exporters write it: the quantizer
decides as for eager attention, and what it writes means the same in ONNX Runtime."""
import json
import unittest

from support import Reference, bertcl, bertcl_run, inspect, needs, scratch, worst

needs("torch", "transformers")
from architecture_models import calibration
from transformer_models import Model

EXPORTERS = {"classic": (17, False), "captured": (20, True)}
REPORTED = ("quantized_nodes", "quantized_outputs", "unnormalized_softmaxes", "not_applied")


class Sdpa(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = scratch(cls)
        eager, sdpa = Model(), Model(attention="sdpa")
        cls.batch = eager.batch(3)
        cls.data = calibration(cls.folder, texts=4, words=20)
        eager.export(cls.folder / "eager.onnx", 17)
        for name, exporter in EXPORTERS.items():
            sdpa.export(cls.folder / f"{name}.onnx", *exporter)
        cls.float = Reference(cls.folder / "eager.onnx").run(cls.batch)

    def quantize(self, name, *options):
        """The report, of a file that both run alike."""
        path, report = self.folder / f"{name}-int8.onnx", self.folder / "report.json"
        bertcl("quantize", self.folder / f"{name}.onnx", "-o", path, "--force", "--model-only", *self.data, "--json",
               report, *options)
        expected, mask = Reference(path).run(self.batch), self.batch["attention_mask"]
        difference, extent = worst(expected, bertcl_run(path, self.batch), mask)
        self.assertLess(difference, 0.02 * extent)
        self.assertLess(worst(self.float, expected, mask)[0], 0.2 * extent)
        return json.loads(report.read_text())

    def launches(self, name):
        """Of MatMuls, by operator."""
        report = inspect(self.folder / f"{name}-int8.onnx", "--batch", "3", "--seq", "24")
        return sorted(op["op"] for op in report["ops"] if op["op"].startswith(("linear", "attention")))

    def check(self, *options):
        """Equal decisions. Returns those for the eager model."""
        eager = self.quantize("eager", *options)
        for name in EXPORTERS:
            with self.subTest(name, options=options):
                found = self.quantize(name, *options)
                for key in REPORTED:
                    self.assertEqual(found[key], eager[key], key)
                self.assertEqual(len(found["tensors"]), len(eager["tensors"]))
                self.assertEqual(*(self.launches(file) for file in ("eager", name)))
        return eager

    def test_unnormalized_softmax(self):
        self.assertEqual(self.check("--preset", "accurate")["unnormalized_softmaxes"], 2)
        self.assertEqual(self.check("--softmax", "unnormalized", "--activations", "s8")["unnormalized_softmaxes"], 2)

    def test_results_at_the_places_of_attention(self):
        self.check("--preset", "qordered")

    def test_one_range_for_queries_keys_and_values(self):
        self.check("--fuse-qkv")

    def test_names_of_quantizers(self):
        report = self.check("--preset", "qdqbert", "--disable-keyword", "matmul_")
        self.assertEqual(len([node for node in report["left_in_float"] if "matmul_" in node["reason"]]), 4)

    def test_sensitivity(self):
        def groups(report):
            return {kind: sorted(group["name"] for group in report["sensitivity"][kind]) for kind in ("kinds", "layers")}
        eager = groups(self.quantize("eager", "--sensitivity"))
        self.assertEqual(len(eager["layers"]), 2)
        for name in EXPORTERS:
            report = self.quantize(name, "--sensitivity")
            self.assertEqual(groups(report), eager)
            self.assertEqual(len(report["sensitivity"]["alone_unnormalized"]), 2)


if __name__ == "__main__":
    unittest.main()
