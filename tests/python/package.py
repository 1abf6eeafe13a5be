# SPDX-License-Identifier: Apache-2.0
"""bertcl, as test_python_package has built it; the tests that import this are skipped where it is absent."""
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = pathlib.Path(os.environ.get("BERTCL_BUILD_DIR", ROOT / "build")) / "python-package"
DEFAULT_MODEL = ROOT / "models" / "minilm-l6-squad"
if not (PACKAGE / "bertcl").is_dir():
    raise unittest.SkipTest("the Python package is not built (test_python_package)")
sys.path.insert(0, str(PACKAGE))
import bertcl  # noqa: E402, F401
