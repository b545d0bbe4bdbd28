"""Choices among classes made smooth, so that draws have gradients."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.bernoulli import Bernoulli
from tilewright.distributions.categorical import Categorical
from tilewright.distributions.distribution import INSIDE_UNIT, SHARES, Distribution, Number


class RelaxedOneHotCategorical(Distribution):
    """Shares near one of several classes: the softmax of logits with Gumbel noise.

    The lower the temperature, the nearer. Source: Jang, Gu and Poole, "Categorical
    reparameterization with Gumbel-softmax" (2017), as
    torch.distributions.RelaxedOneHotCategorical has it.

    Shapes: probs or logits (..., classes), of which (...) is the batch; temperature a number.
    Types: floating. Result: the same type.
    Raises ValueError unless one of both is given, for numbers without an axis and, where they are
    on the CPU, for probs below 0 or without a finite sum above 0 and for logits whose softmax is
    NaN, and TypeError for other types.

    >>> import tilewright as tw
    >>> d = tw.distributions.RelaxedOneHotCategorical(0.5, logits=tw.zeros(3))
    >>> round(d.rsample().sum().item(), 4)
    1.0
    """

    has_rsample = True

    _support = SHARES

    def __init__(
        self,
        temperature: Number,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._validate = validate_args
        self._classes = Categorical(probs, logits, validate_args)
        self.temperature = temperature
        self.batch_shape = self._classes.batch_shape
        self.event_shape = self.logits.shape[-1:]

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        return self._classes.logits

    @property
    def probs(self) -> Tensor:
        """Probabilities, whose sum is 1."""
        return self._classes.probs

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        noise = _logarithms(self.logits, shape, generator)
        return tw.softmax((self.logits - tw.log(-noise)) / self.temperature, -1)

    def _log_prob(self, value: Tensor) -> Tensor:
        n, t = self.event_shape[0], tw.asarray(self.temperature, dtype=value.dtype)
        scores = self.logits - t * value.log()
        scores = (scores - tw.logsumexp(scores, axis=-1, keepdims=True)).sum(axis=-1)
        return scores - value.log().sum(axis=-1) + math.lgamma(n) + (n - 1) * t.log()


class RelaxedBernoulli(Distribution):
    """Numbers near 0 or 1: the sigmoid of logits with logistic noise.

    The lower the temperature, the nearer. Source: Maddison, Mnih and Teh, "The concrete
    distribution" (2017), as torch.distributions.RelaxedBernoulli has it.

    Shapes: probs or logits are the batch; temperature a number. Types: floating. Result: the same
    type.
    Raises ValueError unless one of both is given and for probs outside [0, 1] and logits that are
    NaN, where they are on the CPU, and TypeError for other types.

    >>> import tilewright as tw
    >>> 0 < tw.distributions.RelaxedBernoulli(0.5, 0.3).rsample().item() < 1
    True
    """

    has_rsample = True

    _support = INSIDE_UNIT

    def __init__(
        self,
        temperature: Number,
        probs: Number | None = None,
        logits: Number | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._validate = validate_args
        self._outcome = Bernoulli(probs, logits, validate_args)
        self.temperature = temperature
        self.batch_shape = self._outcome.batch_shape

    @property
    def logits(self) -> Tensor:
        """log(probs / (1 - probs))."""
        return self._outcome.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of 1, without the noise."""
        return self._outcome.probs

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        lower = _logarithms(self.logits, shape, generator)
        noise = lower - tw.log(-tw.expm1(lower))
        return tw.sigmoid((self.logits + noise) / self.temperature)

    def _log_prob(self, value: Tensor) -> Tensor:
        t = tw.asarray(self.temperature, dtype=value.dtype)
        place = value.log() - tw.log1p(-value)
        apart = self.logits - t * place
        of_place = t.log() + apart - 2 * tw.softplus(apart)
        return of_place - value.log() - tw.log1p(-value)


def _logarithms(like: Tensor, shape: tuple[int, ...], generator: Any) -> Tensor:
    """Of uniform numbers that are neither 0 nor 1."""
    u = tw.rand(*shape, dtype=like.dtype, device=like.device, generator=generator)
    least = float(tw.finfo(like.dtype).eps) / 2
    return tw.clip(u, least, 1 - least).log()
