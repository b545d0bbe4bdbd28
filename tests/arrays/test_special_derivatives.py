"""First and second derivatives of special functions against many digits, at hard points.

Near 0, in the tails, near whole numbers and poles: where differences of functions cancel.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
import pytest

import tilewright as tw
from tilewright import Tensor

special = tw.special

Real = Callable[[Any], Any]


class Derivatives(NamedTuple):
    """A function, its derivatives by mpmath, and where they are tried.

    Errors are stated in steps of float64, relative to the derivative, or to `beside` where that is
    larger; of float32 in its steps. They grow with what `growth` says of x.
    """

    of: Callable[[Tensor], Tensor]
    first: Real
    second: Real
    points: tuple[float, ...]
    bounds: tuple[float, float]
    narrow: tuple[float, float] = (1.0, 1.5)  # of float32
    growth: Callable[[float], float] = lambda x: 1.0
    beside: float = 0.0


SMALL = (1e-300, 1e-45, 1e-40, 1e-20, 1e-12, 1e-8, 1e-4, 1e-3, 0.01)
SIGNED = tuple(s * x for x in (*SMALL, 0.1, 0.5, 1.0, 2.0, 3.75, 7.99, 8.01, 20.0) for s in (1, -1))
TAILS = (50.0, 700.0, 1e3, 1e4, 1e6, 1e10)
FAR = tuple(s * x for x in TAILS for s in (1, -1))
POSITIVE = (*SMALL[4:], 0.1, 0.5, 0.99, 1.0, 1.25, 1.46163, 2.0, 3.5, 10.0, 50.0, 1e4, 1e8, 1e12)
BELOW_0 = (-1e-8, -0.1, -0.5, -0.999, -1.001, -1.5, -2.25, -7.5, -20.75)
INSIDE = (1e-30, 1e-8, 0.01, 0.25, 0.4999, 0.5001, 0.75, 0.99, 1 - 1e-6)


def bessel(n: int, order: int) -> Real:
    """The derivative of I_n by the sum of its neighbours."""
    if order == 0:
        return lambda x: mp.besseli(n, x)
    below, above = bessel(abs(n - 1), order - 1), bessel(n + 1, order - 1)
    return lambda x: (below(x) + above(x)) / 2


def scaled_bessel(n: int, order: int) -> Real:
    def value(x: Any) -> Any:
        y, slope, curve = (bessel(n, k)(abs(x)) for k in range(3))
        derivative = slope - y if order == 1 else curve - 2 * slope + y
        sign = mp.sign(x) if (n + order) % 2 else 1
        return sign * derivative * mp.exp(-abs(x))

    return value


def erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def erfcx_slope(x: Any) -> Any:
    return 2 * x * erfcx(x) - 2 / mp.sqrt(mp.pi)


def density(x: Any) -> Any:
    return mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)


def hazard(x: Any) -> Any:
    return density(x) / (mp.erfc(-x / mp.sqrt(2)) / 2)


def share(x: Any) -> Any:
    return 1 / (1 + mp.exp(-x))


def normal_place(x: Any) -> Any:
    """By Newton's steps in the logarithm."""
    y = -mp.sqrt(-2 * mp.log(x)) if x < 0.5 else mp.sqrt(2) * mp.erfinv(2 * x - 1)
    for _ in range(60):
        below = mp.erfc(-y / mp.sqrt(2)) / 2
        step = mp.log(below / x) * below / density(y)
        y -= step
        if abs(step) < abs(y) * mp.mpf(2) ** -200:
            break
    return y


def squared(x: float) -> float:
    return 1 + x * x


def sinc_derivatives(x: Any) -> tuple[Any, Any]:
    p = mp.pi
    s, c = mp.sinpi(x), mp.cospi(x)
    return c / x - s / (p * x**2), -p * s / x - 2 * c / x**2 + 2 * s / (p * x**3)


CASES: dict[str, Derivatives] = {
    "i0": Derivatives(special.i0, bessel(0, 1), bessel(0, 2), (*SIGNED, 50.0, -700.0), (8, 16)),
    "i1": Derivatives(special.i1, bessel(1, 1), bessel(1, 2), (*SIGNED, 50.0, -700.0), (16, 16)),
    "i0e": Derivatives(
        special.i0e, scaled_bessel(0, 1), scaled_bessel(0, 2), (*SIGNED, *FAR), (64, 800)
    ),
    "i1e": Derivatives(
        special.i1e, scaled_bessel(1, 1), scaled_bessel(1, 2), (*SIGNED, *FAR), (64, 800)
    ),
    "erfcx": Derivatives(
        special.erfcx,
        erfcx_slope,
        lambda x: 2 * erfcx(x) + 2 * x * erfcx_slope(x),
        (*SIGNED[:-4], *TAILS, -5.0),
        (16, 32),
        growth=lambda x: 1 + x * x if x < 0 else 1.0,
    ),
    "ndtr": Derivatives(
        special.ndtr,
        density,
        lambda x: -x * density(x),
        (*SIGNED, 30.0, -37.0),
        (2, 4),
        growth=squared,
    ),
    "log_ndtr": Derivatives(
        special.log_ndtr,
        hazard,
        lambda x: -hazard(x) * (x + hazard(x)),
        (*SIGNED, -50.0, -1e3, -1e4, -1e6, -1e10, 30.0, 37.0),
        (8, 32),
        growth=lambda x: 1 + x * x if x > 0 else 1.0,
    ),
    "ndtri": Derivatives(
        special.ndtri,
        lambda x: 1 / density(normal_place(x)),
        lambda x: normal_place(x) / density(normal_place(x)) ** 2,
        (1e-300, 1e-100, *INSIDE),
        (16, 32),
    ),
    "erf": Derivatives(
        special.erf,
        lambda x: 2 / mp.sqrt(mp.pi) * mp.exp(-x * x),
        lambda x: -4 * x / mp.sqrt(mp.pi) * mp.exp(-x * x),
        (*SIGNED[:-4], 5.0, -25.0),
        (4, 6),
        (4, 6),
        squared,
    ),
    "erfinv": Derivatives(
        special.erfinv,
        lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(mp.erfinv(x) ** 2),
        lambda x: mp.pi / 2 * mp.erfinv(x) * mp.exp(2 * mp.erfinv(x) ** 2),
        (1e-300, 1e-20, 1e-8, 0.1, -0.5, 0.9, -0.999, 1 - 1e-6),
        (64, 128),
        (64, 128),
    ),
    "expm1": Derivatives(
        special.expm1, mp.exp, mp.exp, (*SIGNED, -30.0, 80.0), (4, 4), (4, 4), beside=1.0
    ),
    "exp2": Derivatives(
        special.exp2,
        lambda x: mp.log(2) * mp.power(2, x),
        lambda x: mp.log(2) ** 2 * mp.power(2, x),
        (*SIGNED, -100.0, 100.0),
        (4, 6),
        (4, 6),
    ),
    "log1p": Derivatives(
        special.log1p,
        lambda x: 1 / (1 + x),
        lambda x: -1 / (1 + x) ** 2,
        (*(x for x in SIGNED if x > -1), -0.999, -1 + 2**-20, 1e10),
        (4, 6),
        (4, 6),
    ),
    # From the result, which is as near 1 as a number can be from 37 on.
    "expit": Derivatives(
        special.expit,
        lambda x: share(x) * share(-x),
        lambda x: share(x) * share(-x) * (1 - 2 * share(x)),
        (*SIGNED, -80.0, 30.0),
        (4, 8),
        (4, 8),
        beside=0.25,
    ),
    "logsigmoid": Derivatives(
        tw.nn.functional.logsigmoid,
        lambda x: share(-x),
        lambda x: -share(x) * share(-x),
        (*SIGNED, -80.0, 30.0, 80.0),
        (4, 8),
        (4, 8),
    ),
    "softplus": Derivatives(
        tw.nn.functional.softplus,
        share,
        lambda x: share(x) * share(-x),
        (*(x for x in SIGNED if x < 20), -80.0, 19.0),
        (4, 8),
        (4, 8),
    ),
    "logit": Derivatives(
        special.logit,
        lambda x: 1 / (x * (1 - x)),
        lambda x: (2 * x - 1) / (x * (1 - x)) ** 2,
        tuple(x for x in INSIDE if x > 1e-10),
        (4, 16),
        (4, 16),
        beside=16.0,  # the second derivative is 0 at 1/2
    ),
    "gammaln": Derivatives(
        special.gammaln,
        mp.digamma,
        lambda x: mp.psi(1, x),
        (*POSITIVE, *BELOW_0),
        (8, 16),
        (8, 16),
        beside=1.0,
    ),
    "digamma": Derivatives(
        special.digamma,
        lambda x: mp.psi(1, x),
        lambda x: mp.psi(2, x),
        (*POSITIVE, *BELOW_0),
        (16, 64),
        (8, 8),
        growth=lambda x: 4.0 if x < 0 else 1.0,  # where derivatives have zeros
    ),
    "polygamma": Derivatives(
        lambda x: special.polygamma(2, x),
        lambda x: mp.psi(3, x),
        lambda x: mp.psi(4, x),
        POSITIVE[3:],
        (64, 64),
        (8, 8),
    ),
    "zeta": Derivatives(
        lambda q: special.zeta(2.5, q),
        lambda q: -2.5 * mp.zeta(3.5, q),
        lambda q: 2.5 * 3.5 * mp.zeta(4.5, q),
        POSITIVE[3:-2],
        (16, 32),
    ),
    "sinc": Derivatives(
        special.sinc,
        lambda x: sinc_derivatives(x)[0],
        lambda x: sinc_derivatives(x)[1],
        (1e-12, 1e-8, 1e-4, -1e-3, 0.01, 0.1, 0.5, 0.999, 1.0, -1.001, 2.0, 3.25, 100.0),
        (16, 64),
        (16, 64),
        growth=lambda x: 1 + abs(x),  # the angle pi x is rounded
        beside=0.03,
    ),
    "entr": Derivatives(
        special.entr,
        lambda x: -mp.log(x) - 1,
        lambda x: -1 / x,
        (1e-30, 1e-8, 0.1, 0.36, 0.37, 1.0, 3.0, 1e10),
        (4, 4),
        (4, 4),
        beside=1.0,
    ),
    "xlogy": Derivatives(
        lambda x: special.xlogy(2.5, x),
        lambda x: 2.5 / x,
        lambda x: -2.5 / x**2,
        POSITIVE,
        (4, 4),
        (4, 4),
    ),
    "xlog1py": Derivatives(
        lambda x: special.xlog1py(tw.full_like(x, 2.5), x),
        lambda x: 2.5 / (1 + x),
        lambda x: -2.5 / (1 + x) ** 2,
        (*POSITIVE, -0.5, -0.999),
        (4, 6),
        (4, 6),
    ),
    "multigammaln": Derivatives(
        lambda x: special.multigammaln(x, 2),
        lambda x: mp.digamma(x) + mp.digamma(x - 0.5),
        lambda x: mp.psi(1, x) + mp.psi(1, x - 0.5),
        (0.51, 0.75, 1.0, 2.5, 100.0, 1e8),
        (32, 64),
        (16, 16),
        beside=1.0,
    ),
}
CASES["erfc"] = CASES["erf"]._replace(
    of=special.erfc,
    first=lambda x: -CASES["erf"].first(x),
    second=lambda x: -CASES["erf"].second(x),
)
# The same op under two names; functions of several numbers at once, or without a slope.
OTHERS = {"psi", "softmax", "log_softmax", "logsumexp", "round"}


def test_every_special_function_is_tried() -> None:
    assert set(special.__all__) - OTHERS <= set(CASES)


def derivatives(of: Callable[[Tensor], Tensor], x: Tensor) -> list[np.ndarray]:
    x = x.clone().requires_grad_()
    (first,) = tw.grad(of(x).sum(), [x], create_graph=True)
    (second,) = tw.grad(first.sum(), [x])
    (alone,) = tw.grad(of(x).sum(), [x])  # without a graph kernels may go another way
    return [np.asarray(y.detach()).astype(float) for y in (alone, first, second)]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("name", CASES)
def test_derivatives_have_their_digits(name: str, dtype: str) -> None:
    case = CASES[name]
    x = np.array(case.points).astype(dtype)
    x = np.unique(x[(x != 0) & np.isfinite(x)])
    found = derivatives(case.of, tw.asarray(x))
    step, least, most = (getattr(np.finfo(dtype), part) for part in ("eps", "tiny", "max"))
    bounds = case.bounds if dtype == "float64" else case.narrow
    faults = []
    with mp.workprec(320):
        for reference, bound, values in (
            (case.first, bounds[0], found[0]),
            (case.first, bounds[0], found[1]),
            (case.second, bounds[1], found[2]),
        ):
            for at, value in zip(x, values, strict=True):
                exact = reference(mp.mpf(float(at)))
                size = max(abs(exact), mp.mpf(case.beside))
                if not least <= size <= most:
                    continue
                error = float(abs(mp.mpf(float(value)) - exact) / size / float(step))
                if math.isnan(value) or not error <= bound * case.growth(float(at)):
                    faults.append((float(at), float(value), float(exact), error))
    assert not faults, faults
