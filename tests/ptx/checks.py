# SPDX-License-Identifier: Apache-2.0
"""Comparisons, and the account of what has run."""
import time
import unittest

import numpy as np

import toolchain


class KernelTest(unittest.TestCase):
    """Tests of kernels of the project; says at its end how many ran, and how much of their code."""
    launches, started = 0, 0.0

    @classmethod
    def setUpClass(cls):
        cls.launches, cls.started = 0, time.monotonic()
        toolchain.programs.clear()

    def setUp(self):
        toolchain.require_tools()

    @classmethod
    def tearDownClass(cls):
        programs = [p for p in toolchain.programs.values() if not p.faulty]
        if not programs:
            return
        ran = sum(int(p.executed.sum()) for p in programs)
        print(f"{cls.__name__}: {cls.launches} launches of {len(programs)} programs, "
              f"{100 * ran / max(sum(len(p.executed) for p in programs), 1):.0f} % of their instructions, "
              f"{time.monotonic() - cls.started:.0f} s")

    def expect_near(self, found, expected, bound, label=""):
        """The difference of each element is at most its bound."""
        type(self).launches += 1
        difference = np.abs(np.asarray(found, np.float64) - expected)
        wrong = ~(difference <= bound)
        if wrong.any():
            at = tuple(int(i) for i in np.argwhere(wrong)[0])
            self.fail(f"{label} of shape {np.shape(found)}: {np.count_nonzero(wrong)} elements differ, first {at}: "
                      f"{found[at]} is not {expected[at]}; the largest difference is {np.nanmax(difference)}")
