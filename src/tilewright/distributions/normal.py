"""Normal distributions, and those of their absolute values."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import (
    NONNEGATIVE,
    POSITIVE,
    Distribution,
    LocationScale,
    Number,
)


class Normal(LocationScale):
    """Normal distributions of mean `loc` and standard deviation `scale`.

    Shapes: loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a loc that is NaN and scales that are not above 0, where they are on the
    CPU, and TypeError for other types. Source: PyTorch's torch.distributions.Normal.

    >>> import tilewright as tw
    >>> round(tw.distributions.Normal(0.0, 1.0).log_prob(tw.asarray(0.0)).item(), 4)
    -0.9189
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        noise = tw.randn(*shape, dtype=self.loc.dtype, device=self.loc.device, generator=generator)
        return self.loc + self.scale * noise

    def _log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -0.5 * z.square() - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def _cdf(self, value: Tensor) -> Tensor:
        return 0.5 * tw.erfc((self.loc - value) / (self.scale * math.sqrt(2)))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc + self.scale * tw.special.ndtri(value)

    def entropy(self) -> Tensor:
        return self.scale.log() + 0.5 * math.log(2 * math.pi * math.e)


class HalfNormal(Distribution):
    """The absolute values of normal distributions of mean 0 and standard deviation `scale`.

    Shapes: scale is the batch. Types: floating. Result: the same type.
    Raises ValueError for scales that are not above 0, where they are on the CPU, and TypeError for
    other types. Source: PyTorch's torch.distributions.HalfNormal.

    >>> import tilewright as tw
    >>> round(tw.distributions.HalfNormal(1.0).mean.item(), 4)
    0.7979
    """

    has_rsample = True
    _support = NONNEGATIVE
    _domains: ClassVar = {"scale": POSITIVE}
    scale: Tensor

    def __init__(self, scale: Number, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale)

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return tw.zeros_like(self.scale)

    @property
    def stddev(self) -> Tensor:
        return self.scale * math.sqrt(1 - 2 / math.pi)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        dtype, device = self.scale.dtype, self.scale.device
        return self.scale * tw.abs(
            tw.randn(*shape, dtype=dtype, device=device, generator=generator)
        )

    def _log_prob(self, value: Tensor) -> Tensor:
        z = value / self.scale
        inside = -0.5 * z.square() - self.scale.log() + 0.5 * math.log(2 / math.pi)
        return tw.where(value < 0, -math.inf, inside)

    def _cdf(self, value: Tensor) -> Tensor:
        return tw.erf(value / (self.scale * math.sqrt(2))).clip(0.0)

    def icdf(self, value: Tensor) -> Tensor:
        return self.scale * (math.sqrt(2) * tw.erfinv(value))

    def entropy(self) -> Tensor:
        return self.scale.log() + 0.5 * math.log(math.pi * math.e / 2)
