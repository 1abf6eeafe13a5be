# SPDX-License-Identifier: Apache-2.0
"""Fake quantization: QuantizeLinear and DequantizeLinear in float, with gradients.

Forward is what the two operators compute, to the bit: saturate(round_half_even(x / scale) + zero point).
Backward is the straight-through estimator for x (Bengio et al. 2013, arXiv:1308.3432) and the
gradient of LSQ for the scale (Esser et al. 2020, arXiv:1902.08153).
"""
import math

import torch

#            least, largest integer
RANGES = {
    torch.int8: (-128, 127), torch.uint8: (0, 255),
    torch.int16: (-32768, 32767), torch.uint16: (0, 65535),
    torch.int32: (-2**31, 2**31 - 1),
}


def _dot(a, b):
    return torch.dot(a.reshape(-1), b.reshape(-1))


class _FakeQuantize(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale, low, high):
        steps = x / scale
        ctx.save_for_backward(steps, scale, low, high)
        return steps.round().clamp_(low, high).mul_(scale)

    @staticmethod
    def backward(ctx, gradient):
        steps, scale, low, high = ctx.saved_tensors
        clamped = steps.clamp(low, high)
        of_x = gradient * (clamped == steps)
        of_scale = None
        if ctx.needs_input_grad[1]:
            # d/ds of s * round(x / s): round(x / s) - x / s inside, the bound outside, where x / s may be infinite
            if scale.dim() == 0:
                of_scale = -_dot(of_x, clamped)
                of_scale += _dot(gradient, clamped.round_())
            else:
                inside = of_x * clamped
                of_scale = clamped.round_().mul_(gradient).sub_(inside).sum_to_size(scale.shape)
        return of_x, of_scale, None, None


class FakeQuantizer(torch.nn.Module):
    """One QuantizeLinear/DequantizeLinear pair. With a scale for each channel `axis` is that of the
    channels of a tensor of `rank` dimensions; where the rank is not known, it has to be the last one.

    The scale is what the file says times exp(log_ratio), which starts at 0: a step of the optimizer
    changes large and small scales by the same share. Zero points stay as calibrated. With `factors`, two other
    quantizers, the scale is the product of theirs.
    """

    def __init__(self, scale, zero_point, axis=None, rank=None):
        super().__init__()
        shape = [1] * (rank or 1) if scale.numel() > 1 else []
        if shape:
            shape[axis if rank else 0] = -1
        least, largest = RANGES[zero_point.dtype]
        zero = zero_point.to(torch.float32).reshape(shape if zero_point.numel() > 1 else [])
        self.dtype, self.axis, self._only_last = zero_point.dtype, axis, bool(shape) and not rank
        self.file_shape = scale.shape
        self.register_buffer("start", scale.to(torch.float32).reshape(shape))
        self.register_buffer("zero", zero)
        self.register_buffer("low", least - zero)
        self.register_buffer("high", largest - zero)
        self.log_ratio = torch.nn.Parameter(torch.zeros_like(self.start))
        self.enabled, self.factors = True, ()

    @property
    def scale(self):
        if self.factors:
            return math.prod(factor.scale for factor in self.factors).detach().reshape(self.start.shape)
        return self.start * self.log_ratio.exp()

    def forward(self, x):
        if self._only_last and self.axis % x.dim() != x.dim() - 1:
            raise ValueError(f"an activation {list(x.shape)} has a scale for each channel of axis "
                             f"{self.axis}; only the last axis is supported")
        return _FakeQuantize.apply(x, self.scale, self.low, self.high) if self.enabled else x

    @torch.no_grad()
    def keep_range_of(self, weight):
        """Integers stay within the range that those of `weight` span, which 7 bits (reduced range) or 4 may bound;
        symmetric ones, around zero points of 0 or 128, within the largest distance from them."""
        if self.dtype not in (torch.int8, torch.uint8):
            return
        least, largest = RANGES[self.dtype]
        integers = self.to_integers(weight).double()
        if (self.zero == (least + largest + 1) // 2).all():
            bound = (integers - self.zero).abs().max()
            if bound > 0:
                self.low.copy_(self.low.clamp(min=-bound))
                self.high.copy_(self.high.clamp(max=bound))
        elif integers.min() < integers.max():
            self.low.copy_(integers.min() - self.zero)
            self.high.copy_(integers.max() - self.zero)

    @torch.no_grad()
    def to_integers(self, x):
        """What QuantizeLinear stores."""
        steps = (x / self.scale).round().clamp(self.low, self.high)
        return (steps.double() + self.zero.double()).to(self.dtype)

    @torch.no_grad()
    def to_floats(self, integers):
        """What DequantizeLinear reads."""
        return (integers.double() - self.zero.double()).float() * self.scale
