"""The coefficients of polynomials in core/cpu/math: `python tools/fit_polynomials.py [name ...]`.

Each is a least-squares fit at Chebyshev nodes, weighted by how much the polynomial counts in the
result, which is within a bit of the minimax polynomial. Coefficients are rounded to the format one
after the other, the lowest first, and the later ones fitted again to what rounding left.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp
import numpy as np

mp.mp.prec = 240
Real = Callable[[mp.mpf], mp.mpf]


@dataclass
class Fit:
    """A polynomial in x on [low, high] for `target`, whose error counts `weight(x)` times."""

    target: Real
    low: float
    high: float
    degrees: tuple[int, int]  # for float32 and float64; -1: not needed
    weight: Real = lambda _: mp.mpf(1)
    parts: int = 1  # of the constant term, for results of more bits than a number has


def root(f: Real) -> Real:
    """f as a function of the square of its argument."""
    return lambda z: f(mp.sqrt(z))


def scaled_erfc(t: mp.mpf) -> mp.mpf:
    """(1 + 2 x) e^(x^2) erfc(x), t = (x - 2.5) / (x + 2.5)."""
    x = mp.mpf(2.5) * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def scaled_share(t: mp.mpf) -> mp.mpf:
    """(3.5 + x) e^(x^2 / 2) times the normal distribution above x = 3.5 (1 + t) / (1 - t)."""
    x = mp.mpf(3.5) * (1 + t) / (1 - t)
    return (3.5 + x) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2)) / 2


# Taylor's first terms where the closed form cancels.
def near_zero(f: Real, limit: mp.mpf, bound: float = 1e-25) -> Real:
    return lambda x: limit if abs(x) < bound else f(x)


FITS = {
    # e^r = 1 + r + r^2 p(r), |r| <= ln 2 / 2, so that e^r - 1 is right as well
    "exp": Fit(
        near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(1) / 2),
        -0.3467,
        0.3467,
        (5, 9),
        lambda r: r,
    ),
    # log(1 + f) = f - f^2 / 2 + f^3 p(f), 1 + f from the root of 1/2 to 1.5
    "log": Fit(
        near_zero(lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, mp.mpf(1) / 3),
        -0.2929,
        0.5,
        (9, -1),
        lambda f: f**2,
    ),
    # log(1 + f) = 2 s + 2 s^3 p(z), s = f / (2 + f), z = s^2
    "atanh": Fit(
        near_zero(root(lambda s: (mp.atanh(s) - s) * 2 / s**3), mp.mpf(2) / 3),
        0,
        0.0401,
        (-1, 7),
        lambda z: z,
    ),
    # atan(t) = t + t z p(z), z = t^2, |t| <= tan(pi / 8)
    "atan": Fit(
        near_zero(root(lambda t: (mp.atan(t) - t) / t**3), -mp.mpf(1) / 3),
        0,
        0.1716,
        (4, 11),
        lambda z: z,
    ),
    # asin(t) = t + t z p(z), z = t^2, |t| <= 1/2
    "asin": Fit(
        near_zero(root(lambda t: (mp.asin(t) - t) / t**3), mp.mpf(1) / 6),
        0,
        0.25,
        (4, 12),
        lambda z: z,
    ),
    # cosh(r) = 1 + z p(z), sinh(r) = r + r z q(z), |r| <= ln 2 / 2
    "cosh": Fit(
        near_zero(root(lambda r: (mp.cosh(r) - 1) / r**2), mp.mpf(1) / 2),
        0,
        0.1202,
        (2, 5),
        lambda z: z,
    ),
    "sinh": Fit(
        near_zero(root(lambda r: (mp.sinh(r) - r) / r**3), mp.mpf(1) / 6),
        0,
        0.1202,
        (2, 5),
        lambda z: z,
    ),
    # log(1 + f) once more, for pairs: 2 s + s^3 (2 / 3 + z p(z))
    "log_pair": Fit(
        near_zero(
            root(lambda s: ((mp.atanh(s) - s) * 2 / s**3 - mp.mpf(2) / 3) / s**2), mp.mpf(2) / 5
        ),
        0,
        0.0401,
        (-1, 8),
        lambda z: z * z,
    ),
    # tanh(x) = x + x z p(z), z = x^2, |x| <= 1.048
    "tanh": Fit(
        near_zero(root(lambda x: (mp.tanh(x) - x) / x**3), -mp.mpf(1) / 3),
        0,
        1.1,
        (7, -1),
        lambda z: z,
    ),
    # x - tanh(x) = x z p(z), z = x^2, |x| <= 0.6
    "tanhshrink": Fit(
        near_zero(root(lambda x: (x - mp.tanh(x)) / x**3), mp.mpf(1) / 3), 0, 0.36, (6, 14), parts=2
    ),
    # erf(x) = x + x p(z), z = x^2, |x| <= 1/2
    "erf": Fit(
        near_zero(root(lambda x: mp.erf(x) / x - 1), 2 / mp.sqrt(mp.pi) - 1), 0, 0.25, (4, 9)
    ),
    # erfc(x) e^(x^2) (1 + 2 x) from 1/2 to 28
    "erfc": Fit(scaled_erfc, -2 / 3, 0.8361, (9, 22), parts=2),
    # the same for the normal distribution from 0 to 14.5, relative to the result
    "normal_share": Fit(scaled_share, -1, 0.6111, (9, -1), lambda t: 1 / scaled_share(t), parts=2),
}


# Tables of core/cpu/math/gelu.h: polynomials in the distance from -n STEP, n < 16.
STEP = mp.mpf("0.34375")


def share(v: mp.mpf) -> mp.mpf:
    return mp.erfc(-v / mp.sqrt(2)) / 2


def density(v: mp.mpf) -> mp.mpf:
    return mp.exp(-v * v / 2) / mp.sqrt(2 * mp.pi)


def slope(v: mp.mpf) -> mp.mpf:
    return share(v) + v * density(v)


# Each with what its error is measured by.
PIECES: dict[str, tuple[Real, Real]] = {
    "gelu_share": (share, share),
    "gelu_slope": (slope, lambda v: max(abs(slope(v)), density(v) / 4)),
}


def piece(name: str, n: int) -> Fit:
    target, size = PIECES[name]
    middle, half = -n * STEP, float(STEP / 2)
    return Fit(
        lambda t: target(middle + t),
        -half,
        half if n else 0,
        (7, -1),
        lambda t: 1 / size(middle + t),
    )


def rounded(value: mp.mpf, single: bool) -> mp.mpf:
    return mp.mpf(float(np.float32(float(value)))) if single else mp.mpf(float(value))


def coefficients(fit: Fit, degree: int, single: bool) -> tuple[list[mp.mpf], float]:
    """The rounded coefficients and log2 of the largest weighted error."""
    count = 6 * (degree + 1)
    nodes = [
        (fit.low + fit.high) / mp.mpf(2)
        + (fit.high - fit.low) / mp.mpf(2) * mp.cos(mp.pi * (k + 0.5) / count)
        for k in range(count)
    ]
    weights = [fit.weight(x) for x in nodes]
    rest = [fit.target(x) for x in nodes]
    chosen: list[mp.mpf] = []
    for first in range(degree + 1):
        powers = range(first, degree + 1)
        a = mp.matrix([[w * x**p for p in powers] for x, w in zip(nodes, weights, strict=True)])
        b = mp.matrix([w * y for y, w in zip(rest, weights, strict=True)])
        exact = mp.lu_solve(a.T * a, a.T * b)[0]
        for _ in range(fit.parts if first == 0 else 1):
            chosen.append(rounded(exact, single))
            exact -= chosen[-1]
            rest = [y - chosen[-1] * x**first for x, y in zip(nodes, rest, strict=True)]
    worst = max(abs(w * y) for y, w in zip(rest, weights, strict=True))
    return chosen, float(mp.log(worst, 2))


def main() -> None:
    names = sys.argv[1:] or [*FITS, *PIECES]
    for name in (name for name in names if name in PIECES):
        for n in range(16):
            found, error = coefficients(piece(name, n), 7, True)
            text = ", ".join(str(np.float32(float(c))) for c in found)
            print(f"{name}[{n}] float32 2^{error:.1f}: {text}")
    for name in (name for name in names if name in FITS):
        for degree, single in zip(FITS[name].degrees, (True, False), strict=True):
            if degree < 0:
                continue
            found, error = coefficients(FITS[name], degree, single)
            text = ", ".join(str(np.float32(float(c))) if single else repr(float(c)) for c in found)
            print(f"{name} {'float32' if single else 'float64'} 2^{error:.1f}: {text}")


if __name__ == "__main__":
    main()
