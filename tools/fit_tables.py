"""The tables in core/cpu/math, lane_tables.h and lane_pieces.h: `python tools/fit_tables.py`.

Where a function is a table's value plus a polynomial in the distance from the table's point, the
value must be more exact than a float32 is. So points are not the middles of their intervals but
floats nearby at which the function happens to be almost a float32 (S. Gal, 1986). Powers and
logarithms to bases 2 and 10 have values in two parts instead.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import mpmath as mp
import numpy as np
from fit_polynomials import Fit, Real, coefficients, near_zero, root

Function = Callable[[np.ndarray], np.ndarray]
f32 = np.float32


def show(name: str, values: Sequence[float]) -> None:
    text = ", ".join(f"{f32(float(v))!s}f" for v in values)
    print(f"alignas(64) inline constexpr float {name}[{len(values)}] = {{{text}}};")


def floats_around(middle: float, share: float) -> np.ndarray:
    """All float32 numbers within that share of the middle, as float64."""
    ulp = float(np.spacing(f32(middle)))
    count = int(share * middle / ulp)
    return float(f32(middle)) + np.arange(-count, count + 1) * ulp


# ---- logarithms ----


def half_ulp(y: np.ndarray) -> np.ndarray:
    return np.exp2(np.floor(np.log2(np.maximum(np.abs(y), 1e-30))) - 24)


def log_point(low: float, high: float) -> tuple[float, float]:
    """1 / m of an interval of m, and its -log, on a grid on which sums with exponents are exact."""
    grid = 2.0**-17
    inverse = floats_around(2 / (low + high), 1 / 300)
    value = np.round(-np.log(inverse) / grid) * grid
    off = np.abs(-np.log(inverse) - value)
    best = np.argsort(off)[:400]
    inverse, value, off = inverse[best], value[best], off[best]
    x = np.linspace(low, high, 401)[None, :]
    rounding = half_ulp(inverse[:, None] * x - 1)
    worst = np.zeros(len(inverse))
    for exponent in (-1.0, 0.0, 1.0):
        y = np.log(x * 2**exponent)
        worst = np.maximum(worst, ((rounding + off[:, None]) / half_ulp(y)).max(1))
    chosen = np.argmin(worst)
    return inverse[chosen], value[chosen]


def exact_inverse(low: float, high: float) -> float:
    """The v of few bits for which |m v - 1| is least and a float32 for each m from low to high."""
    ulp = 2.0**-24 if low < 1 else 2.0**-23
    found = []
    for bits in range(4, 9):
        for v in np.arange(round(0.6 * 2**bits), round(1.4 * 2**bits)) / 2**bits:
            rest = max(abs(low * v - 1), abs((high - ulp) * v - 1))
            if rest < 2**24 * ulp / float(v).as_integer_ratio()[1]:
                found.append((rest, float(v)))
    return min(found)[1]


def show_logarithms() -> None:
    """For the leading five bits of m in [0.75, 1.5); beside 1 the inverse is 1."""
    starts = [(0.5 if n >= 16 else 1) * (1 + n / 32) for n in range(32)]
    intervals = [(low, low + (1 / 32 if low >= 1 else 1 / 64)) for low in starts]
    points = [(1.0, 0.0), *(log_point(*interval) for interval in intervals[1:-1]), (1.0, 0.0)]
    show("kLnInverses", [inverse for inverse, _ in points])
    show("kLnValues", [value for _, value in points])
    inverses = [1.0, *(exact_inverse(*interval) for interval in intervals[1:-1]), 1.0]
    show("kExactInverses", inverses)
    for name, base, bits in (("kLog2", 2, 16), ("kLog10", 10, 18)):
        logs = [-mp.log(v) / mp.log(base) for v in inverses]
        heads = [mp.nint(y * 2**bits) / 2**bits for y in logs]
        show(f"{name}Values", heads)
        show(f"{name}Lows", [y - head for y, head in zip(logs, heads, strict=True)])
    for name, base in (("ln", mp.e), ("log2", mp.mpf(2)), ("log10", mp.mpf(10))):
        slope = 1 / mp.log(base)
        tail = near_zero(lambda r, s=slope: s * (mp.log1p(r) - r) / r**2, -slope / 2)
        low, high = -1 / 64 - 1 / 300 if name == "ln" else -1 / 32, 1 / 32
        show_fit(f"{name}(1 + r)", Fit(tail, low, high, (3, -1), lambda r, s=slope: r / s))


def show_fit(name: str, fit: Fit) -> None:
    found, error = coefficients(fit, fit.degrees[0], True)
    print(f"// {name} 2^{error:.1f}: {', '.join(str(f32(float(c))) for c in found)}")


# ---- pieces ----


def good_points(middle: float, share: float, functions: Sequence[Function]) -> np.ndarray:
    """Floats near the middle at which all functions are almost floats, the best first."""
    points = floats_around(middle, share)
    points = points[:: len(points) // 200_000 + 1]
    worst = np.zeros(len(points))
    for function in functions:
        y = function(points.astype(np.longdouble))
        off = np.abs(y - y.astype(f32)) / np.spacing(np.abs(y).astype(f32))
        worst = np.maximum(worst, off.astype(np.float64))
    return points[np.argsort(worst, stable=True)[:12]]


def piece(
    f: Real,
    point: float,
    low: float,
    high: float,
    degree: int,
    known_slope: float = 0,
    whole: Real | None = None,
) -> tuple[list[mp.mpf], float]:
    """(f(point + t) - f(point)) / t less the slope that is known, and log2 of the error.

    `whole`: what the result is, if f is only a part of it.
    """
    at, slope = mp.mpf(point), mp.mpf(known_slope)
    value = mp.mpf(float(f32(float(f(at)))))
    target = near_zero(lambda t: (f(at + t) - value) / t - slope, mp.diff(f, at) - slope)
    size = whole or f
    weight = near_zero(
        lambda t: t / size(at + t), 1 / mp.diff(size, at) if point == 0 else mp.mpf(0)
    )
    fit = Fit(target, low - point, high - point, (degree, -1), weight)
    return coefficients(fit, degree, True)


ERF_STEPS, ERF_END = 4.0625, 3.94


def almost_float(middle: float, function: Real) -> float:
    """Of 4,000 floats near the middle the one at which the function is nearest to a float."""
    near = floats_around(middle, 1 / 256)
    near = near[:: len(near) // 4000 + 1]
    y = np.array([np.longdouble(mp.nstr(function(mp.mpf(float(v))), 25)) for v in near])
    return float(near[np.argmin(np.abs(y - y.astype(f32)) / np.spacing(y.astype(f32)))])


def show_erf() -> None:
    """For the whole part of 4.0625 |x|."""
    points, pieces = [0.0], []
    for n in range(16):
        low, high = n / ERF_STEPS, min((n + 1) / ERF_STEPS, ERF_END)
        if n:
            points.append(almost_float((low + high) / 2, mp.erf))
        pieces.append(piece(mp.erf, points[n], low, high, 5, 0 if n else 1)[0])
    show("kErfPoints", points)
    show("kErfValues", [mp.erf(mp.mpf(float(p))) for p in points])
    show_pieces("kErfPieces", pieces)


def leading_pieces(
    name: str, f: Real, steps: float, offset: float, end: float, choose: Callable[[float], float]
) -> None:
    """f for the leading bits of steps x + offset, which is 1 or more, x up to `end`."""
    points, values, pieces = [0.0] * 16, [0.0] * 16, [[mp.mpf(0)] * 6 for _ in range(16)]
    first = f32(1).view(np.uint32) >> np.uint32(21)
    for bits in range(int(first), int(first) + 16):
        edges = (np.array([bits, bits + 1], np.uint32) << np.uint32(21)).view(f32)
        low, high = ((float(edge) - offset) / steps for edge in edges)
        if low >= end:
            break
        k, high = bits & 15, min(high, end)
        if low > 0:
            points[k] = choose((low + high) / 2)
        values[k] = f(mp.mpf(points[k]))
        from_0 = low <= 0 and values[k] == 0
        pieces[k], _ = piece(f, points[k], low, high, 5, 1 if from_0 else 0, whole=f)
    show(f"{name}Points", points)
    show(f"{name}Values", values)
    show_pieces(f"{name}Pieces", pieces)


def show_tanh() -> None:
    leading_pieces("kTanh", mp.tanh, 1, 1, 10, lambda x: good_points(x, 1 / 256, [np.tanh])[0])


def show_tanhshrink() -> None:
    def shrink(x: mp.mpf) -> mp.mpf:
        return x - mp.tanh(x)

    leading_pieces("kTanhshrink", shrink, 1 / 0.6, 0, 9.6, lambda x: almost_float(x, shrink))


def show_erfc() -> None:
    """Scaled by e^(x^2)."""

    def scaled(x: mp.mpf) -> mp.mpf:
        return mp.erfc(x) * mp.exp(x * x)

    leading_pieces("kErfc", scaled, 1.428, 1, 10.5, lambda x: almost_float(x, scaled))


ATAN_STEPS = 15.49


def show_atan() -> None:
    """For t to 1, n the nearest whole number to 15.49 t: atan(t), and pi/2 - atan(t) at 16 + n."""
    points, pieces = [], []
    quarter_turn = np.longdouble("1.57079632679489661923132169163975144")
    for n in range(16):
        low, high = max(0.0, (n - 0.5) / ATAN_STEPS), min((n + 0.5) / ATAN_STEPS, 1.0)
        both = [np.arctan, lambda t: quarter_turn - np.arctan(t)]
        points.append(good_points(n / ATAN_STEPS, 1 / 128 / n, both)[0] if n else 0.0)
        pieces.append(piece(mp.atan, points[-1], low, high, 3, 0 if n else 1)[0])
    angles = [mp.atan(mp.mpf(t)) for t in points]
    slopes = [c[0] for c in pieces]
    show("kAtanPoints", points)
    show("kAtanValues", angles + [mp.pi / 2 - angle for angle in angles])
    show("kAtanSlopes", [*slopes, slopes[0] + 1, *slopes[1:]])
    show_pieces("kAtanPieces", [c[1:] for c in pieces])


def tangents(kind: type[np.floating]) -> tuple[list[float], list[float]]:
    """p and q for k < 16: tan(k pi / 16) = p / q, the larger of the two beside 1.

    Of many q that is taken whose p is almost a number of that kind.
    """

    def rounded(x: mp.mpf) -> float:
        return float(kind(float(x)))

    def almost_exact(ratio: mp.mpf) -> tuple[float, float]:
        candidates = (1 + n * 2.0**-23 for n in range(2**14))
        q = min(candidates, key=lambda q: abs(ratio * q - rounded(ratio * q)))
        return rounded(ratio * q), q

    numerators, denominators = [-0.0], [1.0]
    for k in range(1, 16):
        sine, cosine = mp.sinpi(mp.mpf(k) / 16), mp.cospi(mp.mpf(k) / 16)
        flat = abs(k - 8) > 4
        small, large = almost_exact(sine / cosine if flat else cosine / sine)
        numerators.append(small if flat else large)
        denominators.append(large if flat else small)
    return numerators, denominators


def show_tan() -> None:
    for name, values in zip(("Numerators", "Denominators"), tangents(f32), strict=True):
        show(f"kTan{name}", values)
    tail = near_zero(root(lambda t: (mp.tan(t) - t) / t**3), mp.mpf(1) / 3)
    show_fit("tan", Fit(tail, 0, (mp.pi / 32) ** 2, (1, -1), lambda z: z))


def errors(function: Function, point: float, fit: Sequence[mp.mpf], v: np.ndarray) -> float:
    """The largest error of value + t p(t) in float32, in ulp, over arguments v."""
    t = v - point
    p = np.zeros_like(v)
    for c in reversed(fit):
        p = (p * t + float(c)).astype(f32).astype(np.float64)
    y, exact = f32(function(np.float64(point))) + t * p, function(v)
    return float(np.max(np.abs(y.astype(f32) - exact) / (2 * half_ulp(exact))))


def logistic_tables(
    name: str,
    whole: Real,
    functions: Callable[[int], tuple[Real, Function]],
    count: int,
    degree: int,
) -> None:
    """For v from -11 to 0, n the nearest whole number to -v / (11.5 / count)."""
    step = 11.5 / count
    points, values, pieces = [], [], []
    for n in range(count):
        f, function = functions(n)
        middle, low, high = -n * step, (-n - 0.5) * step, (-n + 0.5) * step if n else 0.0
        v = np.random.default_rng(n).uniform(low, high, 1 << 16).astype(f32).astype(np.float64)
        found = []
        for shift in np.linspace(-0.3, 0.3, 9) * step if n else ():
            for p in good_points(-middle + shift, 1 / 300, [lambda u, g=function: g(-u)])[:4]:
                fit = piece(f, -p, low, high, degree, whole=whole)[0]
                found.append((errors(function, -p, fit, v), -p, fit))
        best = min(found, key=lambda each: each[0]) if n else (0, 0.0, None)
        points.append(best[1])
        values.append(f(mp.mpf(best[1])))
        pieces.append(best[2] or piece(f, 0.0, low, high, degree, whole=whole)[0])
    show(f"k{name}Points", points)
    show(f"k{name}Values", values)
    show_pieces(f"k{name}Pieces", pieces)


def show_logistic() -> None:
    sigmoid = lambda v: 1 / (1 + mp.exp(-v)), lambda v: 1 / (1 + np.exp(-v))
    silu = lambda v: v * sigmoid[0](v), lambda v: v * sigmoid[1](v)
    rest = lambda v: v * (sigmoid[0](v) - 0.5), lambda v: v * (sigmoid[1](v) - 0.5)
    logistic_tables("Sigmoid", sigmoid[0], lambda n: sigmoid, 16, 5)
    logistic_tables("Silu", silu[0], lambda n: rest if n < 2 else silu, 32, 5)


def show_pieces(name: str, pieces: Sequence[Sequence[mp.mpf]]) -> None:
    rows, count = [], len(pieces)
    for power in range(len(pieces[0])):
        rows.append("{" + ", ".join(f"{f32(float(p[power]))!s}f" for p in pieces) + "}")
    print(
        f"alignas(64) inline constexpr float {name}[{len(rows)}][{count}] = {{{', '.join(rows)}}};"
    )


POW_FIRST = 0x3F3E0000  # bits of the number from which on the leading bits of m make the intervals


def show_pow() -> None:
    """log(m) for 32 intervals of m beside 1, and 2^(k / 32), each in two parts."""
    edges = (POW_FIRST + (np.arange(33, dtype=np.uint32) << np.uint32(18))).view(f32)
    inverses = [
        1.0 if low < 1 < high else exact_inverse(low, high)
        for low, high in itertools.pairwise(edges.tolist())
    ]
    logs = [-mp.log(mp.mpf(v)) for v in inverses]
    heads = [mp.nint(y * 2**16) / 2**16 for y in logs]
    show("kPowInverses", inverses)
    show("kPowLogs", heads)
    show("kPowLogLows", [y - head for y, head in zip(logs, heads, strict=True)])
    step = mp.log(2) / 32
    k_bits = np.arange(32, dtype=np.uint32) << np.uint32(18)
    for name, sign, factor in (("kPow", 1, 1), ("kPowDown", -1, 1 / 4)):
        powers = [factor * mp.e ** (sign * step * k) for k in range(32)]
        singles = np.array([float(y) for y in powers], f32)
        bits = singles.view(np.uint32)
        show(f"{name}Bits", (bits - k_bits if sign > 0 else bits + k_bits).view(f32))
        show(f"{name}Rests", [mp.log(y / float(t)) for y, t in zip(powers, singles, strict=True)])
    show("kPowStepParts", [1 / step, step, step - float(f32(float(step)))])
    tail = near_zero(lambda r: (mp.log1p(r) - r) / r**2, -mp.mpf(1) / 2)
    show_fit("log(1 + r)", Fit(tail, -1 / 50, 1 / 50, (3, -1), lambda r: r))
    rest = near_zero(lambda r: (mp.exp(r) - 1 - r) / r**2, mp.mpf(1) / 2)
    show_fit("e^r", Fit(rest, -1 / 90, 1 / 90, (1, -1), lambda r: r**2))


def show_near_zero() -> None:
    """Inverse hyperbolic functions near 0, and acosh near 1."""
    asinh = root(lambda t: (mp.asinh(t) - t) / t**3)
    show_fit("asinh", Fit(near_zero(asinh, -mp.mpf(1) / 6), 0, 1 / 16, (3, -1), lambda z: z))
    atanh = root(lambda t: (mp.atanh(t) - t) / t**3)
    show_fit("atanh", Fit(near_zero(atanh, mp.mpf(1) / 3), 0, 1 / 64, (2, -1), lambda z: z))
    acosh = near_zero(lambda m: (mp.acosh(1 + m) / mp.sqrt(2 * m) - 1) / m, -mp.mpf(1) / 12)
    show_fit("acosh", Fit(acosh, 0, 1 / 32, (2, -1), lambda m: m))


def main() -> None:
    show_logarithms()
    show_tanh()
    show_tanhshrink()
    show_erf()
    show_erfc()
    show_atan()
    show_tan()
    show_logistic()
    show_pow()
    show_near_zero()


if __name__ == "__main__":
    main()
