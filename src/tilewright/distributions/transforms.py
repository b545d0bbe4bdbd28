"""Functions that turn draws into others, with their inverse and the logarithm of their slope."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tilewright as tw
from tilewright import Tensor
from tilewright.distributions.distribution import above_0, between_0_and_1

Number = Tensor | float


class Transform:
    """The base: called it gives y, `inv` gives x back.

    `log_abs_det_jacobian` of both is the logarithm of the slope, by element. A class of one's own
    defines `_call`, `_inverse`, `log_abs_det_jacobian` and, for distribution functions, `sign`.
    """

    def __init__(self, cache_size: int = 0) -> None:
        """`cache_size` is taken and changes nothing: draws have densities without a memory."""

    def __call__(self, x: Tensor) -> Tensor:
        return self._call(x)

    def inv(self, y: Tensor) -> Tensor:
        """The x that y is made of."""
        return self._inverse(y)

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__}: _call")

    def _inverse(self, y: Tensor) -> Tensor:
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

    def __init__(self, loc: Number, scale: Number, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
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
    """y = exp(x), between the ends of a type above 0. Source: torch.distributions.ExpTransform."""

    sign = 1.0

    def _call(self, x: Tensor) -> Tensor:
        low, high = (math.log(end) for end in above_0(x.dtype))
        eps = float(tw.finfo(x.dtype).eps)  # so that what is rounded stays inside
        return x.clip(low * (1 - eps), high * (1 - eps)).exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)), never 0 or 1. Source: torch.distributions.SigmoidTransform."""

    sign = 1.0

    def _call(self, x: Tensor) -> Tensor:
        return x.sigmoid().clip(*between_0_and_1(x.dtype))

    def _inverse(self, y: Tensor) -> Tensor:
        return tw.log(y) - tw.log1p(-y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -tw.softplus(-x) - tw.softplus(x)


class TanhTransform(Transform):
    """y = tanh(x), never -1 or 1. Source: torch.distributions.TanhTransform."""

    sign = 1.0

    def _call(self, x: Tensor) -> Tensor:
        _, most = between_0_and_1(x.dtype)
        return x.tanh().clip(-most, most)

    def _inverse(self, y: Tensor) -> Tensor:
        return tw.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2) - x - tw.softplus(-2 * x))


class ComposeTransform(Transform):
    """One transform after the other. Source: torch.distributions.ComposeTransform."""

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = list(parts)

    def _call(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y: Tensor) -> Tensor:
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
