"""Distributions of times and shares that gamma distributions make."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import (
    INSIDE_UNIT,
    NONNEGATIVE,
    POSITIVE,
    SHARES,
    Distribution,
    Number,
    above_0,
)
from tilewright.distributions.implicit import LogOdds, Shares, log_gammas


class Exponential(Distribution):
    """Times until events that come at a `rate`.

    Shapes: rate is the batch. Types: floating. Result: the same type.
    Raises ValueError for rates that are not above 0, where they are on the CPU, and TypeError for
    other types. Source: PyTorch's torch.distributions.Exponential.

    >>> import tilewright as tw
    >>> tw.distributions.Exponential(2.0).mean.item()
    0.5
    """

    has_rsample = True
    _support = NONNEGATIVE
    _domains: ClassVar = {"rate": POSITIVE}
    rate: Tensor

    def __init__(self, rate: Number, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

    @property
    def mean(self) -> Tensor:
        return 1 / self.rate

    @property
    def mode(self) -> Tensor:
        return tw.zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return 1 / self.rate

    @property
    def variance(self) -> Tensor:
        return 1 / self.rate.square()

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        dtype, device = self.rate.dtype, self.rate.device
        return tw.exponential(1.0, shape, dtype=dtype, device=device, generator=generator) / (
            self.rate
        )

    def _log_prob(self, value: Tensor) -> Tensor:
        return tw.where(value < 0, -math.inf, self.rate.log() - self.rate * value)

    def _cdf(self, value: Tensor) -> Tensor:
        return (-tw.expm1(-self.rate * value)).clip(0.0)

    def icdf(self, value: Tensor) -> Tensor:
        return -tw.log1p(-value) / self.rate

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()


class Gamma(Distribution):
    """Gamma distributions of shape `concentration`, divided by `rate`.

    Gradients go through draws by implicit reparameterisation (Figurnov, Mohamed and Mnih, 2018).

    Shapes: concentration and rate broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for parameters that are not above 0, where they are on the CPU, and TypeError
    for other types. Source: PyTorch's torch.distributions.Gamma.

    >>> import tilewright as tw
    >>> tw.distributions.Gamma(3.0, 2.0).mean.item()
    1.5
    """

    has_rsample = True
    _support = NONNEGATIVE._replace(ends=above_0)
    _domains: ClassVar = {"concentration": POSITIVE, "rate": POSITIVE}
    concentration: Tensor
    rate: Tensor

    def __init__(
        self, concentration: Number, rate: Number, validate_args: bool | None = None
    ) -> None:
        self._set(validate_args, concentration=concentration, rate=rate)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clip(0.0)

    @property
    def stddev(self) -> Tensor:
        return self.concentration.sqrt() / self.rate

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        shapes = tw.broadcast_to(self.concentration, shape)
        least, _ = above_0(shapes.dtype)
        return tw.standard_gamma(shapes, generator=generator).clip(least) / self.rate

    def _log_prob(self, value: Tensor) -> Tensor:
        a = self.concentration
        powers = a * self.rate.log() + tw.xlogy(a - 1, value)
        return powers - self.rate * value - tw.lgamma(a)

    def entropy(self) -> Tensor:
        a = self.concentration
        return a - self.rate.log() + tw.lgamma(a) + (1 - a) * tw.digamma(a)


class Dirichlet(Distribution):
    """Shares that add up to 1, which `concentration` draws to each.

    Gradients go through draws by implicit reparameterisation (Figurnov, Mohamed and Mnih, 2018).

    Shapes: concentration (..., n), of which (...) is the batch and (n,) the event. Types: floating.
    Result: the same type.
    Raises ValueError for a concentration without an axis and for one that is not above 0, where it
    is on the CPU, and TypeError for other types. Source: PyTorch's torch.distributions.Dirichlet.

    >>> import tilewright as tw
    >>> tw.distributions.Dirichlet(tw.asarray([1.0, 3.0])).mean.tolist()
    [0.25, 0.75]
    """

    has_rsample = True
    _support = SHARES
    _domains: ClassVar = {"concentration": POSITIVE}
    concentration: Tensor

    def __init__(self, concentration: Tensor, validate_args: bool | None = None) -> None:
        self._set(validate_args, concentration=concentration)
        if self.concentration.ndim == 0:
            raise ValueError("Dirichlet: expected concentrations (..., n), got a number")
        shape = self.concentration.shape
        self.batch_shape, self.event_shape = shape[:-1], shape[-1:]

    @property
    def mean(self) -> Tensor:
        return self.concentration / self._total().unsqueeze(-1)

    @property
    def mode(self) -> Tensor:
        above = (self.concentration - 1).clip(0.0)
        return above / above.sum(axis=-1, keepdims=True)  # NaN where none is above 1

    @property
    def variance(self) -> Tensor:
        total = self._total().unsqueeze(-1)
        mean = self.concentration / total
        return mean * (1 - mean) / (total + 1)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        a = tw.broadcast_to(self.concentration, shape).astype(tw.float64)
        shares: Tensor = Shares.apply(a, log_gammas(a, generator))
        return shares.astype(self.concentration.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        powers = tw.xlogy(self.concentration - 1, value).sum(axis=-1)
        return powers - self.log_beta()

    def entropy(self) -> Tensor:
        a, total = self.concentration, self._total()
        slopes = ((a - 1) * tw.digamma(a)).sum(axis=-1)
        return self.log_beta() - (a.shape[-1] - total) * tw.digamma(total) - slopes

    def log_beta(self) -> Tensor:
        """The logarithm of the density's divisor, of the multivariate beta function."""
        return tw.lgamma(self.concentration).sum(axis=-1) - tw.lgamma(self._total())

    def _total(self) -> Tensor:
        return self.concentration.sum(axis=-1)


class Beta(Distribution):
    """Shares between 0 and 1, of two gamma distributions.

    Gradients go through draws by implicit reparameterisation (Figurnov, Mohamed and Mnih, 2018).

    Shapes: concentration1 and concentration0 broadcast to the batch. Types: floating. Result: the
    common type.
    Raises ValueError for concentrations that are not above 0, where they are on the CPU, and
    TypeError for other types. Source: PyTorch's torch.distributions.Beta.

    >>> import tilewright as tw
    >>> tw.distributions.Beta(1.0, 3.0).mean.item()
    0.25
    """

    has_rsample = True
    _support = INSIDE_UNIT
    _domains: ClassVar = {"concentration1": POSITIVE, "concentration0": POSITIVE}
    concentration1: Tensor
    concentration0: Tensor

    def __init__(
        self, concentration1: Number, concentration0: Number, validate_args: bool | None = None
    ) -> None:
        self._set(validate_args, concentration1=concentration1, concentration0=concentration0)

    @property
    def pair(self) -> Dirichlet:
        """The shares and what they lack of 1."""
        both = tw.stack([self.concentration1, self.concentration0], axis=-1)
        return Dirichlet(both, validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.pair.mean[..., 0]

    @property
    def mode(self) -> Tensor:
        return self.pair.mode[..., 0]

    @property
    def variance(self) -> Tensor:
        return self.pair.variance[..., 0]

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        a = tw.broadcast_to(self.concentration1, shape).astype(tw.float64)
        b = tw.broadcast_to(self.concentration0, shape).astype(tw.float64)
        drawn = log_gammas(a, generator) - log_gammas(b, generator)
        log_odds: Tensor = LogOdds.apply(a, b, drawn)
        return log_odds.sigmoid().astype(self.concentration1.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        powers = tw.xlogy(self.concentration1 - 1, value)
        return powers + tw.xlog1py(self.concentration0 - 1, -value) - self.pair.log_beta()

    def entropy(self) -> Tensor:
        return self.pair.entropy()
