"""One of two outcomes."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import Distribution, Number, one_of


class Bernoulli(Distribution):
    """1 with probability `probs`, else 0; `logits` are log(probs / (1 - probs)).

    Shapes: probs or logits are the batch. Types: floating. Result: the same type.
    Raises ValueError unless one of both is given and for probs outside [0, 1], where they are on
    the CPU, and TypeError for other types. Source: PyTorch's torch.distributions.Bernoulli.

    >>> import tilewright as tw
    >>> tw.distributions.Bernoulli(0.25).variance.item()
    0.1875
    """

    probs_given: Tensor  # the one or the other
    logits_given: Tensor

    def __init__(self, probs: Number | None = None, logits: Number | None = None) -> None:
        self._given = one_of(self, probs, logits)

    @property
    def probs(self) -> Tensor:
        """The probabilities of 1."""
        return self.logits_given.sigmoid() if self._given == "logits_given" else self.probs_given

    @property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))."""
        if self._given == "logits_given":
            return self.logits_given
        return tw.log(self.probs_given) - tw.log1p(-self.probs_given)

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

    def log_prob(self, value: Tensor) -> Tensor:
        if self._given == "probs_given":
            return tw.xlogy(value, self.probs) + tw.xlog1py(1 - value, -self.probs)
        x, t = tw.broadcast_tensors(self.logits, value)
        return -tw.binary_cross_entropy_with_logits(x, t.astype(x.dtype), reduction="none")

    def entropy(self) -> Tensor:
        p = self.probs
        return -tw.xlogy(p, p) - tw.xlog1py(1 - p, -p)
