"""Distributions of counts."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import Distribution, Number


class Poisson(Distribution):
    """How many events there are, of which `rate` come on average.

    Shapes: rate is the batch. Types: floating. Result: the same type.
    Raises ValueError for rates below 0, where they are on the CPU, and TypeError for other types.
    Source: PyTorch's torch.distributions.Poisson.

    >>> import tilewright as tw
    >>> tw.distributions.Poisson(2.0).variance.item()
    2.0
    """

    rate: Tensor

    def __init__(self, rate: Number) -> None:
        self._set(rate=rate)
        self._check("rate", lambda x: x >= 0, "at least 0")

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return tw.floor(self.rate)

    @property
    def variance(self) -> Tensor:
        return self.rate

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        rates = tw.broadcast_to(self.rate.detach(), shape) * 1
        return tw.poisson(rates, generator=generator)

    def log_prob(self, value: Tensor) -> Tensor:
        return tw.xlogy(value, self.rate) - self.rate - tw.lgamma(value + 1)


class Geometric(Distribution):
    """How many trials of probability `probs` fail before the first success.

    Shapes: probs is the batch. Types: floating. Result: the same type.
    Raises ValueError for probs outside (0, 1], where they are on the CPU, and TypeError for other
    types. Source: PyTorch's torch.distributions.Geometric.

    >>> import tilewright as tw
    >>> tw.distributions.Geometric(0.25).mean.item()
    3.0
    """

    probs: Tensor

    def __init__(self, probs: Number) -> None:
        self._set(probs=probs)
        self._check("probs", lambda x: (x > 0) & (x <= 1), "above 0 and up to 1")

    @property
    def mean(self) -> Tensor:
        return 1 / self.probs - 1

    @property
    def mode(self) -> Tensor:
        return tw.zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        return (1 / self.probs - 1) / self.probs

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        p = self.probs
        waits = tw.exponential(1.0, shape, dtype=p.dtype, device=p.device, generator=generator)
        return tw.floor(waits / -tw.log1p(-p))

    def log_prob(self, value: Tensor) -> Tensor:
        return tw.xlog1py(value, -self.probs) + self.probs.log()

    def entropy(self) -> Tensor:
        p = self.probs
        return (-tw.xlogy(p, p) - tw.xlog1py(1 - p, -p)) / p


class Binomial(Distribution):
    """How many of `total_count` trials of probability `probs` succeed.

    Shapes: total_count and probs broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for probs outside [0, 1] and a total_count below 0, where they are on the CPU,
    and TypeError for other types. Source: PyTorch's torch.distributions.Binomial.

    >>> import tilewright as tw
    >>> tw.distributions.Binomial(4.0, 0.5).variance.item()
    1.0
    """

    total_count: Tensor
    probs: Tensor

    def __init__(self, total_count: Number, probs: Number) -> None:
        if isinstance(total_count, int) and isinstance(probs, Tensor):
            total_count = tw.full((), float(total_count), dtype=probs.dtype, device=probs.device)
        self._set(total_count=total_count, probs=probs)
        self._check("total_count", lambda x: x >= 0, "at least 0")
        self._check("probs", lambda x: (x >= 0) & (x <= 1), "from 0 to 1")

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        """Trial by trial: for totals of up to some hundreds."""
        most = int(self.total_count.max().item()) if self.total_count.size else 0
        trials = tw.bernoulli(self.probs.detach(), (most, *shape), generator=generator)
        numbers = tw.arange(most, dtype=trials.dtype, device=trials.device)
        counted = numbers.reshape((most, *(1 for _ in shape))) < self.total_count
        return tw.where(counted, trials, 0.0).sum(axis=0)

    def log_prob(self, value: Tensor) -> Tensor:
        n, p = self.total_count, self.probs
        ways = tw.lgamma(n + 1) - tw.lgamma(value + 1) - tw.lgamma(n - value + 1)
        inside = (value >= 0) & (value <= n)
        return tw.where(inside, ways + tw.xlogy(value, p) + tw.xlog1py(n - value, -p), -math.inf)
