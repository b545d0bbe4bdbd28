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
    short: int = -1  # for float32 results that are computed in float64; -1: not needed


def root(f: Real) -> Real:
    """f as a function of the square of its argument."""
    return lambda z: f(mp.sqrt(z))


def scaled_erfc(t: mp.mpf) -> mp.mpf:
    """(1 + 2 x) e^(x^2) erfc(x), t = (x - 2.5) / (x + 2.5)."""
    x = mp.mpf(2.5) * (1 + t) / (1 - t)
    return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)


def short_erfc(t: mp.mpf) -> mp.mpf:
    """(1 + x) e^(x^2) erfc(x), t = 0.75 - 2 / (1 + x)."""
    x = 2 / (0.75 - t) - 1
    return (1 + x) * mp.exp(x * x) * mp.erfc(x)


def near_zero(f: Real, limit: mp.mpf, bound: float = 1e-25) -> Real:
    return lambda x: limit if abs(x) < bound else f(x)


# Beyond |x| = ERF_CENTRE sqrt(erfc(x)) = ERF_ROOT + u (ERF_TWICE + u): the centre is a float32 for
# which the root of erfc, and twice the root of that, are float32 numbers within 2^-31.
ERF_CENTRE, ERF_ROOT, ERF_TWICE = (float(np.float32(v)) for v in (0.9602013, 0.4177152, 1.2926178))


def erf_rest(t: mp.mpf) -> mp.mpf:
    half = mp.mpf(ERF_TWICE) / 2
    return mp.sqrt(half**2 - ERF_ROOT + mp.sqrt(mp.erfc(t + ERF_CENTRE))) - half


def log_rest(base: int) -> Fit:
    """log(1 + f) to a base is f / log(base) + f^2 p(f), 1 + f from the root of 1/2 to that of 2."""
    slope = 1 / mp.log(base)
    return Fit(
        near_zero(lambda f: (mp.log1p(f) - f) * slope / f**2, -slope / 2),
        -0.2929,
        0.41422,
        (8, -1),
        lambda f: f**2 / abs(mp.log1p(f)),
    )


def scaled_share(t: mp.mpf) -> mp.mpf:
    """(3.5 + x) e^(x^2 / 2) times the normal distribution above x = 3.5 (1 + t) / (1 - t)."""
    x = mp.mpf(3.5) * (1 + t) / (1 - t)
    return (3.5 + x) * mp.exp(x * x / 2) * mp.erfc(x / mp.sqrt(2)) / 2


def erfinv_of(w: mp.mpf) -> mp.mpf:
    """erfinv(x) / x with w = -log(1 - x^2)."""
    if w < 1e-20:
        return mp.sqrt(mp.pi) / 2
    x = mp.sqrt(-mp.expm1(-w))
    # from erfc where 1 - x has few bits left
    less = mp.exp(-w) / (1 + x)
    y = mp.sqrt(w)
    for _ in range(12):
        y += (mp.erfc(y) - less) * mp.exp(y * y) * mp.sqrt(mp.pi) / 2
    return y / x


def scaled_erfc_to_the_end(t: mp.mpf) -> mp.mpf:
    """The same up to x = infinity."""
    return scaled_erfc(t) if t < 1 - mp.mpf(10) ** -12 else 2 / mp.sqrt(mp.pi)


def bessel_far(order: int) -> Real:
    """sqrt(x) e^-x times the modified Bessel function, t = 16 / x - 1."""

    def scaled(t: mp.mpf) -> mp.mpf:
        if t + 1 < mp.mpf(10) ** -30:
            return 1 / mp.sqrt(2 * mp.pi)
        x = 16 / (t + 1)
        return mp.besseli(order, x) * mp.exp(-x) * mp.sqrt(x)

    return scaled


def erfcx_derivative(order: int) -> Real:
    """(1 + 2 x)^(order + 1) times that of e^(x^2) erfc(x), without its sign; t as scaled_erfc."""

    def scaled(t: mp.mpf) -> mp.mpf:
        x = mp.mpf(2.5) * (1 + t) / (1 - t)
        y = mp.exp(x * x) * mp.erfc(x)
        slope = 2 * x * y - 2 / mp.sqrt(mp.pi)
        derivative = -slope if order == 1 else 2 * y + 2 * x * slope
        return derivative * (1 + 2 * x) ** (order + 1)

    return scaled


# Derivatives of e^-x I_n(x), from I0 and I1 times e^-x.
BESSEL_DERIVATIVES: dict[tuple[int, int], Callable[[mp.mpf, mp.mpf, mp.mpf], mp.mpf]] = {
    (0, 1): lambda x, i0, i1: i1 - i0,
    (0, 2): lambda x, i0, i1: 2 * i0 - 2 * i1 - i1 / x,
    (1, 1): lambda x, i0, i1: i0 - i1 - i1 / x,
    (1, 2): lambda x, i0, i1: (2 + 2 / x + 2 / x**2) * i1 - (2 + 1 / x) * i0,
}


def bessel_derivative_far(order: int, derivative: int) -> Real:
    """x^(derivative + 1/2) times that of e^-x I_n(x), t = 16 / x - 1."""

    def scaled(t: mp.mpf) -> mp.mpf:
        x = 16 / (t + 1)
        i0, i1 = (mp.besseli(n, x) * mp.exp(-x) for n in (0, 1))
        return BESSEL_DERIVATIVES[order, derivative](x, i0, i1) * x ** (derivative + mp.mpf(0.5))

    return scaled


def normal_place(t: mp.mpf) -> mp.mpf:
    """The place below which a share e^(-s^2 / 2) of the normal distribution lies, divided by s.

    t = (s - 5) / (s + 5)
    """
    s = 5 * (1 + t) / (1 - t)
    y = s
    for _ in range(40):
        share = mp.erfc(y / mp.sqrt(2)) / 2
        density = mp.exp(-y * y / 2) / mp.sqrt(2 * mp.pi)
        step = (mp.log(share) + s * s / 2) * share / density
        y += step
        if abs(step) < mp.mpf(10) ** -50:
            break
    return -y / s


ERFINV_CENTRE = erfinv_of(mp.mpf(2))
DIGAMMA_ZERO = mp.findroot(mp.digamma, 1.46) - 1


def stirling(x: mp.mpf) -> mp.mpf:
    """What lgamma(x) is beyond (x - 1/2) (log(x) - 1) + (log(2 pi) - 1) / 2."""
    return mp.loggamma(x) - (x - 0.5) * (mp.log(x) - 1) - (mp.log(2 * mp.pi) - 1) / 2


# Taylor's first terms where the closed form cancels.
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
    "log2_float32": log_rest(2),
    "log10_float32": log_rest(10),
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
    # log2(1 + f) = s p(z), s = f / (2 + f), z = s^2, and 2^r for |r| <= 1/2: powers of float32
    "log2": Fit(
        near_zero(root(lambda s: 2 * mp.atanh(s) / (s * mp.log(2))), 2 / mp.log(2)),
        0,
        0.0401,
        (-1, -1),
        short=5,
    ),
    "exp2": Fit(lambda r: mp.power(2, r), -0.5, 0.5, (6, -1), short=7),
    # tanh(x) = x + x z p(z), z = x^2, |x| <= 1
    "tanh": Fit(
        near_zero(root(lambda x: (mp.tanh(x) - x) / x**3), -mp.mpf(1) / 3),
        0,
        1,
        (6, -1),
        lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)),
    ),
    # x - tanh(x) = x z p(z), z = x^2, |x| <= 0.6
    "tanhshrink": Fit(
        near_zero(root(lambda x: (x - mp.tanh(x)) / x**3), mp.mpf(1) / 3), 0, 0.36, (6, 14), parts=2
    ),
    # erf(x) = x + x p(z), z = x^2, |x| <= 1/2
    "erf": Fit(
        near_zero(root(lambda x: mp.erf(x) / x - 1), 2 / mp.sqrt(mp.pi) - 1), 0, 0.25, (-1, 9)
    ),
    # in float32 up to 1; beyond ERF_CENTRE the root of 1 - erf(x), with u = t p(t)
    "erf_float32": Fit(
        near_zero(root(lambda x: mp.erf(x) / x - 1), 2 / mp.sqrt(mp.pi) - 1),
        0,
        1,
        (6, -1),
        lambda z: mp.sqrt(z) / mp.erf(mp.sqrt(z)),
    ),
    "erf_far": Fit(
        near_zero(lambda t: erf_rest(t) / t, mp.diff(erf_rest, 0), 1e-7),
        0,
        3.92 - ERF_CENTRE,
        (7, -1),
        lambda t: 2 * t * (ERF_TWICE + 2 * erf_rest(t)) * mp.sqrt(mp.erfc(t + ERF_CENTRE)),
    ),
    # erfc(x) e^(x^2) (1 + 2 x) from 1/2 to 28
    "erfc": Fit(scaled_erfc, -2 / 3, 0.8361, (-1, 22), parts=2),
    # in float32 erfc(x) e^(x^2) (1 + x) from 0 to 9.3
    "erfc_float32": Fit(short_erfc, -1.25, 0.5558, (12, -1), lambda t: 1 / short_erfc(t), parts=2),
    # the same for the normal distribution from 0 to 14.5, relative to the result
    "normal_share": Fit(scaled_share, -1, 0.6111, (9, -1), lambda t: 1 / scaled_share(t), parts=2),
    # erfinv(x) = x p(w - 3.125) with w = -log(1 - x^2) up to 6.25
    "erfinv": Fit(lambda u: erfinv_of(u + mp.mpf(3.125)), -3.125, 3.125, (-1, 24), short=11),
    # in float32 erfinv(x) = x (c + s p(s)), s = w - 2, c what it is there, up to w = 4
    "erfinv_float32": Fit(
        near_zero(lambda s: (erfinv_of(s + 2) - ERFINV_CENTRE) / s, mp.mpf(0.25)),
        -2,
        2,
        (8, -1),
        lambda s: s / erfinv_of(s + 2),
    ),
    # beyond, x p(sqrt(w) - 3.25) up to 4 and x p(sqrt(w) - 5) up to 6.01
    "erfinv_far": Fit(
        lambda s: erfinv_of((s + mp.mpf(3.25)) ** 2), -0.75, 0.75, (-1, 20), short=10
    ),
    "erfinv_last": Fit(lambda s: erfinv_of((s + mp.mpf(5)) ** 2), -1, 1.01, (-1, 19)),
    # lgamma(2 + t) = t p(t), from 1.25 on by itself: nearer to 1 log(1 + t) is taken from it
    "lgamma": Fit(
        near_zero(lambda t: mp.loggamma(2 + t) / t, 1 - mp.euler), -0.75, 0.5, (-1, 22), short=12
    ),
    # from 8 on (x - 1/2) (log(x) - 1) + (log(2 pi) - 1) / 2 + p(z) / x, z = 1 / x^2
    "lgamma_far": Fit(
        near_zero(lambda z: stirling(1 / mp.sqrt(z)) / mp.sqrt(z), mp.mpf(1) / 12, 1e-12),
        0,
        1 / 64,
        (-1, 6),
        mp.sqrt,
        short=3,
    ),
    # sin(pi f) = pi f p(z), z = f^2, |f| <= 1/2
    "sine_of_turns": Fit(
        near_zero(root(lambda f: mp.sinpi(f) / (mp.pi * f)), mp.mpf(1)), 0, 0.25, (-1, 8), short=5
    ),
    # digamma(1 + f) = (f - zero) p(f - 1/2), f from 0 to 1
    "digamma": Fit(
        lambda f: mp.digamma(f + 1.5) / (f + 0.5 - DIGAMMA_ZERO), -0.5, 0.5, (-1, 22), short=11
    ),
    # from 8 on log(x) - 1 / (2 x) - z p(z), z = 1 / x^2
    "digamma_far": Fit(
        near_zero(
            lambda z: (mp.log(1 / mp.sqrt(z)) - mp.sqrt(z) / 2 - mp.digamma(1 / mp.sqrt(z))) / z,
            mp.mpf(1) / 12,
        ),
        0,
        1 / 64,
        (-1, 6),
        lambda z: z,
        short=3,
    ),
    # pi f cot(pi f) = (1 - 4 z) p(z), z = f^2, |f| <= 1/2
    "cotangent_of_turns": Fit(
        near_zero(
            root(lambda f: mp.cospi(f) * mp.pi * f / mp.sinpi(f) / (1 - 4 * f * f)), mp.mpf(1)
        ),
        0,
        0.25,
        (-1, 13),
        short=8,
    ),
    # from 8 on 1 / x + z / 2 + z p(z) / x, z = 1 / x^2
    "trigamma_far": Fit(
        near_zero(
            lambda z: (mp.psi(1, 1 / mp.sqrt(z)) - mp.sqrt(z) - z / 2) / (z * mp.sqrt(z)),
            mp.mpf(1) / 6,
        ),
        0,
        1 / 64,
        (-1, 7),
        lambda z: z,
        short=3,
    ),
    # src/tilewright/special/polynomials.py says what these are
    "bessel_i0": Fit(
        near_zero(lambda z: (mp.besseli(0, 2 * mp.sqrt(z)) - 1) / z, mp.mpf(1)),
        0,
        16,
        (-1, 15),
        lambda z: z / mp.besseli(0, 2 * mp.sqrt(z)),
    ),
    "bessel_i1": Fit(
        near_zero(root(lambda x: mp.besseli(1, 2 * x) / (2 * x)), mp.mpf(1) / 2),
        0,
        16,
        (-1, 15),
        lambda z: 2 * mp.sqrt(z) / mp.besseli(1, 2 * mp.sqrt(z)),
    ),
    "bessel_i0_far": Fit(bessel_far(0), -1, 1, (-1, 22)),
    "bessel_i1_far": Fit(bessel_far(1), -1, 1, (-1, 22)),
    "bessel_i0e_slope_far": Fit(bessel_derivative_far(0, 1), -1, 1, (-1, 22)),
    "bessel_i0e_curve_far": Fit(bessel_derivative_far(0, 2), -1, 1, (-1, 22)),
    "bessel_i1e_slope_far": Fit(bessel_derivative_far(1, 1), -1, 1, (-1, 22)),
    "bessel_i1e_curve_far": Fit(bessel_derivative_far(1, 2), -1, 1, (-1, 22)),
    "erfcx_slope": Fit(erfcx_derivative(1), -1, 1, (-1, 26)),
    "erfcx_curve": Fit(erfcx_derivative(2), -1, 1, (-1, 26)),
    "erfcx": Fit(scaled_erfc_to_the_end, -1, 1, (-1, 26)),
    "ndtri": Fit(normal_place, -0.28371, 0.77073, (-1, 26)),
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
        degrees = (*FITS[name].degrees, FITS[name].short)
        for degree, single in zip(degrees, (True, False, False), strict=True):
            if degree < 0:
                continue
            found, error = coefficients(FITS[name], degree, single)
            text = ", ".join(str(np.float32(float(c))) if single else repr(float(c)) for c in found)
            kind = "float32" if single else f"float64 of degree {degree}"
            print(f"{name} {kind} 2^{error:.1f}: {text}")


if __name__ == "__main__":
    main()
