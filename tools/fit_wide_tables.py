"""The float64 tables in core/cpu/math/tables_float64.h: `python tools/fit_wide_tables.py`.

A function is a table's value plus a polynomial in the distance from the table's point, as in
fit_tables.py, or the table holds logarithms, powers and angles in two parts, or tangents as
quotients.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np
from fit_polynomials import Fit, Real, coefficients, erfinv_of, near_zero, root
from fit_tables import tangents

ENTRIES = 16
Log = Callable[[np.ndarray], np.ndarray]


def show(name: str, values: Sequence[float], kind: str = "double") -> None:
    text = ", ".join(hex(v) if kind != "double" else repr(float(v)) for v in values)
    print(f"alignas(64) inline constexpr {kind} {name}[{len(values)}] = {{{text}}};")


def show_in_parts(name: str, values: Sequence[mp.mpf], zero: float = 0.0) -> None:
    """Rounded to float64, and what that leaves. A zero of -0.0 changes no zero added to it."""
    show(f"{name}s", [float(v) or zero for v in values])
    show(f"{name}Lows", [float(v - float(v)) for v in values])


# ---- pieces ----


def good_point(f: Real, middle: float) -> float:
    """A number near the middle at which the function is almost a float64 (S. Gal, 1986)."""
    shares = np.random.default_rng(1).uniform(-1, 1, 3000) / 256

    def off(point: float) -> float:
        y = f(mp.mpf(point))
        return float(abs(y - float(y))) / math.ulp(float(y))

    return min((float(c) for c in middle * (1 + shares)), key=off)


def interpolated(f: Real, low: float, high: float, degree: int) -> list[float]:
    """The polynomial through Chebyshev nodes."""
    middle, half, count = mp.mpf(low + high) / 2, mp.mpf(high - low) / 2, degree + 1
    nodes = [middle + half * mp.cos(mp.pi * (k + 0.5) / count) for k in range(count)]
    powers = mp.matrix([[x**p for p in range(count)] for x in nodes])
    return [float(c) for c in mp.lu_solve(powers, mp.matrix([f(x) for x in nodes]))]


def fitted(target: Real, low: float, high: float, degree: int, weight: Real) -> list[float]:
    """Rounded one after the other, where that counts."""
    fit = Fit(target, low, high, (-1, degree), weight)
    return [float(c) for c in coefficients(fit, degree, False)[0]]


Piece = tuple[float, float, list[float]]


def piece(f: Real, low: float, high: float, degree: int) -> Piece:
    """(point, value, polynomial): f(point + t) = value + t p(t); beside f(0) = 0, t + t p(t)."""
    if low == 0 and f(mp.mpf(0)) == 0:
        slope = near_zero(lambda t: f(t) / t - 1, mp.diff(f, 0) - 1)
        return 0.0, 0.0, interpolated(slope, low, high, degree)
    point = good_point(f, (low + high) / 2)
    at, value = mp.mpf(point), float(f(mp.mpf(point)))
    slope = near_zero(lambda t: (f(at + t) - value) / t, mp.diff(f, at), 1e-12)
    return point, value, interpolated(slope, low - point, high - point, degree)


def fitted_piece(f: Real, low: float, high: float, degree: int) -> Piece:
    """The same with a point and a value in each interval, and a closer fit.

    The point is where t p(t) is the same share of the result at both ends.
    """
    ends = f(mp.mpf(low)), f(mp.mpf(high))
    balance = 2 * ends[0] * ends[1] / (ends[0] + ends[1])
    middle = mp.findroot(lambda x: f(x) - balance, (low, high), solver="anderson", tol=1e-9)
    point = good_point(f, float(middle))
    at, value = mp.mpf(point), float(f(mp.mpf(point)))
    slope = near_zero(lambda t: (f(at + t) - value) / t, mp.diff(f, at), 1e-12)
    part = fitted(slope, low - point, high - point, degree, lambda t: t / f(at + t))
    return point, value, part


def show_pieces(
    name: str,
    f: Real,
    edges: Sequence[float],
    degree: int,
    first: int,
    fit: Callable[[Real, float, float, int], Piece] = piece,
) -> None:
    """`first`: the entry of the interval beside 0."""
    found = [fit(f, a, b, degree) for a, b in itertools.pairwise(edges)]
    found = [found[(k - first) % ENTRIES] for k in range(ENTRIES)]
    show(f"{name}Points", [point for point, _, _ in found])
    show(f"{name}Values", [value for _, value, _ in found])
    rows = ["{" + ", ".join(repr(p[k]) for _, _, p in found) + "}" for k in range(degree + 1)]
    shape = f"[{degree + 1}][{ENTRIES}]"
    print(f"alignas(64) inline constexpr double {name}Pieces{shape} = {{{', '.join(rows)}}};")


TANH_SCALE, ERF_SCALE, ERF_FIRST, ERFC_SCALE = 0.79, 2.62, 0.8, 0.549
TANHSHRINK_FIRST, TANHSHRINK_END = 0.8, 19.1
ERFINV_SCALE = 0.4155


def quarters_of_octaves(scale: float) -> list[float]:
    """Where the leading bits of scale x + 1 change, four times an octave."""
    places = [2.0 ** (n // 4) * (1 + n % 4 / 4) for n in range(ENTRIES + 1)]
    return [(place - 1) / scale for place in places]


def show_tanh() -> None:
    show_pieces("kTanh", mp.tanh, quarters_of_octaves(TANH_SCALE), 13, 12)


def show_erf() -> None:
    """Even intervals, of which the first is a fifth shorter."""
    edges = [0.0] + [(n + ERF_FIRST) / ERF_SCALE for n in range(ENTRIES)]
    show_pieces("kErf", mp.erf, edges, 13, 0)


def scaled_erfc(x: mp.mpf) -> mp.mpf:
    return mp.erfc(x) * mp.exp(x * x)


def show_erfc() -> None:
    show_pieces("kErfc", scaled_erfc, quarters_of_octaves(ERFC_SCALE), 13, 12, fitted_piece)


def shrunk(x: mp.mpf) -> mp.mpf:
    return x - mp.tanh(x)


def show_tanhshrink() -> None:
    """Even from 0.8 on; the cube's factor to there."""
    scale = 15 / (TANHSHRINK_END - TANHSHRINK_FIRST)
    print(f"// {scale} x + {1 - scale * TANHSHRINK_FIRST}")
    edges = [TANHSHRINK_FIRST + edge for edge in quarters_of_octaves(scale)]
    show_pieces("kTanhshrink", shrunk, edges, 13, 12, fitted_piece)
    factor = near_zero(root(lambda x: (shrunk(x) / x**3 - mp.mpf(1) / 3) / x**2), -mp.mpf(2) / 15)
    limit = TANHSHRINK_FIRST**2 * 1.001
    show_fit("tanhshrink", factor, limit, 13)


def show_erfinv() -> None:
    """erfinv(x) / x by w = -log(1 - x^2)."""
    show_pieces("kErfinv", erfinv_of, quarters_of_octaves(ERFINV_SCALE), 11, 12, fitted_piece)


# ---- exact values ----


def show_powers() -> None:
    """2^(k / 16): bits to which k 2^48 is added, and what rounding left, as a share."""
    powers = [mp.mpf(2) ** (mp.mpf(k) / ENTRIES) for k in range(ENTRIES)]
    bits = np.array([float(p) for p in powers]).view(np.uint64)
    less = bits - (np.arange(ENTRIES, dtype=np.uint64) << np.uint64(48))
    show("kPowerBits", [int(b) for b in less], "std::int64_t")
    show("kPowerRests", [float(p / float(p) - 1) for p in powers])


def show_logarithms() -> None:
    """log(1 + k / 16) on a grid on which sums with multiples of log 2 are exact, and the rest."""
    grid = mp.mpf(2) ** -42
    logs = [mp.log1p(mp.mpf(k) / ENTRIES) for k in range(ENTRIES)]
    heads = [float(mp.nint(v / grid) * grid) for v in logs]
    show("kLogs", heads)
    show("kLogLows", [float(v - head) for v, head in zip(logs, heads, strict=True)])


def inverse_on_grid(low: float, high: float, log: Log, grid: float) -> tuple[float, float]:
    """1 / m of an interval of m, and minus its logarithm, which the grid has within 2^-62."""
    shares = np.random.default_rng(1).uniform(-1, 1, 1 << 20) / 1000
    inverses = 2 / (low + high) * (1 + shares)
    logs = -log(inverses.astype(np.longdouble))
    best = np.argmin(np.abs(logs / grid - np.rint(logs / grid)))
    return float(inverses[best]), float(np.rint(logs[best] / grid) * grid)


def show_inverses(name: str, log: Log, grid: float) -> None:
    """For the leading four bits of m in [0.75, 1.5); beside 1 the inverse is 1."""
    found = []
    for n in range(ENTRIES):
        half = 0.5 if n >= ENTRIES // 2 else 1.0
        low, high = half * (1 + n / ENTRIES), half * (1 + (n + 1) / ENTRIES)
        beside = n in (0, ENTRIES - 1)
        found.append((1.0, 0.0) if beside else inverse_on_grid(low, high, log, grid))
    show(f"{name}Inverses", [inverse for inverse, _ in found])
    show(f"{name}Values", [value for _, value in found])


def show_bases() -> None:
    show_inverses("kLn", np.log, 2.0**-42)
    show_inverses("kLog2", np.log2, 2.0**-42)
    show_inverses("kLog10", np.log10, 2.0**-43)
    for name, base in (("ln", mp.e), ("log2", mp.mpf(2)), ("log10", mp.mpf(10))):
        slope = 1 / mp.log(base)
        tail = near_zero(lambda r, s=slope: s * (mp.log1p(r) - r) / r**2, -slope / 2)
        show_weighted(name, tail, (-1 / 31, 1 / 16), 9, lambda r: r)


ATAN_STEPS = 16.99


def angle_of_share(share: mp.mpf) -> mp.mpf:
    """atan(x) by x / (1 + x)."""
    return mp.atan(share / (1 - share)) if share < 1 else mp.pi / 2


def show_atan() -> None:
    """Points p / q of few bits for even steps of x / (1 + x), of which the first two are one."""
    p, q = [mp.mpf(0)], [mp.mpf(1)]
    for k in range(1, ENTRIES):
        low, high = mp.mpf(k + 1) / ATAN_STEPS, mp.mpf(k + 2) / ATAN_STEPS
        middle = mp.tan((angle_of_share(low) + angle_of_share(high)) / 2)
        p.append(mp.nint(middle * 512) / 512 if middle <= 1 else mp.mpf(1))
        q.append(mp.mpf(1) if middle <= 1 else mp.nint(512 / middle) / 512)
    p[-1], q[-1] = mp.mpf(1), mp.mpf(0)
    show("kAtanNumerators", p)
    show("kAtanDenominators", q)
    show_in_parts("kAtanValue", [mp.atan2(a, b) for a, b in zip(p, q, strict=True)])


def show_sine() -> None:
    """sin and cos of k pi / 16."""
    show_in_parts("kSine", [mp.sinpi(mp.mpf(k) / ENTRIES) for k in range(ENTRIES)], -0.0)
    show("kCosines", [float(mp.cospi(mp.mpf(k) / ENTRIES)) for k in range(ENTRIES)])


def show_tan() -> None:
    for name, values in zip(("Numerators", "Denominators"), tangents(np.float64), strict=True):
        show(f"kTan{name}", values)


# ---- polynomials ----


def show_weighted(name: str, f: Real, ends: tuple[float, float], degree: int, weight: Real) -> None:
    found, error = coefficients(Fit(f, *ends, (-1, degree), weight), degree, False)
    print(f"// {name} 2^{error:.1f}: {', '.join(repr(float(c)) for c in found)}")


def show_fit(name: str, f: Real, high: float, degree: int, low: float = 0) -> None:
    show_weighted(name, f, (low, high), degree, lambda x: x)


def cubic(f: Real, limit: mp.mpf) -> Real:
    """(f(t) / t - 1) / t^2 in t^2."""
    return near_zero(root(lambda t: (f(t) / t - 1) / t**2), limit)


def show_polynomials() -> None:
    exp = near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(1) / 2)
    step = float(mp.log(2) / 32) * 1.001
    show_weighted("exp, short", exp, (-step, step), 4, lambda r: r**2)
    show_fit("exp", exp, step, 5, -step)
    power = near_zero(lambda f: (mp.mpf(2) ** f - 1) / f, mp.log(2))
    show_weighted("2^f", power, (-0.5001, 0.5001), 10, lambda f: f / mp.mpf(2) ** f)
    tail = near_zero(lambda r: (mp.log1p(r) - r) / r**2, -mp.mpf(1) / 2)
    show_weighted("rough log", tail, (-1 / 31, 1 / 16), 7, lambda r: r**2)
    show_fit("asin to 1/2", cubic(mp.asin, mp.mpf(1) / 6), 0.2501, 11)
    show_fit("atanh to 1/63", cubic(mp.atanh, mp.mpf(1) / 3), 63**-2, 3)
    show_fit("atanh to 0.1", cubic(mp.atanh, mp.mpf(1) / 3), 0.1**2, 5)
    show_fit("asinh to 0.15", cubic(mp.asinh, -mp.mpf(1) / 6), 0.15**2, 7)
    acosh = near_zero(lambda m: (mp.acosh(1 + m) / mp.sqrt(2 * m) - 1) / m, -mp.mpf(1) / 12)
    show_fit("acosh to 1 + 1/64", acosh, 1 / 64, 4)
    show_fit("atan to 0.1345", cubic(mp.atan, -mp.mpf(1) / 3), 0.1345**2, 6)
    show_fit("sin to pi/32", cubic(mp.sin, -mp.mpf(1) / 6), float(mp.pi / 32 * 1.001) ** 2, 3)
    cosine = near_zero(root(lambda t: (mp.cos(t) - 1) / t**2), -mp.mpf(1) / 2)
    show_fit("cos to pi/32", cosine, float(mp.pi / 32 * 1.001) ** 2, 3)
    show_fit("tan to pi/32", cubic(mp.tan, mp.mpf(1) / 3), float(mp.pi / 32 * 1.001) ** 2, 4)


def main() -> None:
    show_powers()
    show_logarithms()
    show_bases()
    show_tanh()
    show_erf()
    show_erfc()
    show_tanhshrink()
    show_erfinv()
    show_atan()
    show_sine()
    show_tan()
    show_polynomials()


if __name__ == "__main__":
    main()
