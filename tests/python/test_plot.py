# SPDX-License-Identifier: Apache-2.0
"""The plots of bench/compare: what is drawn where, and that each plot is that of its figures."""
import json
import sys
import unittest

from support import ROOT

sys.path.insert(0, str(ROOT / "bench" / "peers"))
import plot


def row(shape, precision, engine, ratio=2.0):
    return {"shape": shape, "precision": precision, "engine": engine, "ratio": [ratio, ratio - 1, ratio + 1]}


class Panels(unittest.TestCase):
    def test_shapes_have_one_order_however_they_were_measured(self):
        shapes = ["stream sorted", "32x16", "8x384", "1x128", "8x16", "stream as read", "1x16"]
        ordered = ["1x16", "1x128", "8x16", "8x384", "32x16", "stream as read", "stream sorted"]
        for measured in (shapes, shapes[::-1]):
            rows = [row(shape, precision, "openvino") for precision in ("fp32", "int8") for shape in measured]
            drawn = plot.panels({"rows": rows})
            self.assertEqual([(precision, own) for precision, own, _ in drawn],
                             [("int8", ordered), ("fp32", ordered)])

    def test_a_bar_stands_at_its_shape_with_its_spread(self):
        rows = [row("8x16", "int8", "torch", 3.0), row("1x16", "int8", "openvino", 4.0),
                row("1x16", "int8", "torch", 5.0), row("1x16", "int8", "bertcl", 1.0),
                {"shape": "1x16", "precision": "int8", "engine": "onnxruntime"}]
        [(_, shapes, bars)] = plot.panels({"rows": rows})
        self.assertEqual(shapes, ["1x16", "8x16"])
        self.assertEqual(bars, {"openvino": [(0, 4.0, 3.0, 5.0)], "torch": [(0, 5.0, 4.0, 6.0), (1, 3.0, 2.0, 4.0)]})

    def test_engines_have_their_color_and_order_alone_or_together(self):
        self.assertEqual(len(set(plot.COLORS.values())), len(plot.COLORS))
        rows = [row("1x16", "int8", engine) for engine in reversed(plot.COLORS)]
        [(_, _, bars)] = plot.panels({"rows": rows})
        self.assertEqual(list(bars), list(plot.COLORS))


class Stored(unittest.TestCase):
    def test_each_plot_is_that_of_its_figures(self):
        paths = sorted(plot.RESULTS.glob("*.json"))
        self.assertTrue(paths)
        for path in paths:
            picture = path.with_suffix(".svg").read_text(encoding="utf-8")
            self.assertIn(plot.fingerprint(path), picture, f"{path.name} was drawn before it was measured: draw it "
                          "by bench/peers/plot.py")

    def test_each_bar_and_legend_has_the_color_of_its_engine(self):
        for path in sorted(plot.RESULTS.glob("*.json")):
            drawn = plot.panels(json.loads(path.read_text(encoding="utf-8")))
            picture = path.with_suffix(".svg").read_text(encoding="utf-8")
            for engine, color in plot.COLORS.items():
                bars = sum(len(of.get(engine, [])) for _, _, of in drawn)
                # One patch a bar, and one in the legend.
                self.assertEqual(picture.count(f"fill: {color}"), bars + (bars > 0), f"{engine} in {path.name}")
