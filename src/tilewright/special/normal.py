"""The normal distribution's shares and places, and the scaled error function below them."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.autograd import Function
from tilewright.other_names import other_names
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
    result: Tensor = _Erfcx.apply(real_numbers("erfcx", x))
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
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return _scaled(wide(x)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope = x * 2 * erfcx(x) - 2 / math.sqrt(math.pi)
        of_x: Tensor = g * slope
        return of_x


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
        density = tw.exp(tw.square(x) * -0.5) * (1 / math.sqrt(2 * math.pi))
        return g * density


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
        return g * (math.sqrt(2 / math.pi) / erfcx(x * -_HALF_ROOT))


class _Place(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        v = wide(x)
        share = tw.minimum(v, 1 - v)
        s = tw.sqrt(-2 * tw.log(tw.minimum(share, 0.02)))
        size = s * -polynomial((s - 5) / (s + 5), polynomials.NDTRI)
        size = tw.where(share == 0, math.inf, size)
        tail = tw.where(v < 0.5, -size, size)
        y = tw.where(share < 0.02, tail, math.sqrt(2) * tw.erfinv(2 * v - 1)).astype(x.dtype)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return g * tw.exp(tw.square(y) * 0.5) * math.sqrt(2 * math.pi)


def _scaled(x: Tensor) -> Tensor:
    """erfcx in float64; below 0 by erfc(x) = 2 - erfc(-x)."""
    size = tw.abs(x)
    t = 1 - 5 / (size + 2.5)
    y = polynomial(t, polynomials.ERFCX) / (1 + 2 * size)
    return tw.where(x < 0, 2 * tw.exp(tw.square(x)) - y, y)
