# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs: links to files outside of docs/ become their paths, since the site has pages only."""
import re

# [text](../tasks/scores/metrics.hpp) or an anchor in it; images stay
OUTSIDE = re.compile(r"(?<!!)\[([^\]]+)\]\(\.\./([^)#\s]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown, **_):
    return OUTSIDE.sub(lambda link: link[1] if link[2] in link[1] else f"{link[1]} (`{link[2]}`)", markdown)
