# SPDX-License-Identifier: Apache-2.0
"""The figures of bench/compare as a picture: how much faster bertcl is than each engine.

    build/venv-bench/bin/python bench/peers/plot.py           every result of bench/results again
    build/venv-bench/bin/python bench/peers/plot.py FILE...   these; FILE.svg stands beside FILE.json
"""
import hashlib
import json
import pathlib
import re
import sys

RESULTS = pathlib.Path(__file__).resolve().parents[1] / "results"
# An engine has one color and one place in every plot; colors that color-blind people tell apart (Okabe and Ito).
COLORS = {"onnxruntime": "#0072b2", "openvino": "#e69f00", "torch": "#009e73"}
PRECISIONS = ("int8", "bf16", "fp32")
STREAMS = ("stream as read", "stream sorted")


def shape_key(shape):
    """Sorts shapes by batch, then by sequence; what is not BATCHxSEQ comes last."""
    if match := re.fullmatch(r"(\d+)x(\d+)", shape):
        return 0, int(match[1]), int(match[2]), shape
    return 1, STREAMS.index(shape) if shape in STREAMS else len(STREAMS), 0, shape


def panels(result):
    """What is drawn: for each precision its shapes in order, and for each engine its bars as
    (place of the shape, ratio, least, largest)."""
    rows = [row for row in result["rows"] if row["engine"] != "bertcl" and "ratio" in row]
    drawn = []
    for precision in PRECISIONS:
        own = [row for row in rows if row["precision"] == precision]
        shapes = sorted({row["shape"] for row in own}, key=shape_key)
        bars = {engine: [(shapes.index(row["shape"]), *row["ratio"]) for row in own if row["engine"] == engine]
                for engine in COLORS}
        if own:
            drawn.append((precision, shapes, {engine: sorted(of) for engine, of in bars.items() if of}))
    return drawn


def fingerprint(path):
    """Stands in the plot, so that a test can tell whether it is that of its figures."""
    return "sha256 " + hashlib.sha256(path.read_bytes()).hexdigest()


def draw(path):
    """Draws FILE.json as FILE.svg: one row of bars for each precision, one group for each shape; bars
    from 1 up are wins. The lines on the bars are the spread over the rounds."""
    import matplotlib

    matplotlib.use("Agg")
    # The same figures give the same file; letters stay text, which is smaller and can be read aloud.
    matplotlib.rcParams.update({"svg.hashsalt": "bertcl", "svg.fonttype": "none",
                                "font.family": ["DejaVu Sans", "sans-serif"]})
    from matplotlib import pyplot
    from matplotlib.patches import Patch

    result = json.loads(path.read_text(encoding="utf-8"))
    drawn = panels(result)
    if not drawn:
        return
    engines = [engine for engine in COLORS if any(engine in bars for _, _, bars in drawn)]
    figure, axes = pyplot.subplots(len(drawn), 1, squeeze=False, figsize=(9, 0.6 + 2.6 * len(drawn)),
                                   layout="constrained")
    width = min(0.8 / len(engines), 0.3)
    for axis, (precision, shapes, bars) in zip(axes[:, 0], drawn):
        for engine, own in bars.items():
            places = [place + width * (engines.index(engine) - (len(engines) - 1) / 2) for place, *_ in own]
            ratios = [ratio for _, ratio, _, _ in own]
            spread = [[ratio - least for _, ratio, least, _ in own], [most - ratio for _, ratio, _, most in own]]
            axis.bar(places, ratios, width, yerr=spread, capsize=2, color=COLORS[engine])
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(shapes)), shapes)
        axis.set_xlim(-0.6, len(shapes) - 0.4)
        axis.set_ylabel(f"{precision}: time / time of bertcl")
    title = f"{', '.join(dict.fromkeys(result['models'].values()))}\n" \
        f"{result['cpu']}, {result['threads']} threads, {result['date']}"
    figure.legend(handles=[Patch(color=COLORS[engine], label=engine) for engine in engines],
                  loc="outside upper center", ncols=len(engines), frameon=False, title_fontsize=10, title=title)
    # Without the date of drawing; matplotlib's lines end in spaces.
    picture = path.with_suffix(".svg")
    figure.savefig(picture, metadata={"Date": None, "Description": fingerprint(path)})
    picture.write_text(re.sub(r" +\n", "\n", picture.read_text(encoding="utf-8")), encoding="utf-8")
    pyplot.close(figure)


def main():
    for path in map(pathlib.Path, sys.argv[1:] or sorted(RESULTS.glob("*.json"))):
        draw(path)


if __name__ == "__main__":
    main()
