# SPDX-License-Identifier: Apache-2.0
"""Files of golden values whose diffs can be read."""
import json


def write_golden(path, golden, depth):
    """Writes JSON with a line for each item of its outer `depth` levels."""
    def text(value, levels):
        if not levels or not isinstance(value, (dict, list)):
            return json.dumps(value)
        if isinstance(value, dict):
            return "{" + ",\n".join(f"{json.dumps(key)}: {text(v, levels - 1)}" for key, v in value.items()) + "}"
        return "[" + ",\n".join(text(v, levels - 1) for v in value) + "]"
    path.write_text(text(golden, depth) + "\n", encoding="utf-8")
