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
from tilewright.distributions.implicit import LogOdds, log_gammas


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
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

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
        squares = _log1p_square(value - self.loc, self.scale)
        return -math.log(math.pi) - self.scale.log() - squares

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
        inside = math.log(2 / math.pi) - self.scale.log() - _log1p_square(value, self.scale)
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
    def stddev(self) -> Tensor:
        return self.scale * (math.pi / math.sqrt(6))

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

    Gradients go through draws by implicit reparameterisation (Figurnov, Mohamed and Mnih, 2018).

    Shapes: df, loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a df or scale that is not above 0 and a loc that is NaN, where they are
    on the CPU, and TypeError for other types. Source: PyTorch's torch.distributions.StudentT.

    >>> import tilewright as tw
    >>> tw.distributions.StudentT(4.0).variance.item()
    2.0
    """

    has_rsample = True
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
        # df / (df + t^2) has a beta distribution of df / 2 and 1/2.
        df = tw.broadcast_to(self.df, shape).astype(tw.float64)
        z = tw.randn(*shape, dtype=tw.float64, device=df.device, generator=generator)
        drawn = log_gammas(df / 2, generator) - tw.log(z.square() / 2)
        log_odds = LogOdds.apply(df / 2, tw.full_like(df, 0.5), drawn)
        t = tw.sign(z) * df.sqrt() * tw.exp(-log_odds.clip(-1200.0) / 2)  # below infinity
        return (self.loc + self.scale * t).astype(self.loc.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        half = self.df / 2
        squares = _log1p_square(value - self.loc, self.scale * self.df.sqrt())
        return (
            -(half + 0.5) * squares
            - self.scale.log()
            - 0.5 * (self.df.log() + math.log(math.pi))
            + _log_gamma_step(half)
        )

    def entropy(self) -> Tensor:
        half = self.df / 2
        beta = tw.lgamma(half) + math.lgamma(0.5) - tw.lgamma(half + 0.5)
        slopes = tw.digamma(half + 0.5) - tw.digamma(half)
        return self.scale.log() + (half + 0.5) * slopes + 0.5 * self.df.log() + beta


_EULER = 0.5772156649015329


def _log1p_square(x: Tensor, scale: Tensor) -> Tensor:
    """log(1 + (x / scale)^2), also where the quotient or its square overflows."""
    z = x / scale
    far = tw.abs(z) > 1e4
    logs = tw.where(far, tw.abs(x), 1.0).log() - tw.where(far, scale, 1.0).log()
    return tw.where(
        far, 2 * logs + tw.log1p(tw.exp(-2 * logs)), tw.log1p(tw.where(far, 0.0, z).square())
    )


def _log_gamma_step(x: Tensor) -> Tensor:
    """log(gamma(x + 1/2) / gamma(x)), whose two logarithms cancel where x is large.

    Source: https://dlmf.nist.gov/5.11.E13.
    """
    large = x > 60
    far, near = tw.where(large, x, 60.0), tw.where(large, 1.0, x)
    r = 1 / far
    series = r * (-1 / 8 + r**2 * (1 / 192 + r**2 * (-1 / 640 + r**2 * (17 / 14336))))
    return tw.where(large, 0.5 * far.log() + series, tw.lgamma(near + 0.5) - tw.lgamma(near))


def _shares(like: Tensor, shape: tuple[int, ...], generator: Any) -> Tensor:
    """Uniform numbers, never 0 or 1, whose logarithms are finite."""
    u = tw.rand(*shape, dtype=like.dtype, device=like.device, generator=generator)
    least = float(tw.finfo(like.dtype).eps) / 2
    return tw.clip(u, least, 1 - least)
