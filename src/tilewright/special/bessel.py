"""Modified Bessel functions of the first kind, I0 and I1, and the same without their growth.

By polynomials up to 8, and beyond by those that sqrt(x) e^-x makes of them; computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright.autograd import Function
from tilewright.other_names import other_names
from tilewright.special import polynomials
from tilewright.special.checks import real_numbers, wide
from tilewright.special.polynomials import polynomial


@other_names
def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 0.

    Within 4 units in the last place of float64, and rounded once to narrower types.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.i0.

    >>> import tilewright as tw
    >>> [round(y, 6) for y in tw.special.i0(tw.asarray([0.0, 1.0])).tolist()]
    [1.0, 1.266066]
    """
    result: Tensor = _I0.apply(real_numbers("i0", x))
    return result


@other_names
def i0e(x: Tensor) -> Tensor:
    """e^-|x| I0(x), which neither grows nor overflows.

    Within 4 units in the last place of float64, and rounded once to narrower types.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.i0e.
    """
    result: Tensor = _I0e.apply(real_numbers("i0e", x))
    return result


@other_names
def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 1, the derivative of I0.

    Within 4 units in the last place of float64, and rounded once to narrower types.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.i1.
    """
    result: Tensor = _I1.apply(real_numbers("i1", x))
    return result


@other_names
def i1e(x: Tensor) -> Tensor:
    """e^-|x| I1(x), which neither grows nor overflows.

    Within 4 units in the last place of float64, and rounded once to narrower types.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.i1e.
    """
    result: Tensor = _I1e.apply(real_numbers("i1e", x))
    return result


# ---- each with its gradient ----


class _I0(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        size = tw.abs(wide(x))
        return tw.where(size <= 8, _near0(size), _grown(size, polynomials.I0_FAR)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * i1(x)


class _I0e(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        size = tw.abs(wide(x))
        near = _near0(size) * tw.exp(-size)
        return tw.where(size <= 8, near, _far(size, polynomials.I0_FAR)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * (i1e(x) - tw.sign(x) * i0e(x))


class _I1(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        size = tw.abs(wide(x))
        y = tw.where(size <= 8, _near1(size), _grown(size, polynomials.I1_FAR))
        return tw.copysign(y, wide(x)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        zero = x == 0
        divisor = tw.where(zero, 1, x)
        return g * tw.where(zero, 0.5, i0(x) - i1(divisor) / divisor)


class _I1e(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        size = tw.abs(wide(x))
        near = _near1(size) * tw.exp(-size)
        y = tw.where(size <= 8, near, _far(size, polynomials.I1_FAR))
        return tw.copysign(y, wide(x)).astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        zero = x == 0
        divisor = tw.where(zero, 1, x)
        slope = i0e(x) - i1e(divisor) * (tw.sign(divisor) + 1 / divisor)
        return g * tw.where(zero, 0.5, slope)


# ---- of numbers from 0 on ----


def _near0(size: Tensor) -> Tensor:
    z = tw.square(tw.minimum(size, 8.0) / 2)
    return 1 + z * polynomial(z, polynomials.I0)


def _near1(size: Tensor) -> Tensor:
    limited = tw.minimum(size, 8.0)
    return limited * polynomial(tw.square(limited / 2), polynomials.I1)


def _far(size: Tensor, coefficients: Sequence[float]) -> Tensor:
    limited = tw.maximum(size, 8.0)
    return polynomial(16 / limited - 1, coefficients) / tw.sqrt(limited)


def _grown(size: Tensor, coefficients: Sequence[float]) -> Tensor:
    """In two steps, as the power alone overflows before the function does."""
    half = tw.exp(size / 2)
    return tw.where(tw.isinf(size), size, half * _far(size, coefficients) * half)
