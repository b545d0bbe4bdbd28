"""Hurwitz's zeta function."""

from __future__ import annotations

import math
from typing import Any

import tilewright as tw
from tilewright import Tensor
from tilewright._arrays.broadcasting import broadcast_tensors
from tilewright.autograd import Function
from tilewright.special.checks import real_numbers

# Terms that are summed one by one before Euler's and Maclaurin's formula takes over.
_TERMS = 12
# Bernoulli's numbers of even order by factorials, B(2 j) / (2 j)!, j from 1.
_BERNOULLI = (
    1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
    1 / 74724249600, -3617 / 10670622842880000, 43867 / 5109094217170944000,
)  # fmt: skip
# Above, all terms but the first ones are 0 whatever the place.
_LARGEST = 1e4


def zeta(x: Tensor | float, other: Tensor | float) -> Tensor:
    """The sum of (k + other)^-x over k = 0, 1, ..., for x > 1; NaN below 1, infinite at 1.

    Infinite at other = 0, -1, ...; between them defined for whole x alone. Computed in float64,
    within 8 units in the last place for other > 0. The gradient goes to other.

    Shapes: operands broadcast; the result has their common shape.
    Types: floating; integers and bool become the default floating type. Result: the common type.
    Raises TypeError for complex numbers and where neither is a tensor, ValueError for shapes that
    do not broadcast, RuntimeError in backward where x requires grad.
    Source: PyTorch's torch.special.zeta.

    >>> import tilewright as tw
    >>> round(tw.special.zeta(tw.asarray(2.0), 1).item(), 6)
    1.644934
    """
    if not isinstance(x, Tensor) and isinstance(other, Tensor):
        x = tw.full((), float(x), dtype=real_numbers("zeta", other).dtype, device=other.device)
    s = real_numbers("zeta", x)
    q = real_numbers("zeta", tw.full_like(s, float(other)) if _is_number(other) else other)
    result: Tensor = _Zeta.apply(s, q)
    return result


class _Zeta(Function):
    @staticmethod
    def forward(ctx: Any, s: Tensor, q: Tensor) -> Tensor:
        ctx.save_for_backward(s, q)
        a, b = broadcast_tensors(s.detach().astype(tw.float64), q.detach().astype(tw.float64))
        y = _sum(a, b)
        poles = (b <= 0) & (b == tw.floor(b))
        y = tw.where(poles | (a == 1), math.inf, y)
        return tw.where(a < 1, math.nan, y).astype(tw.result_type(s, q))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[None, Tensor]:
        if ctx.needs_input_grad[0]:
            raise RuntimeError("zeta: x has no gradient; other has one")
        s, q = ctx.saved_tensors
        of_q = g * -s * zeta(s + 1, q)
        extra = tuple(range(of_q.ndim - q.ndim))
        kept = tuple(i for i, n in enumerate(q.shape, len(extra)) if n == 1 and of_q.shape[i] != 1)
        return None, of_q.sum(axis=extra + kept, keepdims=True).reshape(q.shape)


def _sum(s: Tensor, q: Tensor) -> Tensor:
    """For q < 0, with its fraction f and whole s, by three sums of terms above 0:

    zeta(s, q) = zeta(s, f) + (-1)^s (zeta(s, 1 - f) - zeta(s, 1 - q)).
    """
    below = q < 0
    if not bool(below.any()):
        return _sum_of_positive(s, q)
    up = tw.floor(q) + 1
    y = _sum_of_positive(s, tw.where(below, q - (up - 1), q))
    mirrored = _sum_of_positive(s, tw.where(below, up - q, 1)) - _sum_of_positive(
        s, tw.where(below, 1 - q, 1)
    )
    mirrored = tw.where(s % 2 == 0, mirrored, -mirrored)
    return tw.where(below, tw.where(s == tw.floor(s), y + mirrored, math.nan), y)


def _sum_of_positive(s: Tensor, q: Tensor) -> Tensor:
    total = tw.zeros_like(s)
    for _ in range(_TERMS):
        total = total + tw.pow(q, -s)
        q = q + 1
    power = tw.pow(q, -s)
    total = total + tw.pow(q, 1 - s) / (s - 1) + power / 2
    limited = tw.minimum(s, _LARGEST)
    factor = limited * power / q
    for j, number in enumerate(_BERNOULLI):
        total = total + number * factor
        factor = factor * (limited + (2 * j + 1)) * (limited + (2 * j + 2)) / tw.square(q)
    return total


def _is_number(x: Any) -> bool:
    return isinstance(x, (int, float))
