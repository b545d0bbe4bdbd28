"""Distributions of what transforms make of other distributions' draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import Distribution, Number, Size, Support, draws
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

    _computed_in = None
    _support = Support("what transforms make of the base's", lambda d, x: d._made(x))

    def __init__(
        self,
        base_distribution: Distribution,
        transforms: Transform | Sequence[Transform],
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(base_distribution, Distribution):
            kind = type(base_distribution).__name__
            raise TypeError(f"TransformedDistribution: expected a distribution, got {kind}")
        parts = [transforms] if isinstance(transforms, Transform) else list(transforms)
        for part in parts:
            if not isinstance(part, Transform):
                kind = type(part).__name__
                raise TypeError(f"TransformedDistribution: expected transforms, got {kind}")
        self._validate = validate_args
        self.base_dist = base_distribution
        self.transforms = parts
        self.has_rsample = base_distribution.has_rsample
        self.batch_shape = base_distribution.batch_shape
        self.event_shape = base_distribution.event_shape

    def sample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        with tw.no_grad():
            x = draws(self.base_dist.sample, sample_shape, generator)
            return ComposeTransform(self.transforms)(x)

    def rsample(self, sample_shape: Size = (), *, generator: Any = None) -> Tensor:
        x = draws(self.base_dist.rsample, sample_shape, generator)
        return ComposeTransform(self.transforms)(x)

    def _log_prob(self, value: Tensor) -> Tensor:
        whole = ComposeTransform(self.transforms)
        x = whole.inv(value)
        slopes = whole.log_abs_det_jacobian(x, value)
        if self.event_shape:
            slopes = slopes.sum(axis=tuple(range(-len(self.event_shape), 0)))
        return self.base_dist.log_prob(x) - slopes

    def _cdf(self, value: Tensor) -> Tensor:
        whole = ComposeTransform(self.transforms)
        return _turned(self.base_dist.cdf(whole.inv(value)), whole.sign)

    def icdf(self, value: Tensor) -> Tensor:
        whole = ComposeTransform(self.transforms)
        return whole(self.base_dist.icdf(_turned(value, whole.sign)))

    def _made(self, value: Tensor) -> Tensor:
        """Whether values have an inverse, in the support of the base."""
        x = ComposeTransform(self.transforms).inv(value)
        return tw.isfinite(x).all() & self.base_dist._support.holds(self.base_dist, x).all()


def _turned(share: Tensor, sign: Number) -> Tensor:
    """A probability, or where the transforms fall the one of the other side."""
    if isinstance(sign, Tensor):
        return tw.where(sign < 0, 1 - share, share)
    return 1 - share if sign < 0 else share


class LogNormal(TransformedDistribution):
    """Distributions whose logarithm is normal with mean `loc` and deviation `scale`.

    Shapes: loc and scale broadcast to the batch. Types: floating. Result: the common type.
    Raises ValueError for a loc that is NaN and scales that are not above 0, where they are on the
    CPU, and TypeError for other types. Source: PyTorch's torch.distributions.LogNormal.

    >>> import tilewright as tw
    >>> round(tw.distributions.LogNormal(0.0, 1.0).mean.item(), 4)
    1.6487
    """

    base_dist: Normal

    def __init__(self, loc: Number, scale: Number, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args), ExpTransform(), validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of logarithms."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of logarithms."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return tw.exp(self.loc + self.scale.square() / 2)

    @property
    def mode(self) -> Tensor:
        return tw.exp(self.loc - self.scale.square())

    @property
    def variance(self) -> Tensor:
        squares = self.scale.square()
        return tw.expm1(squares) * tw.exp(2 * self.loc + squares)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc
