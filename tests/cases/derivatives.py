"""First and second derivatives at the points where gradient formulas break: zeros of both signs,
kinks, ties, bounds, poles, numbers whose squares or exponentials leave the range, infinities.

The references are closed formulas over longdouble, whose range the squares and cubes of float64
stay within. Where a reference is NaN nothing is asked; where it is infinite, the result must not be
finite. At a kink they follow the engine's rules: 0 at abs(0) and at the origin, halves at ties of
two numbers, the whole gradient at a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import special

Formula = Callable[..., Any]


@dataclass(frozen=True)
class Derivatives:
    """`first[i]` is the derivative by argument i, `second[i][j]` that one's derivative by j."""

    points: tuple[tuple[float, ...], ...]  # one tuple of arguments each
    first: tuple[Formula, ...]
    second: tuple[tuple[Formula, ...], ...]
    # Largest error in units of eps, beside the relative one: formulas that subtract lose what is
    # small against their terms.
    absolute: float | Formula = 0.0


INFINITY = float("inf")
_SMALL = (0.5, 0.9, 1.0, 1.5, 2.0, 20.0, 50.0, 100.0, 400.0, 800.0)
# Powers of 2 are the same numbers in float32, where those beyond its range are left out.
_SCALES = (33, 50, 64, 100, 126, 200, 400, 510, 660, 1000, 1023)
MAGNITUDES = (
    *_SMALL,
    *(2.0**n for n in _SCALES),
    *(2.0**-n for n in _SCALES),
    INFINITY,
)
LINE = tuple((sign * x,) for x in (0.0, *MAGNITUDES) for sign in (1.0, -1.0))


def zero(*x: Any) -> Any:
    return 0 * sum(np.where(np.isfinite(a), a, 0) for a in x)


def constant(value: float) -> Formula:
    return lambda *x: zero(*x) + value


def unary(first: Formula, second: Formula, absolute: float = 0.0) -> Derivatives:
    return Derivatives(LINE, (first,), ((second,),), absolute)


def sigmoid(x: Any) -> Any:
    t = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, t) / (1 + t)


def bell(x: Any) -> Any:
    """Derivative of sigmoid."""
    t = np.exp(-np.abs(x))
    return t / ((1 + t) * (1 + t))


LN2, LN10 = np.log(np.longdouble(2)), np.log(np.longdouble(10))
TWO_OVER_ROOT_PI = 2 / np.sqrt(np.longdouble("3.14159265358979323846264338327950288"))


def circle(x: Any) -> Any:
    return (1 - x) * (1 + x)


def disc(x: Any) -> Any:
    return np.where(np.abs(x) > 1, np.nan, circle(x))


def normal(x: Any) -> Any:
    return TWO_OVER_ROOT_PI * np.exp(-x * x)


def narrow(x: Any) -> Any:
    return x.astype(np.float64)  # which SciPy's functions take


def inverse_slope(x: Any) -> Any:
    return np.exp(special.erfinv(narrow(x)) ** 2) * math.sqrt(math.pi) / 2


def trigamma(x: Any) -> Any:
    return special.polygamma(1, narrow(x))


def derived(order: int) -> Formula:
    return lambda x: special.polygamma(order, narrow(x))


def near(x: Any) -> Any:
    """What an exponential loses in units of eps: about its exponent, where it is not 0."""
    return 1 + np.minimum(np.abs(x), 1000)


GAMMA_POINTS = tuple((x,) for x in (0.0, 0.5, 1.0, 1.5, 20.0, 2.0**33, -0.5, -2.5, INFINITY))
STEPS = dict.fromkeys(("sign", "floor", "ceil", "trunc", "round"), unary(zero, zero))

UNARY = {
    **STEPS,
    "negative": unary(constant(-1), zero),
    "positive": unary(constant(1), zero),
    "abs": unary(lambda x: np.sign(x) + zero(x), zero),
    "sqrt": unary(lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 / (x * np.sqrt(x))),
    "rsqrt": unary(lambda x: -0.5 / (x * np.sqrt(x)), lambda x: 0.75 / (x * x * np.sqrt(x))),
    "reciprocal": unary(lambda x: -1 / (x * x), lambda x: 2 / (x * x * x)),
    "exp": unary(np.exp, np.exp),
    "exp2": unary(lambda x: LN2 * np.exp2(x), lambda x: LN2 * LN2 * np.exp2(x)),
    "expm1": unary(np.exp, np.exp, absolute=4),
    "log": unary(lambda x: 1 / x, lambda x: -1 / (x * x)),
    "log2": unary(lambda x: 1 / (x * LN2), lambda x: -1 / (x * x * LN2)),
    "log10": unary(lambda x: 1 / (x * LN10), lambda x: -1 / (x * x * LN10)),
    "log1p": unary(lambda x: 1 / (1 + x), lambda x: -1 / ((1 + x) * (1 + x))),
    "sin": unary(np.cos, lambda x: -np.sin(x)),
    "cos": unary(lambda x: -np.sin(x), lambda x: -np.cos(x)),
    "tan": unary(
        lambda x: 1 + np.tan(x) ** 2, lambda x: 2 * np.tan(x) * (1 + np.tan(x) ** 2), absolute=4
    ),
    "asin": unary(lambda x: disc(x) ** -0.5, lambda x: x * disc(x) ** -1.5),
    "acos": unary(lambda x: -(disc(x) ** -0.5), lambda x: -x * disc(x) ** -1.5),
    "atan": unary(lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "sinh": unary(np.cosh, np.sinh),
    "cosh": unary(np.sinh, np.cosh),
    "tanh": unary(
        lambda x: 1 / np.cosh(x) ** 2, lambda x: -2 * np.tanh(x) / np.cosh(x) ** 2, absolute=4
    ),
    "asinh": unary(lambda x: (1 + x * x) ** -0.5, lambda x: -x * (1 + x * x) ** -1.5),
    "acosh": unary(
        lambda x: np.where(x < 1, np.nan, -circle(x)) ** -0.5,
        lambda x: -x * np.where(x < 1, np.nan, -circle(x)) ** -1.5,
    ),
    "atanh": unary(lambda x: 1 / circle(x), lambda x: 2 * x / circle(x) ** 2),
    "erf": unary(normal, lambda x: -2 * x * normal(x)),
    "erfc": unary(lambda x: -normal(x), lambda x: 2 * x * normal(x)),
    "erfinv": Derivatives(
        tuple((x,) for x in (0.0, -0.0, 0.25, -0.5, 0.9, 1.5, -2.0)),
        (inverse_slope,),
        ((lambda x: 2 * special.erfinv(narrow(x)) * inverse_slope(x) ** 2,),),
        absolute=32,
    ),
    "lgamma": Derivatives(
        GAMMA_POINTS, (lambda x: special.psi(narrow(x)),), ((trigamma,),), absolute=64
    ),
    "digamma": Derivatives(GAMMA_POINTS, (trigamma,), ((derived(2),),), absolute=64),
    "gamma_derivative": Derivatives(
        GAMMA_POINTS[1:-1], (derived(2),), ((derived(3),),), absolute=1 << 14
    ),
    "sigmoid": unary(bell, lambda x: -bell(x) * np.tanh(x / 2), absolute=4),
    "relu": unary(lambda x: np.where(x > 0, 1, 0) + zero(x), zero),
    # Terms of the size of x * sigmoid'(x) cancel near the zeros.
    "silu": unary(
        lambda x: sigmoid(x) + x * bell(x),
        lambda x: bell(x) * (2 - x * np.tanh(x / 2)),
        absolute=lambda x: 64 * near(x) * bell(x),
    ),
}


def pairs(*values: float) -> tuple[tuple[float, ...], ...]:
    return tuple(product(values, repeat=2))


PLANE = pairs(0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 2.0**-40, 2.0**40, 2.0**-70, 2.0**70, 2.0**-600)


def binary(
    first: tuple[Formula, Formula],
    second: tuple[Formula, Formula, Formula],
    points: tuple[tuple[float, ...], ...] = PLANE,
    absolute: float | Formula = 0.0,
) -> Derivatives:
    """`second` by a and a, a and b, b and b."""
    aa, ab, bb = second
    return Derivatives(points, first, ((aa, ab), (ab, bb)), absolute)


NO_SECOND = (zero, zero, zero)
TIES = pairs(0.0, -0.0, 1.0, -1.0, 2.5, INFINITY, -INFINITY)


def share(wins: Formula) -> Formula:
    """1 where the argument is taken, half of it at a tie."""
    return lambda a, b: np.where(a == b, 0.5, np.where(wins(a, b), 1, 0)) + zero(a, b)


def at_origin(formula: Formula) -> Formula:
    """0 at the origin, where there is no derivative."""

    def call(a: Any, b: Any) -> Any:
        origin = (a == 0) & (b == 0)
        return np.where(origin, 0, formula(a, np.where(origin, 1, b)))

    return call


def far_from_origin(formula: Formula) -> Formula:
    """Not asked where the squares of 1 / a and 1 / b leave float32: 0 times those is NaN."""

    def call(a: Any, b: Any) -> Any:
        near = (np.hypot(a, b) < 2.0**-63) & ((a != 0) | (b != 0))
        return np.where(near, np.nan, at_origin(formula)(a, b))

    return call


def ln(x: Any) -> Any:
    return np.log(np.where(x > 0, x, np.nan))


def tiny(a: Any) -> Any:
    """Where 1 / a leaves float32, and 0 times it is NaN."""
    return (a != 0) & (np.abs(a) < 2.0**-126)


# Powers of 0: limits, where there is one from the right. Negative bases have none by b.
POWERS = {
    "a": lambda a, b: np.where(b == 0, 0, b * np.power(a, b - 1)),
    "b": lambda a, b: np.where((a == 0) & (b >= 0), 0, np.power(a, b) * ln(a)),
    "aa": lambda a, b: np.where(
        (b == 0) | (b == 1), np.where(tiny(a), np.nan, 0), b * (b - 1) * np.power(a, b - 2)
    ),
    # Not asked where the power itself leaves float32.
    "ab": lambda a, b: np.where(
        np.power(a, b) > 2.0**127,
        np.nan,
        np.where((a == 0) & (b > 1), 0, np.power(a, b - 1) * (1 + b * ln(a))),
    ),
    "bb": lambda a, b: np.where((a == 0) & (b >= 0), 0, np.power(a, b) * ln(a) ** 2),
}
POWER_POINTS = tuple(
    product(
        (0.0, 1.0, -1.0, 2.5, -3.0, 2.0**-70, 2.0**70, 2.0**-149, 2.0**-1060),
        (0.0, 1.0, 2.0, 3.0, 5.0, -1.0, -2.0, 0.5, 2.0**70),
    )
)

BINARY = {
    "add": binary((constant(1), constant(1)), NO_SECOND),
    "subtract": binary((constant(1), constant(-1)), NO_SECOND),
    "multiply": binary((lambda a, b: b, lambda a, b: a), (zero, constant(1), zero)),
    "divide": binary(
        (lambda a, b: 1 / b, lambda a, b: -a / (b * b)),
        (zero, lambda a, b: -1 / (b * b), lambda a, b: 2 * a / (b * b * b)),
    ),
    "floor_divide": binary((zero, zero), NO_SECOND),
    "remainder": binary((constant(1), lambda a, b: -np.floor(a / b)), NO_SECOND),
    "fmod": binary((constant(1), lambda a, b: -np.trunc(a / b)), NO_SECOND),
    "logaddexp": binary(
        (lambda a, b: sigmoid(a - b), lambda a, b: sigmoid(b - a)),
        (
            lambda a, b: bell(a - b),
            lambda a, b: -bell(a - b),
            lambda a, b: bell(a - b),
        ),
        absolute=lambda a, b: near(a - b) * bell(a - b),
    ),
    "xlogy": binary(
        (lambda a, b: np.log(b), lambda a, b: a / b),
        (zero, lambda a, b: 1 / b, lambda a, b: -a / b**2),
        pairs(1.0, 2.5, 3.0, 2.0**-40, 2.0**40, 2.0**-70, 2.0**70),
    ),
    "pow": binary(
        (POWERS["a"], POWERS["b"]), (POWERS["aa"], POWERS["ab"], POWERS["bb"]), POWER_POINTS
    ),
    "maximum": binary((share(np.greater), share(np.less)), NO_SECOND, TIES),
    "minimum": binary((share(np.less), share(np.greater)), NO_SECOND, TIES),
    "atan2": binary(
        (
            at_origin(lambda a, b: b / (a * a + b * b)),
            at_origin(lambda a, b: -a / (a * a + b * b)),
        ),
        (
            far_from_origin(lambda a, b: -2 * a * b / (a * a + b * b) ** 2),
            far_from_origin(lambda a, b: (a - b) * (a + b) / (a * a + b * b) ** 2),
            far_from_origin(lambda a, b: 2 * a * b / (a * a + b * b) ** 2),
        ),
        absolute=at_origin(lambda a, b: 16 / (a * a + b * b)),
    ),
    "hypot": binary(
        (
            at_origin(lambda a, b: a / np.sqrt(a * a + b * b)),
            at_origin(lambda a, b: b / np.sqrt(a * a + b * b)),
        ),
        (
            at_origin(lambda a, b: b * b / (a * a + b * b) ** 1.5),
            at_origin(lambda a, b: -a * b / (a * a + b * b) ** 1.5),
            at_origin(lambda a, b: a * a / (a * a + b * b) ** 1.5),
        ),
        absolute=at_origin(lambda a, b: 16 / np.sqrt(a * a + b * b)),
    ),
    "copysign": binary(
        (lambda a, b: np.sign(a) * np.copysign(np.ones_like(a), b) + zero(a, b), zero), NO_SECOND
    ),
}


def nothing(count: int) -> tuple[tuple[Formula, ...], ...]:
    return ((zero,) * count,) * count


TERNARY = {
    "lerp": Derivatives(
        tuple((a, b, c) for a, b in PLANE for c in (0.25, 0.75)),
        (lambda a, b, c: 1 - c, lambda a, b, c: c, lambda a, b, c: b - a),
        ((zero, zero, constant(-1)), (zero, zero, constant(1)), (constant(-1), constant(1), zero)),
    ),
    "where": Derivatives(
        tuple((c, *pair) for c in (0.0, 1.0) for pair in pairs(0.0, 1.0, INFINITY)),
        (lambda c, a, b: c + zero(a, b), lambda c, a, b: 1 - c + zero(a, b)),
        nothing(2),
    ),
    "clip": Derivatives(
        tuple(product((-INFINITY, -1.0, 0.0, 1.0, 2.0, INFINITY), (-1.0, 0.0, 2.0), (0.0, 1.0))),
        (
            lambda x, a, b: np.where((x >= a) & (x <= b), 1, 0) + zero(x),
            lambda x, a, b: np.where((x < a) & (a <= b), 1, 0) + zero(x),
            lambda x, a, b: np.where((x > b) | (a > b), 1, 0) + zero(x),
        ),
        nothing(3),
    ),
}

OF_ROWS = {**UNARY, **BINARY, **TERNARY}


@dataclass(frozen=True)
class RowDerivatives:
    """Of a reduction over a whole row: `first(x)` is a vector, `second(x)` a matrix."""

    rows: tuple[tuple[float, ...], ...]
    first: Formula
    second: Formula
    absolute: float = 4.0


def product_without(x: Any, *left_out: int) -> Any:
    return np.prod(np.delete(x, left_out))


def prod_second(x: Any) -> Any:
    """Unknown where products of pairs leave the range: 0 times infinity is NaN on the way."""
    y = [
        [product_without(x, i, j) if i != j else 0 * x[0] for j in range(x.size)]
        for i in range(x.size)
    ]
    return np.where(np.abs(x).max() > 2.0**60, np.nan, np.array(y))


def direction(x: Any) -> Any:
    """The gradient of the length, 0 where that is 0."""
    length = np.sqrt(np.sum(x * x))
    return x / length if length else 0 * x


def turning(x: Any) -> Any:
    length, u = np.sqrt(np.sum(x * x)), direction(x)
    return (np.diag(u * 0 + 1) - u[:, None] * u) / length if length else np.diag(u)


def ties(best: Formula) -> Formula:
    return lambda x: (x == best(x)) / np.sum(x == best(x))


def softmax(x: Any) -> Any:
    t = np.exp(x - x.max())
    return t / t.sum()


def centring(x: Any) -> Any:
    return np.eye(x.size) - 1 / np.longdouble(x.size)


def std_first(x: Any) -> Any:
    """0 where all elements are equal, as in PyTorch: there is no derivative."""
    return 0 * x if np.all(x == x[0]) else (x - x.mean()) / (x.size * x.std())


def std_second(x: Any) -> Any:
    if np.all(x == x[0]):
        return np.zeros((x.size, x.size))
    slope = std_first(x)
    return (centring(x) / x.size - np.outer(slope, slope)) / x.std()


def no_second(x: Any) -> Any:
    return np.zeros((x.size, x.size))


ROWS = (
    (0.0, 0.0, 3.0),
    (0.0, 2.0, 3.0),
    (0.0, 0.0, 0.0, 5.0),
    (2.0, 2.0, 2.0),
    (1.0, 1.0, 0.0, 1.0),
    (5.0,),
    (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0),
    (2.0**13, -(2.0**13), 0.0),
)
OF_REDUCTIONS = {
    "sum": RowDerivatives(ROWS, lambda x: 0 * x + 1, no_second),
    "nansum": RowDerivatives(
        (*ROWS, (math.nan, 2.0, 3.0), (math.nan,)), lambda x: 1.0 * ~np.isnan(x), no_second
    ),
    "l1_norm": RowDerivatives((*ROWS, (0.0, -0.0, -2.0)), np.sign, no_second),
    "l2_norm": RowDerivatives(
        (*ROWS, (2.0**-50, 2.0**-51), (2.0**100, -(2.0**101)), (0.0, 2.0**-50)),
        direction,
        turning,
    ),
    "prod": RowDerivatives(
        (
            *ROWS,
            (2.0**-600, 2.0**-600, 5.0),
            (2.0**-100, 2.0**-100, 2.0**100),
            (2.0**100, 2.0**100, 2.0**-100),
            (INFINITY, 2.0, 3.0),
            (0.0, INFINITY, 3.0),
        ),
        lambda x: np.array([product_without(x, i) for i in range(x.size)]),
        prod_second,
        absolute=0,
    ),
    "max": RowDerivatives(ROWS, ties(np.max), no_second),
    "min": RowDerivatives(ROWS, ties(np.min), no_second),
    "var": RowDerivatives(
        ROWS, lambda x: 2 * (x - x.mean()) / x.size, lambda x: 2 * centring(x) / x.size
    ),
    "std": RowDerivatives(ROWS, std_first, std_second),
    "logsumexp": RowDerivatives(
        (*ROWS, (2.0**100, 2.0**100, 1.0), (-(2.0**100), 1.0)),
        softmax,
        lambda x: np.diag(softmax(x)) - np.outer(softmax(x), softmax(x)),
    ),
}

# ---- activations ----


def slope_of_mish(x: Any) -> tuple[Any, Any]:
    """tanh(softplus(x)) and what it lacks of 1 in squares."""
    e = np.exp(np.minimum(x, 100))
    p = e * (e + 2)
    return p / (p + 2), np.where(x > 100, 0, 4 * (p + 1) / ((p + 2) * (p + 2)))


def mish_first(x: Any) -> Any:
    t, u = slope_of_mish(x)
    return t + x * sigmoid(x) * u


def mish_second(x: Any) -> Any:
    t, u = slope_of_mish(x)
    s = sigmoid(x)
    return u * s * (2 + x * (sigmoid(-x) - 2 * t * s))


def density(x: Any) -> Any:
    return np.exp(-x * x / 2) * (TWO_OVER_ROOT_PI / np.sqrt(np.longdouble(8)))


def share_below(x: Any) -> Any:
    return np.vectorize(lambda t: math.erfc(-float(t) / math.sqrt(2)) / 2)(x)


def tanh_terms(x: Any) -> tuple[Any, Any, Any]:
    """The sigmoid of gelu's formula, its derivative by the exponent, the exponent's by x."""
    c, d = np.longdouble(1.5957691216057308), np.longdouble(0.07135481627260025)
    square = np.minimum(x * x, 1000)
    z = x * (c + square * d)
    return sigmoid(z), bell(z), c + 3 * d * square


def tanh_second(x: Any) -> Any:
    s, b, slope = tanh_terms(x)
    curve = 6 * 0.07135481627260025 * np.where(x * x < 1000, x, 0)
    return 2 * b * slope + x * b * (1 - 2 * s) * slope * slope + x * b * curve


def tanh_loss(x: Any) -> Any:
    x = np.clip(x, -100, 100)
    c, (_, b, slope) = np.longdouble(1.5957691216057308), tanh_terms(x)
    return 16 * near(x * (c + slope)) * b * (1 + np.abs(x) * slope * slope)


def inside(low: float, high: float, value: float = 1.0) -> Formula:
    return lambda x: np.where((x > low) & (x < high), np.longdouble(value), 0) + zero(x)


def outside(low: float, high: float) -> Formula:
    return lambda x: np.where((x < low) | (x > high), 1, 0) + zero(x)


SELU, SELU_BELOW = 1.0507009873554805, 1.7580993408473766
# At 0 the slope turns; PyTorch takes the curvature from above.
ELU = unary(
    lambda x: np.exp(np.minimum(x, 0)), lambda x: np.where(x >= 0, 0, np.exp(np.minimum(x, 0)))
)
ACTIVATIONS = {
    "softplus": unary(
        lambda x: np.where(x > 20, 1, sigmoid(x)),
        lambda x: np.where(x > 20, 0, bell(x)),
    ),
    "elu": ELU,
    "celu": ELU,
    "mish": unary(
        mish_first,
        mish_second,
        absolute=lambda x: 64 * near(x) * bell(np.where(x > 0, 2 * x, x)),
    ),
    "selu": unary(
        lambda x: np.where(x > 0, SELU, SELU_BELOW * np.exp(np.minimum(x, 0))),
        lambda x: np.where(x >= 0, 0, SELU_BELOW * np.exp(np.minimum(x, 0))),
    ),
    "relu6": unary(inside(0, 6), zero),
    "hardsigmoid": unary(inside(-3, 3, 1 / 6), zero, absolute=1),
    "hardswish": unary(
        lambda x: np.where(x <= -3, 0, np.where(x < 3, x / 3 + 0.5, 1)), inside(-3, 3, 1 / 3), 1
    ),
    "softsign": unary(
        lambda x: 1 / (1 + np.abs(x)) ** 2,
        lambda x: np.where(np.isinf(x), np.nan, -2 * np.sign(x) / (1 + np.abs(x)) ** 3),
    ),
    "logsigmoid": unary(lambda x: sigmoid(-x), lambda x: -bell(x)),
    "tanhshrink": unary(lambda x: np.tanh(x) ** 2, lambda x: 2 * np.tanh(x) / np.cosh(x) ** 2),
    # Terms of the size of x^2 * density(x) cancel.
    "gelu_erf": unary(
        lambda x: share_below(x) + x * density(x), lambda x: density(x) * (2 - x * x), absolute=64
    ),
    "gelu_tanh": unary(
        lambda x: tanh_terms(x)[0] + x * tanh_terms(x)[1] * tanh_terms(x)[2],
        tanh_second,
        absolute=tanh_loss,
    ),
    "hardshrink": unary(outside(-0.5, 0.5), zero),
    "softshrink": unary(outside(-0.5, 0.5), zero),
    "hardtanh": unary(inside(-1, 1), zero),
    "finite_or": unary(lambda x: np.isfinite(x) * np.longdouble(1), zero),
    "threshold": unary(lambda x: np.where(x <= 0.25, 0, 1) + zero(x), zero),
}
LEAKY = binary(
    (lambda a, b: np.where(a > 0, 1, b), lambda a, b: np.where(a > 0, 0, a)),
    (zero, lambda a, b: np.where(a > 0, 0, 1) + zero(a, b), zero),
)
MULTIPLY_ADD = Derivatives(
    tuple((a, b, 1.0) for a, b in PLANE),
    (lambda a, b, c: b, lambda a, b, c: a, constant(1)),
    ((zero, constant(1), zero), (constant(1), zero, zero), (zero, zero, zero)),
)
ACTIVATIONS["logistic_loss"] = binary(
    (lambda a, b: sigmoid(a) - b, lambda a, b: -a),
    (lambda a, b: bell(a), constant(-1), zero),
    absolute=lambda a, b: 4 * (1 + np.abs(b)),
)
ACTIVATIONS["huber_distance"] = binary(
    (lambda a, b: np.clip(a - b, -1, 1), lambda a, b: np.clip(b - a, -1, 1)),
    (
        lambda a, b: np.where(np.abs(a - b) < 1, 1, 0),
        lambda a, b: np.where(np.abs(a - b) < 1, -1, 0),
        lambda a, b: np.where(np.abs(a - b) < 1, 1, 0),
    ),
    pairs(0.0, -0.0, 0.25, 2.5, -3.0, 2.0**40, 2.0**70, 2.0**-600),  # none 1 apart
)
ACTIVATIONS["square_distance"] = binary(
    (lambda a, b: 2 * (a - b), lambda a, b: 2 * (b - a)),
    (constant(2), constant(-2), constant(2)),
    pairs(0.0, -0.0, 0.25, 2.5, -3.0, 2.0**40, 2.0**-600),
)
ACTIVATIONS["truncated_quotient"] = binary((zero, zero), NO_SECOND)
ACTIVATIONS["log_odds"] = Derivatives(
    tuple((x,) for x in (2.0**-100, 0.001, 0.25, 0.375, 0.5, 0.75, 0.9990234375)),
    (lambda x: 1 / (x * (1 - x)),),
    ((lambda x: (2 * x - 1) / (x * (1 - x)) ** 2,),),
)
ADD_QUOTIENT = Derivatives(
    tuple((1.0, a, b) for a, b in pairs(0.25, 2.5, -3.0, 2.0**40)),
    (constant(1), lambda a, b, c: 1 / c, lambda a, b, c: -b / c**2),
    (
        (zero, zero, zero),
        (zero, zero, lambda a, b, c: -1 / c**2),
        (zero, lambda a, b, c: -1 / c**2, lambda a, b, c: 2 * b / c**3),
    ),
)
ACTIVATIONS["add_quotient"] = ADD_QUOTIENT
ACTIVATIONS["leaky_relu"] = LEAKY
ACTIVATIONS["multiply_add"] = MULTIPLY_ADD
