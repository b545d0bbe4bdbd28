"""Axes of a batch as one event."""

from __future__ import annotations

from typing import Any

from tilewright import Tensor
from tilewright.distributions.distribution import Distribution, Size, Support, draws


class Independent(Distribution):
    """The last axes of a batch as one event, whose log-probabilities add up.

    Raises TypeError for what is no distribution and ValueError for more axes than the batch has.
    Source: PyTorch's torch.distributions.Independent.

    >>> import tilewright as tw
    >>> d = tw.distributions.Independent(tw.distributions.Normal(tw.zeros(2, 3), 1.0), 1)
    >>> d.batch_shape, d.event_shape, d.log_prob(tw.zeros(2, 3)).shape
    ((2,), (3,), (2,))
    """

    _computed_in = None
    _support = Support(
        "in the base's support", lambda d, x: d.base_dist._support.holds(d.base_dist, x)
    )

    def __init__(
        self,
        base_distribution: Distribution,
        reinterpreted_batch_ndims: int,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(base_distribution, Distribution):
            kind = type(base_distribution).__name__
            raise TypeError(f"Independent: expected a distribution, got {kind}")
        batch, n = base_distribution.batch_shape, reinterpreted_batch_ndims
        if not 0 <= n <= len(batch):
            raise ValueError(f"Independent: {n} axes of a batch {batch}")
        self._validate = validate_args
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = n
        self.has_rsample = base_distribution.has_rsample
        self.batch_shape = batch[: len(batch) - n]
        self.event_shape = (*batch[len(batch) - n :], *base_distribution.event_shape)

    @property
    def mean(self) -> Tensor:
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def sample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        return draws(self.base_dist.sample, sample_shape, generator)

    def rsample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        return draws(self.base_dist.rsample, sample_shape, generator)

    def _log_prob(self, value: Tensor) -> Tensor:
        return self.summed(self.base_dist.log_prob(value))

    def entropy(self) -> Tensor:
        return self.summed(self.base_dist.entropy())

    def summed(self, x: Tensor) -> Tensor:
        """Over the axes of an event."""
        n = self.reinterpreted_batch_ndims
        return x.sum(axis=tuple(range(-n, 0))) if n else x
