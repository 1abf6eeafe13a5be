# SPDX-License-Identifier: Apache-2.0
"""Progress of quantize() and evaluate(), drawn for whoever looks on."""
from __future__ import annotations

import sys
from collections.abc import Callable

Progress = Callable[[str, int, int, str], None]


def drawer(progress: bool | Progress) -> Progress | None:
    """A function of (what, done, total, unit): the caller's own; True: what draws by tqdm, or else a line on a
    terminal; None where nobody would see it."""
    if callable(progress):
        return progress
    if not progress:
        return None
    return bars() or (_line() if sys.stderr.isatty() else None)


def bars() -> Progress | None:
    """Draws by tqdm, a bar for each step; None where that is absent, or nobody would see it."""
    try:
        import tqdm.auto
    except ImportError:
        return None
    kind = tqdm.auto.tqdm
    if not (sys.stderr.isatty() or any(each.__module__ == "tqdm.notebook" for each in kind.__mro__)):
        return None
    bar = current = None

    def draw(what, done, total, unit):
        nonlocal bar, current
        if current != (what, total) or done < bar.n:  # what goes back has begun anew
            if bar is not None:
                bar.close()
            current = (what, total)
            bar = kind(total=total, desc=what, unit=f" {unit}")
        bar.update(done - bar.n)
        if done >= total:
            bar.close()

    return draw


def _line():
    def draw(what, done, total, unit):
        sys.stderr.write(f"\r{what} {done}/{total} {unit}\033[K" + ("\r\033[K" if done >= total else ""))
        sys.stderr.flush()

    return draw
