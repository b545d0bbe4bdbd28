"""Pointwise functions that NumPy lacks, as formulas over NumPy arrays."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np
from scipy import special


def _rounded(exact: Any, plain: Any) -> Any:
    """Correctly rounded where the C library's may be off by 2 ulp; that for what is beyond."""
    return np.vectorize(
        lambda x: float(exact(x)) if 1e-300 < abs(x) < 30 else plain(x), otypes=[np.float64]
    )


_erfc = _rounded(mp.erfc, math.erfc)
_erf = _rounded(mp.erf, math.erf)


def erf(x: np.ndarray) -> np.ndarray:
    return _erf(x.astype(np.float64))


def erfc(x: np.ndarray) -> np.ndarray:
    return _erfc(x.astype(np.float64))


def plain_lgamma(x: Any) -> Any:
    """SciPy's, but for what it has at -infinity and at denormal numbers."""
    known = np.where(x == -math.inf, math.inf, special.gammaln(x))
    tiny = np.abs(x) < 1e-300
    return np.where(tiny, -np.log(np.abs(np.where(tiny, x, 1))), known)


def plain_erfinv(x: Any) -> Any:
    return np.copysign(special.erfinv(x), x)  # of -0.0 as well


def _exact(exact: Any, plain: Any, largest: float = 1e5) -> Any:
    """mpmath's up to so large arguments, where it has a value; SciPy's at poles and beyond."""

    def at(*x: float) -> float:
        try:
            with mp.workprec(200):
                return float(exact(*map(mp.mpf, x)) if 1e-300 < abs(x[-1]) < largest else plain(*x))
        except (ValueError, ZeroDivisionError):
            return float(plain(*x))

    call = np.vectorize(at, otypes=[np.float64])
    latest: dict[Any, np.ndarray] = {}

    def values(*x: np.ndarray) -> np.ndarray:
        x = tuple(np.asarray(t, np.float64) for t in x)
        # The scale of errors stands on the values that were asked for just before.
        key = (x[-1].shape, *(t.tobytes() for t in x))
        if key not in latest:
            latest.clear()
            latest[key] = call(*x)
        return latest[key].copy()

    return values


erfinv = _exact(mp.erfinv, plain_erfinv)
lgamma = _exact(lambda x: mp.re(mp.loggamma(x)), plain_lgamma)
digamma = _exact(mp.digamma, special.psi, 1e16)


def _polygamma(order: Any, x: Any) -> Any:
    """mpmath's goes step by step below 0: there by reflection, from numbers above."""
    n = int(order)
    if x > -20 or n == 0:
        return mp.psi(n, x)
    up, sign = x - mp.floor(x), (-1) ** (n + 1)
    return mp.psi(n, up) + sign * (mp.psi(n, 1 - up) - mp.psi(n, 1 - x))


_derivatives = _exact(_polygamma, lambda n, x: special.polygamma(int(n), x), 1e16)


def polygamma(x: np.ndarray, n: int = 1) -> np.ndarray:
    return _derivatives(np.float64(n), x)


def lgamma_scale(x: np.ndarray) -> np.ndarray:
    """What cancels around the zeros below 0."""
    x = x.astype(np.float64)
    return np.maximum(np.abs(lgamma(x)), np.where(x < 0, np.maximum(plain_lgamma(-x), 1), 0))


def digamma_scale(x: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return np.abs(digamma(x)) + np.where(x < 0, np.abs(special.psi(1 - np.minimum(x, 0))), 0)


def polygamma_scale(x: np.ndarray, n: int = 1) -> np.ndarray:
    """Below 0 terms of both ends of the unit that x lies in cancel; SciPy's have enough digits."""
    x = x.astype(np.float64)
    with np.errstate(invalid="ignore"):
        inside = np.abs(special.polygamma(n, x - np.floor(x)))
        # (SciPy's goes step by step below 0.)
        beyond = np.abs(special.polygamma(n, 1 - np.minimum(x, 0)))
    return np.abs(polygamma(x, n)) + np.where(x < 0, inside + beyond, 0)


def sigmoid(x: np.ndarray) -> np.ndarray:
    t = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, t) / (1 + t)


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def silu_scale(x: np.ndarray) -> np.ndarray:
    """x times a denormal sigmoid has that one's few digits."""
    least = 2.0**-1022 if x.dtype == np.longdouble else 2.0**-126
    return np.abs(x) * np.maximum(sigmoid(x), least)


def whole_unchanged(function: Any) -> Any:
    """NumPy before 2.1 takes whole numbers through float64."""
    return lambda x: x if x.dtype.kind in "iu" else function(x)


def logical_or_sum(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.logical_or(a, b) if a.dtype == bool else np.add(a, b)


def logical_and_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.logical_and(a, b) if a.dtype == bool else np.multiply(a, b)


def square(x: np.ndarray) -> np.ndarray:
    return x * x


def clip(x: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    return np.minimum(np.maximum(x, low), high)


def nextafter(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In the type that the arguments were widened from."""
    own = np.float64 if a.dtype == np.longdouble else np.float32
    return np.nextafter(a.astype(own), b.astype(own)).astype(a.dtype)
