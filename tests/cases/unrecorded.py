"""Calls whose kernels no test record reaches in its usual types, and what their results must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

import tilewright as tw
from cases.ops.updates import OPS, OTHERS

Call = Callable[[], list[tw.Tensor]]
Numbers = list[np.ndarray]


def columns(states: int, dtype: tw.DType) -> list[list[tw.Tensor]]:
    """Parameters, gradients and states, the same ones at every call."""
    rng = np.random.default_rng(5)
    wide = tw.float64 if dtype == tw.float64 else tw.float32
    return [
        [
            tw.asarray(rng.random(shape)).astype(tw.bfloat16).astype(dtype if i < 2 else wide)
            for shape in ((3, 4), (70,), ())
        ]
        for i in range(2 + states)
    ]


def step(name: str, dtype: tw.DType) -> Call:
    """The parameters and states after a few steps."""

    def results() -> list[tw.Tensor]:
        states, settings = OPS.get(name, (-1, {}))
        made = columns(states, dtype)
        if name in OTHERS:
            getattr(tw, name)(made[0], number=0.5)
        for number in (1, 2) if name in OPS else ():
            getattr(tw, name)(*made, step=number, lr=0.125, **settings)
        return [x for i, column in enumerate(made) if i != 1 for x in column]

    return results


def moved(draw: Callable[[tw.Tensor, tw.Tensor], tw.Tensor]) -> Call:
    """Random numbers and how they move with their parameters."""

    def results() -> list[tw.Tensor]:
        tw.manual_seed(5)
        given = [tw.full((40,), x).requires_grad_() for x in (0.7, 3.0)]
        y = draw(*given)
        return [y.detach(), *tw.grad(y.sum(), given)]

    return results


def written(x: np.ndarray, index: np.ndarray, rows: np.ndarray) -> Call:
    def results() -> list[tw.Tensor]:
        y = tw.asarray(x, copy=True)
        y[tw.asarray(index)] = tw.asarray(rows)
        return [y]

    return results


def drawn_again() -> list[tw.Tensor]:
    tw.manual_seed(5)
    return [tw.multinomial(tw.arange(9, dtype=tw.float64), 50, replacement=True)]


def numbers(results: list[tw.Tensor]) -> Numbers:
    return [x.astype(tw.float64).numpy() for x in results]


def calls() -> Iterator[tuple[str, Call, Numbers, float]]:
    """Name, call, expected numbers, the largest error."""
    rng = np.random.default_rng(7)
    whole, real = rng.integers(0, 9, 100), rng.normal(size=(6, 5))
    z = (real[:3] + 1j * real[3:]).astype(np.complex64)
    mask = rng.random((4, 5, 6)) < 0.3
    shares = np.array([0.1, 0.5, 0.9])
    yield "bins", lambda: [tw.bincount(tw.asarray(whole))], [np.bincount(whole)], 0
    yield "true places", lambda: list(tw.nonzero(tw.asarray(mask))), list(np.nonzero(mask)), 0
    conjugate = lambda: [f(tw.conj(tw.asarray(z))) for f in (tw.real, tw.imag)]  # noqa: E731
    yield "conjugates", conjugate, [z.real, -z.imag], 0
    quantile = lambda: [tw.quantile(tw.asarray(real), tw.asarray(shares))]  # noqa: E731
    yield "quantiles", quantile, [np.quantile(real, shares)], 1e-14
    index, expected = np.array([4, 1, 3]), real.copy()
    expected[index] = real[:3] * 2
    yield "rows", written(real, index, real[:3] * 2), [expected], 0
    yield "classes", drawn_again, numbers(drawn_again()), 0
    gamma = moved(lambda a, b: tw.distributions.Gamma(a, b).rsample())
    beta = moved(lambda a, b: tw.distributions.Beta(a, b).rsample())
    for name, call in (("gamma", gamma), ("beta", beta)):
        yield name, call, numbers(call()), 1e-6
    for name in (*OPS, *OTHERS):
        exact = numbers(step(name, tw.float64)())
        for dtype, error in ((tw.float64, 1e-14), (tw.float32, 4e-6), (tw.bfloat16, 2e-2)):
            yield f"{name} of {dtype}", step(name, dtype), exact, error
