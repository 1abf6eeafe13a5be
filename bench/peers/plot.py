# SPDX-License-Identifier: Apache-2.0
"""The figures of bench/compare as a picture: how much faster bertcl is than each engine."""


def draw(result, path):
    """One row of bars for each precision, one group for each shape; bars from 1 up are wins. The
    lines on the bars are the spread over the rounds."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "bertcl"  # the same figures give the same file
    from matplotlib import pyplot

    rows = [row for row in result["rows"] if row["engine"] != "bertcl" and "ratio" in row]
    precisions = list(dict.fromkeys(row["precision"] for row in rows))
    engines = list(dict.fromkeys(row["engine"] for row in rows))
    if not rows:
        return
    figure, axes = pyplot.subplots(len(precisions), 1, squeeze=False, figsize=(9, 3 * len(precisions)))
    for axis, precision in zip(axes[:, 0], precisions):
        own = [row for row in rows if row["precision"] == precision]
        shapes = list(dict.fromkeys(row["shape"] for row in own))
        for number, engine in enumerate(engines):
            bars = [row for row in own if row["engine"] == engine]
            middle = [row["ratio"][0] for row in bars]
            spread = [[row["ratio"][0] - row["ratio"][1] for row in bars],
                      [row["ratio"][2] - row["ratio"][0] for row in bars]]
            places = [shapes.index(row["shape"]) + 0.8 * (number + 0.5) / len(engines) - 0.4 for row in bars]
            axis.bar(places, middle, 0.8 / len(engines), yerr=spread, capsize=2, color=f"C{number}", label=engine)
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set_xticks(range(len(shapes)), shapes)
        axis.set_ylabel("time / time of bertcl")
        axis.set_title(f"{precision}, {result['cpu']}, {result['threads']} threads, {result['date']}", fontsize=9)
    axes[0, 0].legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
