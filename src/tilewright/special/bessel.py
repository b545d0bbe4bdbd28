"""Modified Bessel functions of the first kind, I0 and I1, and the same without their growth.

By polynomials up to 8, and beyond by those that sqrt(x) e^-x makes of them; computed in float64.
Derivatives have polynomials of their own, since differences of I0 and I1 cancel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tilewright as tw
from tilewright import Tensor
from tilewright._compat.argument_names import other_names
from tilewright.autograd import Function
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
    return _derivative(real_numbers("i0", x), _I0, 0)


@other_names
def i0e(x: Tensor) -> Tensor:
    """e^-|x| I0(x), which neither grows nor overflows.

    Within 4 units in the last place of float64, and rounded once to narrower types.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.i0e.
    """
    return _derivative(real_numbers("i0e", x), _I0E, 0)


@other_names
def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind and order 1, the derivative of I0.

    Within 4 units in the last place of float64, and rounded once to narrower types.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.i1.
    """
    return _derivative(real_numbers("i1", x), _I1, 0)


@other_names
def i1e(x: Tensor) -> Tensor:
    """e^-|x| I1(x), which neither grows nor overflows.

    Within 4 units in the last place of float64, and rounded once to narrower types.

    Shapes: x of any shape; the result has it.
    Types: floating; integers and bool become the default floating type. Result: the same type.
    Raises TypeError for complex numbers and for what is no tensor.
    Source: PyTorch's torch.special.i1e.
    """
    return _derivative(real_numbers("i1e", x), _I1E, 0)


# ---- derivatives ----


class _Family(NamedTuple):
    """A function and its derivatives, of numbers from 0 on in float64, outside the graph."""

    orders: tuple[Callable[[Tensor], Tensor], ...]
    odd: bool  # the function itself
    beyond: Callable[[Tensor], Tensor]  # the derivative that follows, by recorded ops


class _Derivative(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, family: _Family, order: int) -> Tensor:
        ctx.save_for_backward(x)
        ctx.family, ctx.order = family, order
        v = wide(x)
        y = family.orders[order](tw.abs(v))
        if (family.odd + order) % 2:  # a derivative that jumps at 0 is 0 there
            y = y * (tw.sign(v) if order else tw.copysign(1.0, v))
        return y.astype(x.dtype)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None]:
        (x,) = ctx.saved_tensors
        order = ctx.order + 1
        known = order < len(ctx.family.orders)
        return (
            g * (_derivative(x, ctx.family, order) if known else ctx.family.beyond(x)),
            None,
            None,
        )


def _derivative(x: Tensor, family: _Family, order: int) -> Tensor:
    result: Tensor = _Derivative.apply(x, family, order)
    return result


def _third_of_i1(x: Tensor) -> Tensor:
    """From x^2 y'' + x y' = (x^2 + 1) y."""
    zero = x == 0
    v = tw.where(zero, 1, x)
    y, slope, curve = (_derivative(v, _I1, order) for order in range(3))
    third = slope - curve / v + (2 * slope - 2 * y / v) / tw.square(v)
    return tw.where(zero, 0.375, third)


def _third_of_scaled(x: Tensor, family: _Family, n: int, at_0: float) -> Tensor:
    """From y'' = -(2 + 1 / x) y' - y / x + (n / x)^2 y, of y = e^-x I_n(x)."""
    zero = x == 0
    u = tw.where(zero, 1, tw.abs(x))
    y, slope, curve = (_derivative(u, family, order) for order in range(3))
    third = -(2 + 1 / u) * curve - slope / u + ((1 + n) * slope + y) / tw.square(u)
    if n:
        third = third - 2 * y / (u * u * u)
    if not family.odd:
        third = third * tw.sign(x)
    return tw.where(zero, at_0, third)


# ---- of numbers from 0 on ----


def _limited(size: Tensor) -> tuple[Tensor, Tensor]:
    """Up to 8, and a quarter of its square."""
    x = tw.minimum(size, 8.0)
    return x, tw.square(x / 2)


def _near0(size: Tensor) -> Tensor:
    _, z = _limited(size)
    return 1 + z * polynomial(z, polynomials.I0)


def _near1(size: Tensor) -> Tensor:
    x, z = _limited(size)
    return x * polynomial(z, polynomials.I1)


def _near_slope(size: Tensor) -> Tensor:
    """Of I1, term by term: none is negative."""
    return polynomial(_limited(size)[1], _SLOPES)


def _near_curve(size: Tensor) -> Tensor:
    x, z = _limited(size)
    return x * polynomial(z, _CURVES)


_SLOPES = [(2 * k + 1) * c for k, c in enumerate(polynomials.I1)]
_CURVES = [k * c / 2 for k, c in enumerate(_SLOPES)][1:]


def _far(size: Tensor, coefficients: Sequence[float]) -> Tensor:
    limited = tw.maximum(size, 8.0)
    return polynomial(16 / limited - 1, coefficients) / tw.sqrt(limited)


def _far_slope(size: Tensor) -> Tensor:
    """e^-x times that of I1."""
    return _far(size, polynomials.I0_FAR) - _far(size, polynomials.I1_FAR) / size


def _far_curve(size: Tensor) -> Tensor:
    over = 1 / size
    first = _far(size, polynomials.I1_FAR) * (1 + 2 * tw.square(over))
    return first - _far(size, polynomials.I0_FAR) * over


def _grown(size: Tensor, far: Tensor) -> Tensor:
    """In two steps, as the power alone overflows before the function does."""
    half = tw.exp(size / 2)
    return tw.where(tw.isinf(size), size, half * far * half)


def _i0(size: Tensor) -> Tensor:
    return tw.where(size <= 8, _near0(size), _grown(size, _far(size, polynomials.I0_FAR)))


def _i1(size: Tensor) -> Tensor:
    return tw.where(size <= 8, _near1(size), _grown(size, _far(size, polynomials.I1_FAR)))


def _i1_slope(size: Tensor) -> Tensor:
    return tw.where(size <= 8, _near_slope(size), _grown(size, _far_slope(size)))


def _i1_curve(size: Tensor) -> Tensor:
    return tw.where(size <= 8, _near_curve(size), _grown(size, _far_curve(size)))


def _scaled(
    near: Callable[[Tensor], Tensor], far: Sequence[float], power: int = 0
) -> Callable[[Tensor], Tensor]:
    """e^-x times `near` up to 8; beyond, a polynomial over a power of x."""

    def value(size: Tensor) -> Tensor:
        y = _far(size, far)
        for _ in range(power):
            y = y / size
        return tw.where(size <= 8, near(size) * tw.exp(-size), y)

    return value


_I1 = _Family((_i1, _i1_slope, _i1_curve), True, _third_of_i1)
_I0 = _Family((_i0, _i1, _i1_slope, _i1_curve), False, _third_of_i1)
_I0E: _Family = _Family(
    (
        _scaled(_near0, polynomials.I0_FAR),
        _scaled(lambda x: _near1(x) - _near0(x), polynomials.I0E_SLOPE_FAR, 1),
        _scaled(lambda x: _near_slope(x) - 2 * _near1(x) + _near0(x), polynomials.I0E_CURVE_FAR, 2),
    ),
    False,
    lambda x: _third_of_scaled(x, _I0E, 0, 0.0),
)
_I1E: _Family = _Family(
    (
        _scaled(_near1, polynomials.I1_FAR),
        _scaled(lambda x: _near_slope(x) - _near1(x), polynomials.I1E_SLOPE_FAR, 1),
        _scaled(
            lambda x: _near_curve(x) - 2 * _near_slope(x) + _near1(x), polynomials.I1E_CURVE_FAR, 2
        ),
    ),
    True,
    lambda x: _third_of_scaled(x, _I1E, 1, 1.875),
)
