"""What distributions have in common: shapes, draws, and parameters that are checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor

Number = Tensor | float
Size = Sequence[int] | int


class Distribution:
    """The base: `batch_shape` is that of the parameters, `event_shape` that of one draw.

    `sample` draws without a gradient, `rsample` with one, where there is one. Both raise TypeError
    or ValueError for sizes that are none. `generator` takes the place of the default one.
    """

    has_rsample = False
    batch_shape: tuple[int, ...] = ()
    event_shape: tuple[int, ...] = ()

    def sample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        """Draws of shape (*sample_shape, *batch_shape, *event_shape)."""
        with tw.no_grad():
            return self._draw(self._shape(sample_shape), generator)

    def rsample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        """The same as a function of the parameters, through which gradients go."""
        if not self.has_rsample:
            raise NotImplementedError(f"{type(self).__name__}: draws have no gradient; use sample")
        return self._draw(self._shape(sample_shape), generator)

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or the probability of values, which broadcast."""
        raise NotImplementedError(f"{type(self).__name__}: log_prob")

    def entropy(self) -> Tensor:
        """Of each distribution of the batch, in nats."""
        raise NotImplementedError(f"{type(self).__name__}: entropy")

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError(f"{type(self).__name__}: mean")

    @property
    def variance(self) -> Tensor:
        """The expected squared distance from the mean."""
        raise NotImplementedError(f"{type(self).__name__}: variance")

    @property
    def stddev(self) -> Tensor:
        """The square root of the variance."""
        return self.variance.sqrt()

    @property
    def mode(self) -> Tensor:
        """The likeliest value."""
        raise NotImplementedError(f"{type(self).__name__}: mode")

    def perplexity(self) -> Tensor:
        """exp(entropy): how many outcomes of the same probability would have it."""
        return self.entropy().exp()

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: sample")

    def _shape(self, sample_shape: Size) -> tuple[int, ...]:
        size = (sample_shape,) if isinstance(sample_shape, int) else tuple(sample_shape)
        return (*size, *self.batch_shape, *self.event_shape)

    def _set(self, **parameters: Number) -> None:
        """Parameters as tensors of one shape."""
        name = type(self).__name__
        given = next((x for x in parameters.values() if isinstance(x, Tensor)), None)
        dtype = tw.get_default_dtype() if given is None else given.dtype
        tensors: list[Tensor] = []
        for key, value in parameters.items():
            if isinstance(value, bool) or not isinstance(value, (Tensor, int, float)):
                raise TypeError(
                    f"{name}: {key} is a tensor or a number, got {type(value).__name__}"
                )
            x = value if isinstance(value, Tensor) else tw.asarray(value, dtype=dtype)
            if not tw.is_floating_point(x):
                raise TypeError(f"{name}: {key} is floating, got {x.dtype}")
            tensors.append(x)
        together = tw.broadcast_tensors(*tensors)
        for key, x in zip(parameters, together, strict=True):
            setattr(self, key, x)
        self.batch_shape = together[0].shape

    def _check(self, key: str, holds: Callable[[Tensor], Tensor], told: str) -> None:
        x = getattr(self, key).detach()
        if x.device == "cpu" and not bool(holds(x).all()):
            raise ValueError(f"{type(self).__name__}: {key} must be {told}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(batch {self.batch_shape}, event {self.event_shape})"


class LocationScale(Distribution):
    """Of one form, moved by `loc`, its likeliest value, and stretched by `scale`."""

    has_rsample = True
    loc: Tensor
    scale: Tensor

    def __init__(self, loc: Number, scale: Number) -> None:
        self._set(loc=loc, scale=scale)
        self._check("scale", lambda x: x > 0, "above 0")

    @property
    def mode(self) -> Tensor:
        return self.loc


def one_of(distribution: Any, probs: Number | None, logits: Number | None) -> str:
    """Keeps the one that is given, checked; gives its attribute's name."""
    name = type(distribution).__name__
    if probs is not None and logits is None:
        distribution._set(probs_given=probs)
        known = (lambda x: (x >= 0) & (x <= 1)) if name == "Bernoulli" else (lambda x: x >= 0)
        told = "from 0 to 1" if name == "Bernoulli" else "at least 0"
        distribution._check("probs_given", known, told)
        return "probs_given"
    if probs is None and logits is not None:
        distribution._set(logits_given=logits)
        return "logits_given"
    raise ValueError(f"{name}: give probs or logits, one of them")
