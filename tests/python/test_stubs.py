# SPDX-License-Identifier: Apache-2.0
"""The types of the extension module: _bertcl.pyi lies beside it and names what it has."""
import ast
import unittest

from package import PACKAGE, bertcl  # noqa: F401

from bertcl import _bertcl


def members(body):
    """Classes with the arguments of their methods, and the names of the rest."""
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield node.name, {each.name: [a.arg for a in each.args.args] for each in node.body
                              if isinstance(each, ast.FunctionDef)}
        elif isinstance(node, ast.FunctionDef):
            yield node.name, {}
        elif isinstance(node, ast.AnnAssign):
            yield node.target.id, {}


class StubsTest(unittest.TestCase):
    def test_stubs_name_what_the_module_has(self):
        stub = PACKAGE / "bertcl" / "_bertcl.pyi"
        found = dict(members(ast.parse(stub.read_text()).body))
        public = {name for name in vars(_bertcl) if not name.startswith("_")}
        self.assertEqual(set(found), public | {"__version__"})
        methods = {name for name, value in vars(_bertcl.Session).items()
                   if callable(value) and (not name.startswith("_") or name == "__init__")}
        self.assertEqual(set(found["Session"]), methods)
        self.assertEqual(found["Session"]["run_sequences"], ["self", "ids", "token_type_ids", "offsets", "names"])
        self.assertTrue((stub.parent / "py.typed").exists())
