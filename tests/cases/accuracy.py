"""References that say how far a result is from the exact one: for each row of accuracy.inc
a float64 function for float32 arguments, and one of any precision for what float64 cannot decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
from scipy import special

import tilewright as tw
from cases.bounds import BOUNDS
from cases.formulas import plain_erfinv, plain_lgamma


@dataclass
class Exact:
    wide: Callable[..., Any]  # over float64 arrays, within a few ulp
    any_precision: Callable[..., Any]  # over mpmath numbers
    domain: tuple[float, float] = (-1e308, 1e308)  # where finite float64 arguments are drawn
    # What cancels in a result: errors in float64 are relative to it where it is larger.
    terms: Callable[..., Any] = lambda *_: mp.mpf(0)


def _logistic(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def _tanhshrink(x: np.ndarray) -> np.ndarray:
    z = x * x
    near = x * z * (1 / 3 - z * (2 / 15 - z * (17 / 315 - z * 62 / 2835)))
    return np.where(np.abs(x) < 0.01, near, x - np.tanh(x))


def _product_with(sigma: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """x sigma(x), and NaN at -infinity."""
    return lambda x: np.where(x == -np.inf, np.nan, x * sigma(x))


SELU = (1.0507009873554805, 1.7580993408473766)
EXACT = {
    "sqrt": Exact(np.sqrt, mp.sqrt, (0, 1e308)),
    "reciprocal": Exact(lambda x: 1 / x, lambda x: 1 / x),
    "square": Exact(np.square, lambda x: x * x),
    "exp": Exact(np.exp, mp.exp, (-750, 710)),
    "exp2": Exact(np.exp2, lambda x: mp.mpf(2) ** x, (-1080, 1024)),
    "expm1": Exact(np.expm1, mp.expm1, (-750, 710)),
    "log": Exact(np.log, mp.log, (0, 1e308)),
    "log2": Exact(np.log2, lambda x: mp.log(x, 2), (0, 1e308)),
    "log10": Exact(np.log10, mp.log10, (0, 1e308)),
    "log1p": Exact(np.log1p, mp.log1p, (-1, 1e308)),
    "sin": Exact(np.sin, mp.sin, (-1e6, 1e6)),
    "cos": Exact(np.cos, mp.cos, (-1e6, 1e6)),
    "tan": Exact(np.tan, mp.tan, (-1e6, 1e6)),
    "asin": Exact(np.arcsin, mp.asin, (-1, 1)),
    "acos": Exact(np.arccos, mp.acos, (-1, 1)),
    "atan": Exact(np.arctan, mp.atan),
    "sinh": Exact(np.sinh, mp.sinh, (-711, 711)),
    "cosh": Exact(np.cosh, mp.cosh, (-711, 711)),
    "tanh": Exact(np.tanh, mp.tanh, (-25, 25)),
    "asinh": Exact(np.arcsinh, mp.asinh),
    "acosh": Exact(np.arccosh, mp.acosh, (1, 1e308)),
    "atanh": Exact(np.arctanh, mp.atanh, (-1, 1)),
    "erf": Exact(special.erf, mp.erf, (-7, 7)),
    "sigmoid": Exact(lambda x: 1 / (1 + np.exp(-x)), _logistic, (-746, 50)),
    "erfc": Exact(special.erfc, mp.erfc, (-7, 27)),
    "erfinv": Exact(
        plain_erfinv,
        mp.erfinv,
        (-1, 1),
    ),
    "lgamma": Exact(
        plain_lgamma,
        lambda x: mp.re(mp.loggamma(x)),
        (-500, 2.5e305),
        lambda x: max(mp.loggamma(-x), 1) if x < 0 else mp.mpf(0),
    ),
    "digamma": Exact(
        special.psi,
        mp.digamma,
        (-500, 1e308),
        lambda x: abs(mp.digamma(x)) + abs(mp.digamma(1 - x)) if x < 0 else mp.mpf(0),
    ),
    "rsqrt": Exact(lambda x: 1 / np.sqrt(x), lambda x: 1 / mp.sqrt(x), (0, 1e308)),
    "silu": Exact(_product_with(special.expit), lambda x: x * _logistic(x), (-746, 50)),
    "mish": Exact(
        lambda x: np.where(x == -np.inf, np.nan, x * np.tanh(np.log1p(np.exp(np.minimum(x, 99))))),
        lambda x: x * mp.tanh(mp.log1p(mp.exp(x))),
        (-746, 50),
    ),
    "selu": Exact(
        lambda x: np.where(x > 0, x * SELU[0], np.expm1(np.where(x > 0, 0, x)) * SELU[1]),
        lambda x: x * SELU[0] if x > 0 else mp.expm1(x) * SELU[1],
    ),
    "logsigmoid": Exact(
        lambda x: np.minimum(x, 0) - np.log1p(np.exp(-np.abs(x))),
        lambda x: -mp.log1p(mp.exp(-x)),
        (-746, 740),
    ),
    "tanhshrink": Exact(
        _tanhshrink,
        lambda x: x - mp.tanh(x) if abs(x) > 1e-20 else x**3 / 3 - 2 * x**5 / 15,
    ),
    "log_odds": Exact(
        special.logit, lambda x: mp.log(mp.mpf(x) / (1 - mp.mpf(x))), (1e-300, 1 - 2.0**-53)
    ),
    "gelu_erf": Exact(
        _product_with(lambda x: special.erfc(x * -math.sqrt(0.5)) / 2),
        lambda x: x * mp.erfc(-x / mp.sqrt(2)) / 2,
        (-37, 50),
    ),
    "gelu_tanh": Exact(
        _product_with(lambda x: special.expit(x * (1 + 0.044715 * x * x) * math.sqrt(8 / math.pi))),
        lambda x: x * _logistic(x * (1 + mp.mpf("0.044715") * x * x) * mp.sqrt(8 / mp.pi)),
        (-21, 50),
    ),
    "add": Exact(np.add, lambda a, b: a + b),
    "subtract": Exact(np.subtract, lambda a, b: a - b),
    "multiply": Exact(np.multiply, lambda a, b: a * b),
    "divide": Exact(np.divide, lambda a, b: a / b),
    "pow": Exact(np.power, lambda a, b: a**b, (0, 1e308)),
    "atan2": Exact(np.arctan2, mp.atan2),
    "hypot": Exact(np.hypot, mp.hypot),
}


# Rows that are parts of a function with options.
FUNCTIONS: dict[str, Callable[..., tw.Tensor]] = {
    "log_odds": tw.logit,
    "gelu_erf": tw.nn.functional.gelu,
    "gelu_tanh": lambda x: tw.nn.functional.gelu(x, approximate="tanh"),
}


def function(name: str) -> Callable[..., tw.Tensor]:
    return FUNCTIONS.get(name) or getattr(tw, name)


def ulp_of(exact: np.ndarray) -> np.ndarray:
    """Of float32 numbers near float64 ones: 2^-23 of the power of two below, 2^-149 at least."""
    exponent = exact.view(np.int64) & (0x7FF << 52)
    return (np.maximum(exponent, (1023 - 126) << 52) - (23 << 52)).view(np.float64)


@dataclass
class Worst:
    """The largest error found, where, and the arguments that got a wrong special value."""

    ulp: float = 0.0
    at: tuple[float, ...] = ()
    wrong: list[tuple[float, ...]] | None = None

    def merge(self, other: Worst) -> None:
        if other.ulp > self.ulp:
            self.ulp, self.at = other.ulp, other.at
        self.wrong = (self.wrong or []) + (other.wrong or [])


def exact_error(name: str, got: float, args: tuple[float, ...], digits: int) -> float:
    """|got - exact| in ulp of a format of so many digits, by arithmetic of 200 bits and more."""
    lowest = -149 if digits == 24 else -1074
    with mp.workprec(400):
        exact = EXACT[name].any_precision(*(mp.mpf(x) for x in args))
        size = abs(exact)
        if digits == 53:
            size = max(size, abs(EXACT[name].terms(*(mp.mpf(x) for x in args))))
        exponent = mp.frexp(size)[1] if size else lowest
        return float(abs(mp.mpf(got) - exact) / mp.ldexp(1, max(exponent - digits, lowest)))


def float32_errors(name: str, got: np.ndarray, args: tuple[np.ndarray, ...]) -> Worst:
    """The largest error of float32 results. Where float64 leaves open whether one is within the
    bound, or whether it overflows, more digits decide.
    """
    bound = BOUNDS[name][0]
    with np.errstate(all="ignore"):
        exact = EXACT[name].wide(*(x.astype(np.float64) for x in args))
        y = got.astype(np.float64)
        # Beyond the largest number there is none: infinity stands for 2^128, as rounding has it.
        reach = np.isfinite(exact) & np.isinf(y)
        y[reach] = np.copysign(2.0**128, y[reach])
        error = np.abs(y - exact) / ulp_of(exact)
        error[reach & (np.abs(exact) > 2.0**128)] = 0
        alike = (y == exact) | (np.isnan(y) & np.isnan(exact))
        ordinary = np.isfinite(exact) & ~np.isnan(y)
        error[alike] = 0
        wrong = ~alike & ~ordinary
        wrong |= (y == 0) & (exact == 0) & (np.signbit(y) != np.signbit(exact))
        error[~ordinary] = 0
    for at in np.flatnonzero(error > bound - 1e-6)[:200]:
        error[at] = exact_error(name, float(y[at]), tuple(float(x[at]) for x in args), 24)
    at = int(error.argmax()) if error.size else 0
    return Worst(
        float(error[at]) if error.size else 0.0,
        tuple(float(x[at]) for x in args) if error.size else (),
        [tuple(float(x[i]) for x in args) for i in np.flatnonzero(wrong)[:5]],
    )
