# SPDX-License-Identifier: Apache-2.0
"""Conflicts between the banks of shared memory: how often an instruction has to go there.

Shared memory has 32 banks of four bytes. A wavefront serves 32 words of different banks, and all lanes that want one
of these words. Accesses of 8 or 16 bytes go half or quarter a warp at a time (CUDA C++ Programming Guide, "Shared
Memory")."""
import collections
import re

import numpy as np

LANES = 32


def wavefronts(first_words, size, lanes):
    """(wavefronts, the least that this many bytes take) of lanes that access `size` bytes from their words on."""
    words_each = max(size // 4, 1)
    phase = lanes // (LANES // words_each)  # of all warps
    words = (first_words[:, None] + np.arange(words_each)).ravel()
    keys = np.unique(np.repeat(phase, words_each) << 32 | words)
    of_bank = (keys >> 32) * LANES + (keys & 0xFFFFFFFF) % LANES
    counts = np.bincount(of_bank, minlength=(int(phase.max()) + 1) * LANES).reshape(-1, LANES)
    return int(counts.max(axis=1).sum()), len(np.unique(phase))


def counter():
    """What Program.wavefronts takes."""
    return collections.defaultdict(lambda: np.zeros(2, np.int64))


def by_kind(program):
    """Kind of access (such as ld.shared.v4) -> wavefronts taken for each that is needed."""
    texts, found = {i.line: i.text for i in program.instructions}, counter()
    for line, counts in program.wavefronts.items():
        kind = re.match(r"(ldmatrix|cp\.async|(?:ld|st)\.shared(?:\.v\d)?)", texts[line]).group()
        found[kind] += counts
    return {kind: taken / least for kind, (taken, least) in found.items()}
