"""The normal distribution's shares and places, and the scaled error function below them."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names
from tilewright.autograd import Function
from tilewright.special import polynomials
from tilewright.special.checks import real_numbers, wide
from tilewright.special.polynomials import polynomial

_HALF_ROOT = math.sqrt(0.5)


@other_names
def erfcx(x: Tensor) -> Tensor:
    """e^(x^2) erfc(x), the complement of the error function without its decay.

    Within 5 units in the last place of float64 from 0 on, and rounded once to narrower types; below
    0 it grows with e^(x^2), and the error with x^2.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.erfcx.

    >>> import tilewright as tw
    >>> round(tw.special.erfcx(tw.asarray(100.0)).item(), 6)
    0.005642
    """
    result: Tensor = _Erfcx.apply(real_numbers("erfcx", x), 0)
    return result


@other_names
def ndtr(x: Tensor) -> Tensor:
    """The share of the standard normal distribution below x.

    Within 3 units in the last place of float64, far below 0 as well, and rounded once to narrower
    types.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.ndtr.

    >>> import tilewright as tw
    >>> tw.special.ndtr(tw.asarray([0.0, 40.0])).tolist()
    [0.5, 1.0]
    """
    result: Tensor = _Share.apply(real_numbers("ndtr", x))
    return result


@other_names
def log_ndtr(x: Tensor) -> Tensor:
    """The logarithm of `ndtr`, which stays finite where that is 0.

    Within 3 units in the last place of float64 up to 0, and rounded once to narrower types; above,
    where it comes near 0, the error grows with x^2.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.log_ndtr.

    >>> import tilewright as tw
    >>> round(tw.special.log_ndtr(tw.asarray(-100.0)).item(), 2)
    -5005.52
    """
    result: Tensor = _LogShare.apply(real_numbers("log_ndtr", x))
    return result


@other_names
def ndtri(x: Tensor) -> Tensor:
    """The place below which a share x of the standard normal distribution lies, `ndtr`'s inverse.

    Within 5 units in the last place of float64, and rounded once to narrower types. Infinite at 0
    and 1, NaN outside.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.ndtri.

    >>> import tilewright as tw
    >>> round(tw.special.ndtri(tw.asarray(0.975)).item(), 4)
    1.96
    """
    result: Tensor = _Place.apply(real_numbers("ndtri", x))
    return result


# ---- each with its gradient ----


class _Erfcx(Function):
    """The derivative of an order up to 2."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, order: int) -> Tensor:
        ctx.save_for_backward(x)
        ctx.order = order
        return (_scaled, _scaled_slope, _scaled_curve)[order](wide(x)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        (x,) = ctx.saved_tensors
        if ctx.order < 2:
            slope = _Erfcx.apply(x, ctx.order + 1)
        else:
            slope = 4 * _Erfcx.apply(x, 1) + 2 * x * _Erfcx.apply(x, 2)
        return g * slope, None


class _Share(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        v = wide(x)
        # GELU is x times the share, with the rounding of x / sqrt(2) made good in the tail.
        tail = tw.clip(v, -50.0, -1.0)
        y = tw.where(v < -1, tw.gelu(tail) / tail, 0.5 * tw.erfc(v * -_HALF_ROOT))
        return y.astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        of_x: Tensor = g * _Density.apply(x)
        return of_x


class _Density(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        density = tw.exp(tw.square(wide(x)) * -0.5) * (1 / math.sqrt(2 * math.pi))
        return density.astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        of_x: Tensor = g * (-x * _Density.apply(x))
        return of_x


class _LogShare(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        v = wide(x)
        tail = tw.minimum(v, -1.0)
        below = tw.log(_scaled(tail * -_HALF_ROOT) / 2) - tw.square(tail) / 2
        above = tw.log1p(tw.erfc(v * _HALF_ROOT) * -0.5)
        return tw.where(v < -1, below, above).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        of_x: Tensor = g * _Hazard.apply(x)
        return of_x


class _Hazard(Function):
    """The density over the share below, h, whose derivative is -h (x + h)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return _hazard(wide(x)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        of_x: Tensor = g * _HazardSlope.apply(x)
        return of_x


class _HazardSlope(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        v = wide(x)
        # Below 0 x and h cancel: by the polynomials p of erfcx and q of its slope as -q / p^2.
        t = _argument(tw.maximum(v * -_HALF_ROOT, 0.0))
        below = polynomial(t, polynomials.ERFCX_SLOPE) / tw.square(polynomial(t, polynomials.ERFCX))
        h = _hazard(v)
        above = h * (tw.maximum(v, 0.0) + h)
        return -tw.where(v < 0, below / math.sqrt(math.pi), above).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        h, slope = _Hazard.apply(x), _HazardSlope.apply(x)
        of_x: Tensor = g * -(slope * (x + h) + h * (1 + slope))
        return of_x


class _Place(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return _place_of(wide(x)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        of_x: Tensor = g * _PlaceSlope.apply(x)
        return of_x


class _PlaceSlope(Function):
    """One over the density there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return _slope_of_place(wide(x)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        of_x: Tensor = g * (ndtri(x) * _PlaceSlope.apply(x)) * _PlaceSlope.apply(x)
        return of_x


# ---- in float64, outside the graph ----


def _hazard(v: Tensor) -> Tensor:
    return math.sqrt(2 / math.pi) / _scaled(v * -_HALF_ROOT)


def _place_of(v: Tensor) -> Tensor:
    share = tw.minimum(v, 1 - v)
    s = tw.sqrt(-2 * tw.log(tw.minimum(share, 0.02)))
    size = s * -polynomial((s - 5) / (s + 5), polynomials.NDTRI)
    size = tw.where(share == 0, math.inf, size)
    tail = tw.where(v < 0.5, -size, size)
    return tw.where(share < 0.02, tail, math.sqrt(2) * tw.erfinv(2 * v - 1))


def _slope_of_place(v: Tensor) -> Tensor:
    """By the share over the density, which erfcx gives: a power of the place would lose digits."""
    share = tw.minimum(v, 1 - v)
    ratio = math.sqrt(math.pi / 2) * _scaled(tw.abs(_place_of(v)) * _HALF_ROOT)
    slope = tw.where(share == 0, math.inf, ratio / share)
    return tw.where(share < 0, math.nan, slope)


def _scaled(x: Tensor) -> Tensor:
    """erfcx in float64; below 0 by erfc(x) = 2 - erfc(-x)."""
    size = tw.abs(x)
    y = polynomial(_argument(size), polynomials.ERFCX) / 2 / (0.5 + size)  # 2 size may overflow
    return tw.where(x < 0, 2 * tw.exp(tw.square(x)) - y, y)


def _argument(size: Tensor) -> Tensor:
    """The argument of the polynomials of erfcx and its derivatives."""
    return 1 - 5 / (size + 2.5)


def _scaled_slope(x: Tensor) -> Tensor:
    """erfcx', 2 x erfcx(x) - 2 / sqrt(pi), which cancels above 0."""
    size = tw.maximum(x, 0.0)
    above = polynomial(_argument(size), polynomials.ERFCX_SLOPE) / (1 + 2 * size) / (1 + 2 * size)
    return tw.where(x < 0, 2 * x * _scaled(x) - 2 / math.sqrt(math.pi), -above)


def _scaled_curve(x: Tensor) -> Tensor:
    size = tw.maximum(x, 0.0)
    above = polynomial(_argument(size), polynomials.ERFCX_CURVE)
    for _ in range(3):
        above = above / (1 + 2 * size)
    return tw.where(x < 0, 2 * _scaled(x) + 2 * x * _scaled_slope(x), above)
