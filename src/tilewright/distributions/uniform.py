"""Uniform distributions."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import REAL, Distribution, Number, Support


class Uniform(Distribution):
    """Uniform distributions in [low, high).

    Shapes: low and high broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a low that is not below high, where they are on the CPU, and TypeError for
    other types. Source: PyTorch's torch.distributions.Uniform.

    >>> import tilewright as tw
    >>> tw.distributions.Uniform(0.0, 2.0).mean.item()
    1.0
    """

    has_rsample = True
    _support = Support("from low to high", lambda d, x: (x >= d.low) & (x <= d.high))
    _domains: ClassVar = {"low": Support("below high", lambda d, x: x < d.high), "high": REAL}
    low: Tensor
    high: Tensor

    def __init__(self, low: Number, high: Number, validate_args: bool | None = None) -> None:
        self._set(validate_args, low=low, high=high)

    @property
    def mean(self) -> Tensor:
        return (self.low + self.high) / 2

    @property
    def mode(self) -> Tensor:
        return tw.full_like(self.low, math.nan)  # none is

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        share = tw.rand(*shape, dtype=self.low.dtype, device=self.low.device, generator=generator)
        return self.low + (self.high - self.low) * share

    def _inside(self, y: Tensor) -> Tensor:
        low, high = self.low.detach(), self.high.detach()
        step = (tw.abs(high) * float(tw.finfo(y.dtype).eps)).clip(
            float(tw.finfo(y.dtype).smallest_normal)
        )
        return tw.where(y < high, y, tw.maximum(high - step, low))

    def _log_prob(self, value: Tensor) -> Tensor:
        outside = (value < self.low) | (value >= self.high)
        inside = tw.where(tw.isnan(value), math.nan, -(self.high - self.low).log())
        return tw.where(outside, -math.inf, inside)

    def _cdf(self, value: Tensor) -> Tensor:
        return ((value - self.low) / (self.high - self.low)).clip(0.0, 1.0)

    def icdf(self, value: Tensor) -> Tensor:
        return self.low + (self.high - self.low) * value

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()
