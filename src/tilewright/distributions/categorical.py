"""One of several classes, by its number or as a row with a 1 at its place."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import tilewright as tw
from tilewright import Tensor
from tilewright._arrays.broadcasting import broadcast_shapes
from tilewright.distributions.distribution import Distribution, Size, Support, clamped, one_of


def _are_weights(_: Any, x: Tensor) -> Tensor:
    if x.ndim == 0:  # refused in other words
        return x >= 0
    total = x.sum(axis=-1, keepdims=True)
    return (x >= 0) & (total > 0) & (total < math.inf)


def _have_a_softmax(_: Any, x: Tensor) -> Tensor:
    if x.ndim == 0:
        return x < math.inf
    return (x < math.inf) & (x > -math.inf).any(axis=-1, keepdims=True)


class Categorical(Distribution):
    """Classes 0, 1, ... with probabilities that are proportional to `probs`, or to exp(logits).

    Shapes: probs or logits (..., classes), of which (...) is the batch. Types: floating; draws are
    int64. Result: log-probabilities of the same type.
    Raises ValueError unless one of both is given, for numbers without an axis and, where they are
    on the CPU, for probs below 0 or without a finite sum above 0 and for logits whose softmax is
    NaN, and TypeError for other types. Source: PyTorch's torch.distributions.Categorical.

    >>> import tilewright as tw
    >>> policy = tw.distributions.Categorical(logits=tw.zeros(4))
    >>> round(policy.log_prob(tw.asarray(2)).exp().item(), 4)
    0.25
    """

    _support = Support(
        "classes, from 0 to their number less 1",
        lambda d, x: (x >= 0) & (x < getattr(d, d._given).shape[-1]),
    )
    _domains: ClassVar = {
        "probs": Support("at least 0, with a finite sum above 0", _are_weights),
        "logits": Support("numbers below infinity, not all of them -infinity", _have_a_softmax),
    }
    probs_given: Tensor  # the one or the other
    logits_given: Tensor

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._given = one_of(self, validate_args, probs, logits)
        x = getattr(self, self._given)
        if x.ndim == 0:
            raise ValueError("Categorical: expected probabilities (..., classes), got a number")
        self.batch_shape = x.shape[:-1]

    @property
    def logits(self) -> Tensor:
        """Logarithms of the probabilities."""
        if self._given == "logits_given":
            return self.logits_given.log_softmax(-1)
        return clamped(self.probs, self._given_type).log()

    @property
    def probs(self) -> Tensor:
        """Probabilities, whose sum is 1."""
        if self._given == "logits_given":
            return self.logits_given.softmax(-1)
        return self.probs_given / self.probs_given.sum(axis=-1, keepdims=True)

    @property
    def mode(self) -> Tensor:
        return self.probs.argmax(axis=-1)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        p = self.probs
        count = math.prod(shape[: len(shape) - len(self.batch_shape)])
        rows = p.reshape((-1, p.shape[-1]))
        if not count or not rows.shape[0]:
            return tw.zeros(shape, dtype=tw.int64, device=p.device)
        drawn = tw.multinomial(rows, count, replacement=True, generator=generator)
        return drawn.mT.reshape(shape)

    def _log_prob(self, value: Tensor) -> Tensor:
        if not tw.isdtype(value.dtype, "integral"):
            raise TypeError(f"Categorical: values are classes, integers, got {value.dtype}")
        shape = broadcast_shapes(value.shape, self.batch_shape)
        logits = tw.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        index = tw.broadcast_to(value, shape).unsqueeze(-1)
        return logits.gather(-1, index).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = self.logits
        return -(self.probs * tw.where(logits == -math.inf, 0.0, logits)).sum(axis=-1)


class OneHotCategorical(Distribution):
    """`Categorical` whose draws are rows with a 1 at the place of the class and 0s elsewhere.

    Shapes: probs or logits (..., classes), of which (...) is the batch and (classes,) the event.
    Types: floating. Result: the same type.
    Raises ValueError unless one of both is given, for numbers without an axis and, where they are
    on the CPU, for probs below 0 or without a finite sum above 0 and for logits whose softmax is
    NaN, and TypeError for other types. Source: PyTorch's torch.distributions.OneHotCategorical.

    >>> import tilewright as tw
    >>> tw.distributions.OneHotCategorical(tw.asarray([0.0, 1.0])).sample().tolist()
    [0.0, 1.0]
    """

    _support = Support(
        "rows of 0 with a single 1",
        lambda _, x: ((x == 0) | (x == 1)).all(axis=-1) & (x.sum(axis=-1) == 1),
    )

    def __init__(
        self,
        probs: Tensor | None = None,
        logits: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
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
        return self.probs

    @property
    def mode(self) -> Tensor:
        return self._rows(self._classes.mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return self._rows(self._classes._draw(shape[:-1], generator))

    def _rows(self, chosen: Tensor) -> Tensor:
        """Rows with a 1 at the places of classes."""
        classes = tw.arange(self.event_shape[0], dtype=tw.int64, device=chosen.device)
        return (chosen.unsqueeze(-1) == classes).astype(self.probs.dtype)

    def _log_prob(self, value: Tensor) -> Tensor:
        logs = self._classes._log_prob(value.argmax(axis=-1))
        return tw.where(tw.isnan(value).any(axis=-1), math.nan, logs)

    def entropy(self) -> Tensor:
        return self._classes.entropy()


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose draws have the gradient of the probabilities.

    Shapes: as OneHotCategorical. Types: floating. Result: the same type.
    Raises ValueError and TypeError as OneHotCategorical does. Source: PyTorch's
    torch.distributions.OneHotCategoricalStraightThrough.

    >>> import tilewright as tw
    >>> p = tw.tensor([0.0, 1.0], requires_grad=True)
    >>> tw.distributions.OneHotCategoricalStraightThrough(p).rsample().requires_grad
    True
    """

    has_rsample = True

    def rsample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        p = self.probs
        return self.sample(sample_shape, generator=generator) + (p - p.detach())
