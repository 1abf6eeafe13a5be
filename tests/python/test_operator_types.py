# SPDX-License-Identifier: Apache-2.0
"""Every operator with every element type: equal to ONNX Runtime or to the ONNX reference, or refused
by name. Integer MatMuls are compared with the reference alone: ONNX Runtime saturates sums of u8 x
s8 on CPUs without VNNI.

    python test_operator_types.py --table

prints what became of each operator and type."""
import collections
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

import numpy as np
import onnx
import onnx.defs
from onnx.reference import ReferenceEvaluator
from operator_cases import OPSET, TYPES, cases
from support import BERTCL, ROOT, Reference

INTEGER_MATMULS = {"MatMulInteger", "QLinearMatMul"}
# Less is accurate: what f16 rounds in, and functions whose values are far from each other.
SHARE = {"float16": 4e-3, "bf16": 2e-2, "float32": 2e-5, "float64": 2e-5}
ORDER = ("-", "refused", "constant", "device", "WRONG")
# Taken in addition to ONNX: int32 indices.
TAKEN = {"GatherND"}
# The types of an operand of QuantizeLinear differ: an i32 is allowed up to 18 and from 23 on.
OPSETS = (OPSET, 13, 23)
# Where no reference has an operator in a type, and its values are those of another one.
SAME_VALUES = {np.dtype(np.float64): np.float32, np.dtype(bool): np.uint8}


def fits_schema(case):
    """True if a version of ONNX lets the operator have inputs of these types. The operators of
    com.microsoft here are those of floats."""
    if case.domain:
        return len({x.dtype for x in case.inputs}) == 1 and case.inputs[0].dtype.kind == "f"
    if case.op == "LayerNormalization" and case.inputs[0].dtype == np.float32:  # exporters mix f16 and f32
        case = dataclasses.replace(case, inputs=[x.astype(np.float32) if x.dtype == np.float16 else x
                                                 for x in case.inputs])
    return any(fits_version(case, onnx.defs.get_schema(case.op, opset, ""))
               for opset in OPSETS if onnx.defs.has(case.op, opset, ""))


def fits_version(case, schema):
    allowed = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    bound = {}
    for i, x in enumerate(case.inputs):
        if x is None:
            continue
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        tensor = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
        name = f"tensor({onnx.TensorProto.DataType.Name(tensor).lower()})"
        name = name.replace("(float64)", "(double)")
        if name not in allowed.get(formal.type_str, {formal.type_str}):
            return False
        same = i < len(schema.inputs) - 1 or formal.is_homogeneous
        if same and bound.setdefault(formal.type_str, name) != name:
            return False
    return True


def referenced(case):
    """Outputs by name from ONNX Runtime, else from the ONNX reference; None where neither has any."""
    model = case.model(bf16=False)
    makers = [lambda: ReferenceEvaluator(model).run(None, case.given())]
    if case.op not in INTEGER_MATMULS:
        makers.insert(0, lambda: list(Reference(model.SerializeToString()).run(case.given()).values()))
    for make in makers:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                values = [np.asarray(v) for v in make()]
        except Exception:  # whatever a reference refuses with
            continue
        return {f"y{i}": v for i, v in enumerate(values)}
    return None


def expected_of(case):
    """Outputs by name, if need be from the same numbers in another type; None where there are none."""
    expected = referenced(case)
    if expected is not None or not fits_schema(case):
        return expected
    inputs = [x if x is None or x.dtype not in SAME_VALUES else x.astype(SAME_VALUES[x.dtype])
              for x in case.inputs]
    back = {np.dtype(to): of for of, to in SAME_VALUES.items() if any(x.dtype == of for x in case.inputs)}
    expected = referenced(dataclasses.replace(case, inputs=inputs))
    return expected and {n: v.astype(back.get(v.dtype, v.dtype)) for n, v in expected.items()}


def outcomes(folder):
    """What `bertcl verify` says of each file, by its stem."""
    # The tolerance is that of judge(); what is refused or fails stands in the report.
    report = folder / "report.json"
    done = subprocess.run([BERTCL, "verify", "--all", folder, "--json", report, "--rtol", "0", "--atol", "1e30"],
                          capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise AssertionError(done.stderr)
    return {pathlib.Path(f["file"]).stem: f for f in json.loads(report.read_text())["files"]}


def judge(case, expected, outcome):
    """equal, refused or invalid; else what is wrong."""
    message, status = outcome["message"], outcome["status"]
    valid = fits_schema(case)
    if status == "refused":
        op = case.op
        if op not in message and "x0" not in message and "type" not in message:
            return f"refused without naming the operator: {message}"
        return "refused" if valid else "invalid"
    if not valid and case.op not in TAKEN:
        return "taken, though ONNX does not allow it"
    if expected is None:
        return "no reference"
    if status != "pass":
        return f"{status}: {message}"
    kinds = {str(v.dtype) for v in expected.values()}
    largest = max([float(np.abs(v.astype(np.float64)).max()) for v in expected.values() if v.size] + [1])
    share = SHARE["bf16"] if case.bf16 else max(SHARE.get(k, 0.0) for k in kinds)
    halves = [x for x in case.inputs if x is not None and x.dtype == np.float16]
    if halves and kinds & SHARE.keys():
        share = max(share, SHARE["float16"])
    if outcome["max_abs"] > share * largest:
        return f"differs by {outcome['max_abs']}, {share * largest} are allowed"
    return "equal"


def verdicts():
    """Each case with what judge() says of it."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        wanted = {}
        for case in cases():
            onnx.save(case.model(), folder / f"{case.name}.onnx")
            expected = expected_of(case)
            wanted[case.name] = case, expected
            if expected is not None:
                arrays = {f"in__{n}": x for n, x in case.given().items()}
                arrays |= {f"out__{n}": x for n, x in expected.items()}
                np.savez(folder / f"{case.name}.npz", **arrays)
        found = outcomes(folder)
    if found.keys() != wanted.keys():
        raise AssertionError(f"judged were {len(found)} of {len(wanted)} files")
    return [(case, judge(case, expected, found[name])) for name, (case, expected) in wanted.items()]


def print_table():
    """Of each operator and type of its first operand: device, if a kernel gives the right values in a
    case; constant, if the host does for constants; refused; - where ONNX does not have it."""
    best = {}
    names = {np.dtype(t): n for n, t in TYPES.items()}
    for case, verdict in verdicts():
        on_host = case.name.endswith("-folded")
        cells = {"equal": "constant" if on_host else "device", "refused": "refused", "invalid": "-"}
        cell = cells.get(verdict, "WRONG")
        first = next(x for x in case.inputs if x is not None)
        row = best.setdefault(case.op, {})
        type_name = "bf16" if case.bf16 else names[first.dtype]
        row[type_name] = max(row.get(type_name, "-"), cell, key=ORDER.index)
    columns = [*TYPES, "bf16"]
    print("".join(f"{c:<10}" for c in [f"{'':<22}", *columns]).rstrip())
    for op in sorted(best):
        print("".join(f"{c:<10}" for c in [f"{op:<22}", *(best[op].get(c, "") for c in columns)]).rstrip())


# Operators of the default domain without a case: without operands, or not of ONNX but of ONNX Runtime.
NO_CASE = {"Constant", "If", "MatMulIntegerToFloat", "SimplifiedLayerNormalization"}


class OperatorTypes(unittest.TestCase):
    def test_every_operator_has_a_case(self):
        listed = set(re.findall(r"^- `(\w+)`", (ROOT / "docs/operators.md").read_text(), re.MULTILINE))
        self.assertEqual(listed - {case.op for case in cases() if not case.domain}, NO_CASE)

    def test_all(self):
        counts, wrong = collections.Counter(), []
        for case, verdict in verdicts():
            if verdict not in ("equal", "refused", "invalid"):
                wrong.append(f"{case.name}: {verdict}")
                verdict = "wrong"
            counts[verdict] += 1
        print(f"\n{counts.total()} cases: {counts['equal']} equal, {counts['refused']} refused, {counts['invalid']} "
              f"invalid in ONNX and refused, {counts['wrong']} wrong")
        self.assertFalse(wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong))
        self.assertGreater(counts["equal"], 2500)


if __name__ == "__main__":
    if "--table" in sys.argv:
        print_table()
    else:
        unittest.main()
