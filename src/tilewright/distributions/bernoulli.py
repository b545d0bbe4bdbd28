"""One of two outcomes."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright._arrays.broadcasting import broadcast_tensors
from tilewright.distributions.distribution import (
    REAL,
    UNIT,
    Distribution,
    Number,
    Support,
    clamped,
    one_of,
)


class Chances(Distribution):
    """The base of what trials make that succeed with probability `probs`.

    `logits` are log(probs / (1 - probs)). Logarithms are those of `clamped` probabilities.
    """

    _domains: ClassVar = {"probs": UNIT, "logits": REAL}
    _given: str
    probs_given: Tensor  # the one or the other
    logits_given: Tensor

    @property
    def probs(self) -> Tensor:
        """The probabilities of success."""
        return self.logits_given.sigmoid() if self._given == "logits_given" else self.probs_given

    @property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))."""
        if self._given == "logits_given":
            return self.logits_given
        p = clamped(self.probs_given, self._given_type)
        return tw.log(p) - tw.log1p(-p)

    def log_chance(self, successes: Number, failures: Tensor) -> Tensor:
        """The logarithm of the probability of so many of both, in one order."""
        success, failure = self.logarithms()
        return success * successes + failure * failures

    def logarithms(self) -> tuple[Tensor, Tensor]:
        """Of the probabilities of success and of failure."""
        if self._given == "logits_given":
            return tw.logsigmoid(self.logits_given), tw.logsigmoid(-self.logits_given)
        p = clamped(self.probs_given, self._given_type)
        return tw.log(p), tw.log1p(-p)


class Bernoulli(Chances):
    """1 with probability `probs`, else 0; `logits` are log(probs / (1 - probs)).

    Shapes: probs or logits are the batch. Types: floating. Result: the same type.
    Raises ValueError unless one of both is given and for probs outside [0, 1] and logits that are
    NaN, where they are on the CPU, and TypeError for other types. Source: PyTorch's
    torch.distributions.Bernoulli.

    >>> import tilewright as tw
    >>> tw.distributions.Bernoulli(0.25).variance.item()
    0.1875
    """

    _support = Support("0 or 1", lambda _, x: (x == 0) | (x == 1))

    def __init__(
        self,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._given = one_of(self, validate_args, probs, logits)

    @property
    def mean(self) -> Tensor:
        return self.probs

    @property
    def mode(self) -> Tensor:
        p = self.probs
        return tw.where(p == 0.5, math.nan, (p > 0.5).astype(p.dtype))

    @property
    def variance(self) -> Tensor:
        p = self.probs
        return p * (1 - p)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return tw.bernoulli(self.probs, shape, generator=generator)

    def _log_prob(self, value: Tensor) -> Tensor:
        if self._given == "probs_given":
            return self.log_chance(value, 1 - value)
        x, t = broadcast_tensors(self.logits, value)
        return -tw.binary_cross_entropy_with_logits(x, t.astype(x.dtype), reduction="none")

    def entropy(self) -> Tensor:
        return -self.log_chance(self.probs, 1 - self.probs)
