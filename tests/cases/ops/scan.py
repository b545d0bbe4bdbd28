"""Records of running sums and their relatives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS, INTEGERS, SIGNED
from cases.generators import WHOLE, Domain, exact, floating, floats, promoted, same, values
from cases.ops.shapes import WIDE, refused
from cases.record import Arrays, OpCase

SHAPES = ((3, 67), (67, 5), (2, 0, 3), (4, 3, 19), (1, 1))
AXES = ({"axis": -1}, {"axis": 0})
x23 = tw.ones((2, 3))


def of_domain(domain: Domain) -> Callable[[np.random.Generator, str], list[Arrays]]:
    def make(rng: np.random.Generator, dtype: str) -> list[Arrays]:
        return [(values(rng, dtype, domain, shape),) for shape in SHAPES]

    return make


def smooth(rng: np.random.Generator) -> list[Arrays]:
    return [(rng.normal(size=(3, 4)),), (rng.normal(size=(2, 1, 3)),)]


def with_zeros(rng: np.random.Generator) -> list[Arrays]:
    one, two = rng.normal(size=(2, 3, 4))
    one[1, 2] = two[0, 1] = two[2, 1] = two[2, 2] = 0
    return [(one,), (two,)]


def wide(dtype: str) -> str:
    if dtype == "bool" or dtype in SIGNED:
        return "int64"
    return "uint64" if dtype in INTEGERS else dtype


def no_axis(name: str) -> Any:
    function = getattr(tw, name)
    return (
        refused(lambda: function(x23), TypeError, f"{name}: axis is needed for 2 dimensions"),
        refused(lambda: function(x23, axis=2), IndexError, f"{name}: axis 2"),
        refused(
            lambda: function(x23, axis=0, dtype=tw.bool), TypeError, f"{name}: dtype bool cannot"
        ),
    )


def log_sums(x: np.ndarray, axis: int) -> np.ndarray:
    return np.logaddexp.accumulate(x, axis) if x.size else x


def extremes(name: str, ours: Any, theirs: Any) -> OpCase:
    return OpCase(
        name,
        lambda x, axis: ours(x, axis)[0],
        theirs.accumulate,
        of_domain(WIDE),
        exact("bool", *INTEGERS, *FLOATS),
        same,
        variants=AXES,
        differentiable=(0,),
        smooth=smooth,
        gradient_tolerance=4,
        errors=(
            refused(lambda: ours(x23, 2), IndexError, f"{name}: axis 2"),
            refused(lambda: ours(tw.full((2,), 1j), 0), TypeError, "complex numbers have no order"),
        ),
    )


RECORDS = (
    OpCase(
        "cumulative_sum",
        tw.cumulative_sum,
        np.cumsum,
        of_domain(WIDE),
        {**exact("bool"), **WHOLE, **floats(0.51, 8), "complex64": 0.51, "complex128": 8},
        wide,
        scale=lambda x, axis: np.cumsum(np.abs(x), axis),
        variants=AXES,
        differentiable=(0,),
        smooth=smooth,
        gradient_tolerance=4,
        errors=no_axis("cumulative_sum"),
    ),
    OpCase(
        "cumulative_prod",
        tw.cumulative_prod,
        np.cumprod,
        of_domain((-1.6, 1.6)),
        {**exact("bool"), **WHOLE, **floats(0.51, 40), "complex64": 1, "complex128": 40},
        wide,
        variants=AXES,
        differentiable=(0,),
        smooth=with_zeros,
        gradient_tolerance=8,
        errors=no_axis("cumulative_prod"),
    ),
    OpCase(
        "logcumsumexp",
        tw.logcumsumexp,
        log_sums,
        of_domain((-100, 100)),
        {**promoted(0.51), **floats(0.51, 8)},
        floating,
        scale=lambda x, axis: np.abs(log_sums(x, axis)) + 1,
        variants=AXES,
        differentiable=(0,),
        smooth=smooth,
        gradient_tolerance=8,
        errors=(
            refused(lambda: tw.logcumsumexp(x23, 2), IndexError, "logcumsumexp: axis 2"),
            refused(
                lambda: tw.logcumsumexp(tw.full((2,), 1j), 0), TypeError, "no kernel for complex64"
            ),
        ),
    ),
    extremes("cummax", tw.cummax, np.maximum),
    extremes("cummin", tw.cummin, np.minimum),
    OpCase(
        "diff",
        tw.diff,
        np.diff,
        of_domain(WIDE),
        {**exact("bool"), **WHOLE, **dict.fromkeys((*FLOATS, "complex64", "complex128"), 2.0)},
        same,
        scale=lambda x, n=1, axis=-1: np.full(
            np.diff(x, n, axis).shape, 4 * np.abs(x).max(initial=0)
        ),
        variants=({}, {"axis": 0}, {"n": 2, "axis": 1}),
        differentiable=(0,),
        smooth=smooth,
        gradient_tolerance=8,
        errors=(
            refused(lambda: tw.diff(x23, -1), ValueError, "diff: n is negative: -1"),
            refused(lambda: tw.diff(tw.ones(())), ValueError, "diff: needs at least one dimension"),
            refused(lambda: tw.diff(x23, axis=2), IndexError, "diff: axis 2"),
            refused(
                lambda: tw.diff(x23, prepend=x23[:1]),
                ValueError,
                "diff: prepend (1, 3) does not fit x (2, 3) along axis 1",
            ),
        ),
    ),
)
