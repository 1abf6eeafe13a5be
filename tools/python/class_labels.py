# SPDX-License-Identifier: Apache-2.0
"""Names of a model's classes, and which class a label of the data means: as tasks/kinds/match_labels.cpp has it."""
import pathlib

import data_files
import onnx_module

POLARITY = {"0": 0, "label_0": 0, "neg": 0, "negative": 0, "1": 1, "label_1": 1, "pos": 1, "positive": 1}


def names_of(model):
    """Of an .onnx file what fine-tuning wrote into it, else id2label of the config.json beside it; of a Hugging Face
    folder that of its config.json. None where the classes have no names of their own."""
    path = pathlib.Path(model)
    if path.is_file():
        properties = onnx_module.load(path, weights=False).metadata_props
        written = next((p.value for p in properties if p.key == "bertcl.classes"), None)
        if written is not None:
            place = f"{path}: bertcl.classes in the metadata"
            return _checked(data_files.parse_json(written, place), place)
    config = (path if path.is_dir() else path.parent) / "config.json"
    if not config.is_file():
        return None
    labels = data_files.read_object(config).get("id2label") or {}
    names = _checked(isinstance(labels, dict) and [labels.get(str(i)) for i in range(len(labels))], f"{config}: id2label")
    return None if names == [f"LABEL_{i}" for i in range(len(names))] else names


def _checked(names, place):
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"{place} does not name all classes")
    return names


def are_polar(labels):
    return all(label.lower() in POLARITY for label in labels)


def match(labels, names, by_number=True):
    """{label: class}. `by_number`: numbers count the classes. ValueError: a label is none of the classes."""
    def first(matches):
        return next((at for at, name in enumerate(names) if matches(at, name)), None)

    def by_name(label):
        exact = first(lambda at, name: label == name)
        return first(lambda at, name: label.lower() == name.lower()) if exact is None else exact

    def by_polarity(label):
        return first(lambda at, name: polarities[at] == POLARITY.get(label.lower(), ""))

    def number(label):
        return first(lambda at, name: label == str(at))

    def by_any(label):
        return next((at for way in ways for at in [way(label)] if at is not None), None)

    polarities = [POLARITY.get(name.lower()) for name in names]
    polar = [by_polarity] if sorted(polarities, key=str) == [0, 1] else []
    alone = [by_name, *polar, number] if by_number else [by_name, *polar]
    ways = [by_name, *polar]
    if by_number and not any(name.isdecimal() for name in names):
        ways.append(number)
    for way in (*alone, by_any):
        found = {label: way(label) for label in labels}
        if None not in found.values():
            return found
    unknown = next(label for label in sorted(labels) if by_any(label) is None)
    raise ValueError(f"the label {unknown!r} is unknown (choose from {', '.join(names)})")


def in_order(labels):
    """Names of classes where the data alone have them."""
    return sorted(labels, key=lambda label: (len(label), label))
