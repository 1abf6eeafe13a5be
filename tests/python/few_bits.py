# SPDX-License-Identifier: Apache-2.0
"""Random operands of operators whose weights have a few bits, and the weights by the definitions."""
import dataclasses

import numpy as np


def several_to_a_byte(values, bits):
    """Integers along the last axis, the first in the low bits of the first byte."""
    count = 8 // bits
    missing = -values.shape[-1] % count
    padded = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, missing)]).astype(np.uint8)
    parts = padded.reshape(*values.shape[:-1], -1, count)
    return np.bitwise_or.reduce([parts[..., i] << np.uint8(bits * i) for i in range(count)]).astype(np.uint8)


@dataclasses.dataclass
class NBits:
    """MatMulNBits. zeros: None, "whole" or "real"; groups: None, "sorted" or "shuffled"."""
    k: int
    n: int
    bits: int = 4
    block: int = 16
    zeros: str = None
    groups: str = None
    bias: bool = False
    flat: bool = False
    dtype: type = np.float32
    seed: int = 0

    def __post_init__(self):
        random, self.blocks = np.random.default_rng(self.seed), -(-self.k // self.block)
        self.q = random.integers(0, 2 ** self.bits, (self.n, self.blocks * self.block))
        # Quantizers write scales of both signs.
        self.scales = random.standard_normal((self.n, self.blocks)).astype(self.dtype)
        self.zero = {None: np.full((self.n, self.blocks), 2.0 ** (self.bits - 1)),
                     "whole": random.integers(0, 2 ** self.bits, (self.n, self.blocks)),
                     "real": random.uniform(0, 2 ** self.bits, (self.n, self.blocks)).astype(self.dtype)}[self.zeros]
        self.group = np.arange(self.k) // self.block
        if self.groups == "shuffled":
            random.shuffle(self.group)
        self.added = random.standard_normal(self.n).astype(self.dtype) if self.bias else None

    def constants(self):
        """The operands after the first, None where one is absent."""
        shape = (lambda x: x.reshape(-1)) if self.flat else (lambda x: x)
        zero = {None: None, "real": shape(self.zero)}.get(
            self.zeros, shape(several_to_a_byte(np.asarray(self.zero, np.int64), self.bits)))
        packed = several_to_a_byte(self.q.reshape(self.n, self.blocks, self.block), self.bits)
        return dict(b=packed, s=shape(self.scales), z=zero, g=self.group.astype(np.int32) if self.groups else None,
                    bias=self.added)

    def attributes(self):
        return dict(K=self.k, N=self.n, bits=self.bits, block_size=self.block)

    def weight(self):
        """[k, n]"""
        scale, zero = (np.asarray(x, np.float32)[:, self.group] for x in (self.scales, self.zero))
        q = self.q[:, :self.k].astype(np.float32)
        by_terms = self.zeros == "real" or self.groups
        return (q * scale - zero * scale if by_terms else (q - zero) * scale).T


@dataclasses.dataclass
class Blocked:
    """A tensor with a scale for each block along an axis; `data` has its integers, of any NumPy type."""
    shape: tuple
    axis: int
    block: int
    low: int
    high: int
    zeros: bool = False
    default: int = 0
    dtype: type = np.float32
    seed: int = 0

    def __post_init__(self):
        random = np.random.default_rng(self.seed)
        of_scales = list(self.shape)
        of_scales[self.axis] = -(-of_scales[self.axis] // self.block)
        self.data = random.integers(self.low, self.high + 1, self.shape)
        self.scales = random.standard_normal(of_scales).astype(self.dtype)
        self.zero = random.integers(self.low, self.high + 1, of_scales) if self.zeros else None

    def weight(self):
        def by_element(x):
            return np.repeat(x, self.block, self.axis).take(range(self.shape[self.axis]), self.axis)
        zero = by_element(self.zero) if self.zeros else self.default
        return ((self.data - zero).astype(np.float32) * by_element(self.scales.astype(np.float32))).astype(self.dtype)
