"""Functions that turn draws into others, with their inverse and the logarithm of their slope."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor

Number = Tensor | float


class Transform:
    """The base: called it gives y, `inv` gives x back.

    `log_abs_det_jacobian` of both is the logarithm of the slope, by element.
    """

    def __call__(self, x: Tensor) -> Tensor:
        raise NotImplementedError(type(self).__name__)

    def inv(self, y: Tensor) -> Tensor:
        """The x that y is made of."""
        raise NotImplementedError(f"{type(self).__name__}: inv")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """log |dy / dx|."""
        raise NotImplementedError(f"{type(self).__name__}: log_abs_det_jacobian")

    @property
    def sign(self) -> Number:
        """The slope's, 1 or -1."""
        raise NotImplementedError(f"{type(self).__name__}: sign")


class AffineTransform(Transform):
    """y = loc + scale x, where scale is not 0. Source: torch.distributions.AffineTransform."""

    def __init__(self, loc: Number, scale: Number) -> None:
        self.loc, self.scale = loc, scale

    def __call__(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def inv(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            return tw.abs(self.scale).log() + tw.zeros_like(x)
        return tw.full_like(x, math.log(abs(self.scale)))

    @property
    def sign(self) -> Number:
        scale = self.scale
        return tw.sign(scale) if isinstance(scale, Tensor) else math.copysign(1.0, scale)


class ExpTransform(Transform):
    """y = exp(x). Source: torch.distributions.ExpTransform."""

    sign = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x.exp()

    def inv(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)). Source: torch.distributions.SigmoidTransform."""

    sign = 1.0

    def __call__(self, x: Tensor) -> Tensor:
        return x.sigmoid()

    def inv(self, y: Tensor) -> Tensor:
        return tw.log(y) - tw.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -tw.softplus(-x) - tw.softplus(x)


class TanhTransform(Transform):
    """y = tanh(x). Source: torch.distributions.TanhTransform."""

    sign = 1.0

    def __init__(self, cache_size: int = 0) -> None:
        """`cache_size` is taken and changes nothing: `rsample` and `log_prob` need no memory."""

    def __call__(self, x: Tensor) -> Tensor:
        return x.tanh()

    def inv(self, y: Tensor) -> Tensor:
        return tw.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - tw.softplus(-2 * x))


class ComposeTransform(Transform):
    """One transform after the other. Source: torch.distributions.ComposeTransform."""

    def __init__(self, parts: Sequence[Transform]) -> None:
        self.parts = list(parts)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def inv(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        total = tw.zeros_like(x)
        for part in self.parts:
            after = part(x)
            total = total + part.log_abs_det_jacobian(x, after)
            x = after
        return total

    @property
    def sign(self) -> Number:
        return math.prod((part.sign for part in self.parts), start=1.0)
