"""Mixtures of distributions of one kind."""

from __future__ import annotations

from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.categorical import Categorical
from tilewright.distributions.distribution import Distribution, Size, Support, draws


class MixtureSameFamily(Distribution):
    """Draws of one of several distributions, which the last axis of a batch holds.

    Shapes: mixture_distribution of the batch (...), component_distribution of (..., n), where n is
    its number of classes. Types: floating. Result: the components' type.
    Raises TypeError for what is no Categorical and no distribution, and ValueError for numbers that
    differ. Source: PyTorch's torch.distributions.MixtureSameFamily.

    >>> import tilewright as tw
    >>> D = tw.distributions
    >>> mixed = D.MixtureSameFamily(
    ...     D.Categorical(tw.ones(2)), D.Normal(tw.asarray([-1.0, 1.0]), 1.0)
    ... )
    >>> mixed.variance.item()
    2.0
    """

    _computed_in = None
    _support = Support(
        "in the components' support",
        lambda d, x: d.component_distribution._support.holds(
            d.component_distribution, x.unsqueeze(d._place())
        ),
    )

    def __init__(
        self,
        mixture_distribution: Categorical,
        component_distribution: Distribution,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(mixture_distribution, Categorical):
            raise TypeError("MixtureSameFamily: the mixture is a Categorical")
        if not isinstance(component_distribution, Distribution):
            raise TypeError("MixtureSameFamily: the components are a distribution")
        shape, count = component_distribution.batch_shape, mixture_distribution.probs.shape[-1]
        if shape[-1:] != (count,):
            raise ValueError(f"MixtureSameFamily: {count} classes and a batch {shape}")
        self._validate = validate_args
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution
        self.batch_shape = shape[:-1]
        self.event_shape = component_distribution.event_shape

    @property
    def mean(self) -> Tensor:
        return self._weighted(self.component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        parts = self.component_distribution
        mean = self.mean.unsqueeze(self._place())
        return self._weighted(parts.variance + (parts.mean - mean).square())

    def _log_prob(self, value: Tensor) -> Tensor:
        of_parts = self.component_distribution.log_prob(value.unsqueeze(self._place()))
        shares = self.mixture_distribution.logits.log_softmax(-1)  # clamped ones add up to 1 again
        return tw.logsumexp(of_parts + shares, axis=-1)

    def _cdf(self, value: Tensor) -> Tensor:
        of_parts = self.component_distribution.cdf(value.unsqueeze(self._place()))
        return (of_parts * self.mixture_distribution.probs).sum(axis=-1)

    def sample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        shape, event = self._shape(sample_shape), len(self.event_shape)
        front = shape[: len(shape) - event]
        with tw.no_grad():
            drawn = draws(self.component_distribution.sample, sample_shape, generator)
            chosen = draws(self.mixture_distribution.sample, sample_shape, generator)
            index = tw.broadcast_to(chosen, front).reshape((*front, *([1] * (event + 1))))
            index = tw.broadcast_to(index, (*front, 1, *self.event_shape)) * 1
            return drawn.gather(len(front), index).squeeze(len(front))

    def _place(self) -> int:
        """Of the axis of components, from the end."""
        return -1 - len(self.event_shape)

    def _weighted(self, x: Tensor) -> Tensor:
        p = self.mixture_distribution.probs
        p = p.reshape((*p.shape, *(1 for _ in self.event_shape)))
        return (p * x).sum(axis=self._place())
