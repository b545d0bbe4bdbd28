"""Distributions with longer tails than the normal one, drawn through their inverse or of others."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import (
    NONNEGATIVE,
    POSITIVE,
    REAL,
    Distribution,
    LocationScale,
    Number,
)


class Laplace(LocationScale):
    """Laplace's distributions about `loc`, of mean distance `scale` from it.

    Shapes: loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a loc that is NaN and scales that are not above 0, where they are on the
    CPU, and TypeError for other types. Source: PyTorch's torch.distributions.Laplace.

    >>> import tilewright as tw
    >>> tw.distributions.Laplace(0.0, 1.0).variance.item()
    2.0
    """

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return self.icdf(_shares(self.loc, shape, generator))

    def _log_prob(self, value: Tensor) -> Tensor:
        return -tw.abs(value - self.loc) / self.scale - tw.log(2 * self.scale)

    def _cdf(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        below = z < 0
        half = 0.5 * tw.exp(tw.where(below, z, -z))
        return tw.where(below, half, 1 - half)

    def icdf(self, value: Tensor) -> Tensor:
        z = tw.where(value < 0.5, tw.log(2 * value), -tw.log(2 - 2 * value))
        return self.loc + self.scale * z

    def entropy(self) -> Tensor:
        return 1 + tw.log(2 * self.scale)


class Cauchy(LocationScale):
    """Cauchy's distributions about `loc`, with half of it within `scale`; without a mean.

    Shapes: loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a loc that is NaN and scales that are not above 0, where they are on the
    CPU, and TypeError for other types. Source: PyTorch's torch.distributions.Cauchy.

    >>> import tilewright as tw
    >>> tw.distributions.Cauchy(0.0, 1.0).cdf(tw.asarray(1.0)).item()
    0.75
    """

    @property
    def mean(self) -> Tensor:
        return tw.full_like(self.loc, math.nan)

    @property
    def variance(self) -> Tensor:
        return tw.full_like(self.loc, math.inf)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return self.icdf(_shares(self.loc, shape, generator))

    def _log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -math.log(math.pi) - self.scale.log() - tw.log1p(z.square())

    def _cdf(self, value: Tensor) -> Tensor:
        return tw.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        below = value < 0.5
        end = tw.abs(value - 0.5) > 0.25
        # Where a branch is not taken it is computed of what has a gradient. 0.0 + -0.0 is 0.0.
        share = tw.where(end, tw.where(below, 0.0 + value, 1 - value), 0.25)
        reciprocal = 1 / tw.tan(math.pi * share)
        about_middle = tw.tan(math.pi * (tw.where(end, 0.5, value) - 0.5))
        z = tw.where(end, tw.where(below, -reciprocal, reciprocal), about_middle)
        return self.loc + self.scale * z

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(Distribution):
    """The absolute values of Cauchy's distributions about 0, with half of it within `scale`.

    Shapes: scale is the batch. Types: floating. Result: the same type.
    Raises ValueError for scales that are not above 0, where they are on the CPU, and TypeError for
    other types. Source: PyTorch's torch.distributions.HalfCauchy.

    >>> import tilewright as tw
    >>> tw.distributions.HalfCauchy(1.0).cdf(tw.asarray(1.0)).item()
    0.5
    """

    has_rsample = True
    _support = NONNEGATIVE
    _domains: ClassVar = {"scale": POSITIVE}
    scale: Tensor

    def __init__(self, scale: Number, validate_args: bool | None = None) -> None:
        self._set(validate_args, scale=scale)

    @property
    def mean(self) -> Tensor:
        return tw.full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return tw.zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return tw.full_like(self.scale, math.inf)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return self.icdf(_shares(self.scale, shape, generator))

    def _log_prob(self, value: Tensor) -> Tensor:
        inside = math.log(2 / math.pi) - self.scale.log() - tw.log1p((value / self.scale).square())
        return tw.where(value < 0, -math.inf, inside)

    def _cdf(self, value: Tensor) -> Tensor:
        return tw.atan(value / self.scale).clip(0.0) * (2 / math.pi)

    def icdf(self, value: Tensor) -> Tensor:
        end = value > 0.5
        tangent = tw.tan((math.pi / 2) * tw.where(end, 1 - value, value))
        return self.scale * tw.where(end, 1 / tw.where(end, tangent, 1.0), tangent)

    def entropy(self) -> Tensor:
        return math.log(2 * math.pi) + self.scale.log()


class Gumbel(LocationScale):
    """Gumbel's distributions, of the largest of many: `loc` is the likeliest value.

    Shapes: loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a loc that is NaN and scales that are not above 0, where they are on the
    CPU, and TypeError for other types. Source: PyTorch's torch.distributions.Gumbel.

    >>> import tilewright as tw
    >>> round(tw.distributions.Gumbel(0.0, 1.0).mean.item(), 4)
    0.5772
    """

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * _EULER

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (math.pi**2 / 6)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return self.icdf(_shares(self.loc, shape, generator))

    def _log_prob(self, value: Tensor) -> Tensor:
        z = (value - self.loc) / self.scale
        return -z - tw.exp(-z) - self.scale.log()

    def _cdf(self, value: Tensor) -> Tensor:
        return tw.exp(-tw.exp((self.loc - value) / self.scale))

    def icdf(self, value: Tensor) -> Tensor:
        return self.loc - self.scale * tw.log(-tw.log(value))

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + _EULER)


class StudentT(Distribution):
    """Student's distributions with `df` degrees of freedom, moved to `loc` and stretched.

    Shapes: df, loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a df or scale that is not above 0 and a loc that is NaN, where they are
    on the CPU, and TypeError for other types. Source: PyTorch's torch.distributions.StudentT.

    >>> import tilewright as tw
    >>> tw.distributions.StudentT(4.0).variance.item()
    2.0
    """

    _domains: ClassVar = {"df": POSITIVE, "loc": REAL, "scale": POSITIVE}
    df: Tensor
    loc: Tensor
    scale: Tensor

    def __init__(
        self,
        df: Number,
        loc: Number = 0.0,
        scale: Number = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self._set(validate_args, df=df, loc=loc, scale=scale)

    @property
    def mean(self) -> Tensor:
        return tw.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        wide = self.df > 2
        df = tw.where(wide, self.df, 3.0)
        finite = tw.where(wide, self.scale.square() * df / (df - 2), math.inf)
        return tw.where(self.df > 1, finite, math.nan)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        z = tw.randn(*shape, dtype=self.loc.dtype, device=self.loc.device, generator=generator)
        half = tw.broadcast_to(self.df / 2, shape) * 1
        squares = 2 * tw.standard_gamma(half, generator=generator)
        return self.loc + self.scale * z * tw.sqrt(self.df / squares)

    def _log_prob(self, value: Tensor) -> Tensor:
        z, half = (value - self.loc) / self.scale, self.df / 2
        return (
            -(half + 0.5) * tw.log1p(z.square() / self.df)
            - self.scale.log()
            - 0.5 * (self.df.log() + math.log(math.pi))
            - (tw.lgamma(half) - tw.lgamma(half + 0.5))
        )

    def entropy(self) -> Tensor:
        half = self.df / 2
        beta = tw.lgamma(half) + math.lgamma(0.5) - tw.lgamma(half + 0.5)
        slopes = tw.digamma(half + 0.5) - tw.digamma(half)
        return self.scale.log() + (half + 0.5) * slopes + 0.5 * self.df.log() + beta


_EULER = 0.5772156649015329


def _shares(like: Tensor, shape: tuple[int, ...], generator: Any) -> Tensor:
    """Uniform numbers, never 0 or 1, whose logarithms are finite."""
    u = tw.rand(*shape, dtype=like.dtype, device=like.device, generator=generator)
    least = float(tw.finfo(like.dtype).eps) / 2
    return tw.clip(u, least, 1 - least)
