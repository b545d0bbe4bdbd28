"""Pointwise functions that NumPy lacks, as formulas over NumPy arrays."""

from __future__ import annotations

import math
from typing import Any

import mpmath as mp
import numpy as np


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
