# SPDX-License-Identifier: Apache-2.0
"""What the interpreter refuses."""


class PtxError(Exception):
    """An error of a kernel, or something that the interpreter does not know; says where."""

    def __init__(self, message, line=None, lane=None):
        self.message, self.line, self.lane = message, line, lane
        place = "" if line is None else f"line {line}: "
        at = "" if lane is None else f" (work-item {lane})"
        super().__init__(f"{place}{message}{at}")
