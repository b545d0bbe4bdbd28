"""Distributions of what transforms make of other distributions' draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import Distribution, Number
from tilewright.distributions.normal import Normal
from tilewright.distributions.transforms import ComposeTransform, ExpTransform, Transform


class TransformedDistribution(Distribution):
    """The distribution of draws of another one after transforms, each by element.

    Shapes: those of the base, to which parameters of transforms broadcast. Types: floating. Result:
    the base's type. Raises TypeError for what is no distribution and no transform.
    Source: PyTorch's torch.distributions.TransformedDistribution.

    >>> import tilewright as tw
    >>> D = tw.distributions
    >>> squashed = D.TransformedDistribution(D.Normal(0.0, 1.0), [D.TanhTransform()])
    >>> round(squashed.log_prob(tw.asarray(0.5)).item(), 4)
    -0.7821
    """

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | Sequence[Transform]
    ) -> None:
        if not isinstance(base_distribution, Distribution):
            kind = type(base_distribution).__name__
            raise TypeError(f"TransformedDistribution: expected a distribution, got {kind}")
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for part in parts:
            if not isinstance(part, Transform):
                kind = type(part).__name__
                raise TypeError(f"TransformedDistribution: expected transforms, got {kind}")
        self.base_dist = base_distribution
        self.transforms = parts
        self.has_rsample = base_distribution.has_rsample
        self.batch_shape = base_distribution.batch_shape
        self.event_shape = base_distribution.event_shape

    def _draw(self, shape: tuple[int, ...], generator: Any) -> Tensor:
        return ComposeTransform(self.transforms)(self.base_dist._draw(shape, generator))

    def log_prob(self, value: Tensor) -> Tensor:
        whole = ComposeTransform(self.transforms)
        x = whole.inv(value)
        slopes = whole.log_abs_det_jacobian(x, value)
        if self.event_shape:
            slopes = slopes.sum(axis=tuple(range(-len(self.event_shape), 0)))
        return self.base_dist.log_prob(x) - slopes


class LogNormal(TransformedDistribution):
    """Distributions whose logarithm is normal with mean `loc` and deviation `scale`.

    Shapes: loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for scales that are not above 0, where they are on the CPU, and TypeError for
    other types. Source: PyTorch's torch.distributions.LogNormal.

    >>> import tilewright as tw
    >>> round(tw.distributions.LogNormal(0.0, 1.0).mean.item(), 4)
    1.6487
    """

    def __init__(self, loc: Number, scale: Number) -> None:
        base = Normal(loc, scale)
        super().__init__(base, ExpTransform())
        self.loc, self.scale = base.loc, base.scale

    @property
    def mean(self) -> Tensor:
        return tw.exp(self.loc + self.scale.square() / 2)

    @property
    def variance(self) -> Tensor:
        squares = self.scale.square()
        return tw.expm1(squares) * tw.exp(2 * self.loc + squares)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
