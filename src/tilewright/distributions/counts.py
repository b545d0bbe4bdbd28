"""Distributions of counts."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.bernoulli import Chances
from tilewright.distributions.categorical import Categorical
from tilewright.distributions.distribution import (
    NONNEGATIVE,
    REAL,
    UNIT,
    WHOLE,
    Distribution,
    Number,
    Support,
    one_of,
)


class Counts(Distribution):
    """The base of distributions of counts, whose logarithms of factorials cancel.

    They are computed in float64 and rounded once.
    """

    _computed_in = "float64"

    def _widens(self, value: Tensor) -> bool:
        return True


class Poisson(Counts):
    """How many events there are, of which `rate` come on average.

    Shapes: rate is the batch. Types: floating. Result: the same type.
    Raises ValueError for rates below 0, where they are on the CPU, and TypeError for other types.
    Source: PyTorch's torch.distributions.Poisson.

    >>> import tilewright as tw
    >>> tw.distributions.Poisson(2.0).variance.item()
    2.0
    """

    _support = WHOLE
    _domains: ClassVar = {"rate": NONNEGATIVE}
    rate: Tensor

    def __init__(self, rate: Number, validate_args: bool | None = None) -> None:
        self._set(validate_args, rate=rate)

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

    def _log_prob(self, value: Tensor) -> Tensor:
        # No event is certain at a rate of 0; its logarithm has no gradient there.
        rate = tw.where((value == 0) & (self.rate == 0), 1.0, self.rate)
        return tw.xlogy(value, rate) - self.rate - tw.lgamma(value + 1)


class Geometric(Counts, Chances):
    """How many trials of probability `probs` fail before the first success.

    Shapes: probs or logits are the batch. Types: floating. Result: the same type.
    Raises ValueError unless one of both is given and for probs outside (0, 1] and logits that are
    NaN, where they are on the CPU, and TypeError for other types. Source: PyTorch's
    torch.distributions.Geometric.

    >>> import tilewright as tw
    >>> tw.distributions.Geometric(0.25).mean.item()
    3.0
    """

    _support = WHOLE
    _domains: ClassVar = {
        "probs": Support("above 0 and up to 1", lambda _, x: (x > 0) & (x <= 1)),
        "logits": REAL,
    }

    def __init__(
        self,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._given = one_of(self, validate_args, probs, logits)

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

    def _log_prob(self, value: Tensor) -> Tensor:
        if self._given == "logits_given":
            return self.log_chance(1.0, value)
        p = self.probs_given
        failure = tw.where((value == 0) & (p == 1), 0.0, p)  # none comes before a sure success
        return p.log() + value * tw.log1p(-failure)

    def entropy(self) -> Tensor:
        return -self.log_chance(self.probs, 1 - self.probs) / self.probs


class Binomial(Counts, Chances):
    """How many of `total_count` trials of probability `probs` succeed.

    Shapes: total_count and probs or logits broadcast to the batch. Types: floating. Result: the
    common type.
    Raises ValueError unless one of probs and logits is given, for probs outside [0, 1], logits
    that are NaN and a total_count that is not a whole number from 0, where they are on the CPU,
    and TypeError for other types. Source: PyTorch's torch.distributions.Binomial.

    >>> import tilewright as tw
    >>> tw.distributions.Binomial(4.0, 0.5).variance.item()
    1.0
    """

    _support = Support(
        "whole numbers from 0 to total_count",
        lambda d, x: (x >= 0) & (x <= d.total_count) & (x == tw.floor(x)),
    )
    _domains: ClassVar = {
        "total_count": Support(
            "a whole number from 0",
            lambda _, x: (x >= 0) & (x == tw.floor(x)) & (x < math.inf),
        ),
        "probs": UNIT,
        "logits": REAL,
    }
    total_count: Tensor

    def __init__(
        self,
        total_count: Number = 1,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._given = one_of(self, validate_args, probs, logits, total_count=total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return tw.minimum(tw.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        total = tw.broadcast_to(self.total_count.detach(), shape)
        return tw.binomial(total, self.probs.detach(), generator=generator)

    def _log_prob(self, value: Tensor) -> Tensor:
        n = self.total_count
        outside = (value < 0) | (value > n)
        k = tw.where(outside, 0.0, value)  # where the formula has gradients
        ways = tw.lgamma(n + 1) - tw.lgamma(k + 1) - tw.lgamma(n - k + 1)
        return tw.where(outside, -math.inf, ways + self.log_chance(k, n - k))

    def entropy(self) -> Tensor:
        return -self.expected(self._log_prob)

    def expected(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        """The mean of a function of the count, by a sum over all counts."""
        numbers = self._counts(len(self.batch_shape))
        inside = numbers <= self.total_count
        counts = tw.where(inside, numbers, 0.0)
        logs = self._log_prob(counts)
        terms = logs.exp() * function(counts)
        return tw.where(inside & (logs > -math.inf), terms, 0.0).sum(axis=0)

    def _counts(self, axes: int) -> Tensor:
        """0, 1, ... up to the largest total, along an axis in front of others."""
        n = self.total_count
        most = int(n.max().item()) if n.size else 0
        return tw.arange(most + 1, dtype=n.dtype, device=n.device).reshape((-1, *[1] * axes))


class NegativeBinomial(Counts, Chances):
    """How many trials of probability `probs` succeed before `total_count` fail.

    A total_count between whole numbers stands for a Poisson distribution with a gamma-distributed
    rate.

    Shapes: total_count and probs or logits broadcast to the batch. Types: floating. Result: the
    common type.
    Raises ValueError unless one of probs and logits is given, for probs outside [0, 1), logits
    that are NaN and a total_count below 0, where they are on the CPU, and TypeError for other
    types. Source: PyTorch's torch.distributions.NegativeBinomial.

    >>> import tilewright as tw
    >>> tw.distributions.NegativeBinomial(3.0, 0.5).variance.item()
    6.0
    """

    _support = WHOLE
    _domains: ClassVar = {
        "total_count": NONNEGATIVE,
        "probs": Support("from 0 and below 1", lambda _, x: (x >= 0) & (x < 1)),
        "logits": REAL,
    }
    total_count: Tensor

    def __init__(
        self,
        total_count: Number,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._given = one_of(self, validate_args, probs, logits, total_count=total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self._odds()

    @property
    def mode(self) -> Tensor:
        return tw.floor((self.total_count - 1) * self._odds()).clip(0.0)

    @property
    def variance(self) -> Tensor:
        odds = self._odds()
        return self.total_count * odds * (1 + odds)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        given = tw.broadcast_to(self.total_count.detach(), shape)
        least = float(tw.finfo(given.dtype).smallest_normal)
        rates = tw.standard_gamma(given.clip(least), generator=generator) * self._odds().detach()
        return tw.poisson(rates, generator=generator)

    def _log_prob(self, value: Tensor) -> Tensor:
        # Without a failure to wait for, 0 is certain.
        n = tw.where(self.total_count + value == 0, 1.0, self.total_count)
        ways = tw.lgamma(n + value) - tw.lgamma(value + 1) - tw.lgamma(n)
        return ways + self.log_chance(value, self.total_count)

    def _odds(self) -> Tensor:
        if self._given == "logits_given":
            return self.logits_given.exp()
        return self.probs_given / (1 - self.probs_given)


class Multinomial(Counts):
    """How many of `total_count` draws come from each of several classes.

    Shapes: probs or logits (..., classes), of which (...) is the batch and (classes,) the event;
    total_count is one number. Types: floating. Result: the same type.
    Raises ValueError unless one of both is given, for numbers without an axis, for a total_count
    below 0 and, where they are on the CPU, for probs below 0 or without a finite sum above 0 and
    for logits whose softmax is NaN, and TypeError for a total_count that is not whole and for other
    types. Source: PyTorch's torch.distributions.Multinomial.

    >>> import tilewright as tw
    >>> tw.distributions.Multinomial(8, tw.asarray([1.0, 3.0])).mean.tolist()
    [2.0, 6.0]
    """

    _support = Support(
        "whole numbers from 0 that add up to total_count",
        lambda d, x: (
            ((x >= 0) & (x == tw.floor(x))).all(axis=-1) & (x.sum(axis=-1) == d.total_count)
        ),
    )

    def __init__(
        self,
        total_count: int = 1,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self.total_count = operator.index(total_count)
        if self.total_count < 0:
            raise ValueError(f"Multinomial: total_count must be at least 0, got {total_count}")
        self._validate = validate_args
        self._classes = Categorical(probs, logits, validate_args)
        self.batch_shape = self._classes.batch_shape
        self.event_shape = self.probs.shape[-1:]

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._classes.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities, whose sum is 1."""
        return self._classes.probs

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        if self.total_count < self.event_shape[0]:
            return self._draw_by_trials(shape, generator)
        p = self.probs.detach()
        behind = p.flip(-1).cumsum(-1).flip(-1)  # with the class itself, so that the last has all
        shares = (p / behind).clip(0.0, 1.0)
        shares = tw.where(p > 0, shares, tw.where(p == 0, 0.0, math.nan))  # NaN is refused
        left = tw.full(shape[:-1], float(self.total_count), dtype=p.dtype, device=p.device)
        counts = []
        for i in range(self.event_shape[0]):
            counts.append(tw.binomial(left, shares[..., i], generator=generator))
            left = left - counts[-1]
        return tw.stack(counts, axis=-1)

    def _draw_by_trials(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        drawn = self._classes._draw((self.total_count, *shape[:-1]), generator)
        chosen = tw.moveaxis(drawn, 0, -1)
        ones = tw.ones(chosen.shape, dtype=self.probs.dtype, device=chosen.device)
        counts = tw.zeros(shape, dtype=ones.dtype, device=ones.device)
        return counts.scatter_add(-1, chosen, ones)

    def _log_prob(self, value: Tensor) -> Tensor:
        ways = tw.lgamma(value.sum(axis=-1) + 1) - tw.lgamma(value + 1).sum(axis=-1)
        never = (value == 0) & (self.logits == -math.inf)
        return ways + (value * tw.where(never, 0.0, self.logits)).sum(axis=-1)

    def entropy(self) -> Tensor:
        n = float(self.total_count)
        in_order = n * self._classes.entropy() - math.lgamma(n + 1)
        each = Binomial(n, self.probs, validate_args=False)
        return in_order + each.expected(lambda count: tw.lgamma(count + 1)).sum(axis=-1)
