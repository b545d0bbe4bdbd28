"""Records of power_norm and unit_vectors: norms of any order, and what is divided by them."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import rounded, smallest
from cases.generators import same, values
from cases.record import Arrays, ErrorInput, OpCase

TOLERANCE = {"float16": 4, "bfloat16": 4, "float32": 16, "float64": 64}


def power_norm(x: Any, ord: float = 2.0, axis: Any = None, keepdims: bool = False) -> Any:
    powers = np.sum(np.power(x, ord), axis=axis, keepdims=keepdims)
    return np.power(powers, 1 / np.asarray(x).dtype.type(ord))


def unit_vectors(x: Any, ord: float = 2.0, axis: int = 1, eps: float = 1e-12) -> Any:
    return x / np.maximum(power_norm(np.abs(x), ord, axis, True), eps)


def sizes(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(np.abs(x),) for (x,) in vectors(rng, dtype)]


def vectors(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(values(rng, dtype, (-3, 3), shape),) for shape in ((5, 7), (2, 3, 33), (1, 1))]


def odd_sizes(dtype: str) -> list[Arrays]:
    rows = []
    for odd in (np.inf, np.nan, 0.0, smallest(dtype)):
        x = np.ones((3, 5))
        x[1, 2] = odd
        rows.append((rounded(x, dtype),))
    return rows


RECORDS: tuple[OpCase, ...] = (
    OpCase(
        "power_norm",
        tw.power_norm,
        power_norm,
        sizes,
        TOLERANCE,
        same,
        variants=(
            {"ord": 3.0},
            {"ord": 0.5, "axis": -1},
            {"ord": -2.0, "axis": (0, 1), "keepdims": True},
        ),
        special=odd_sizes,
        differentiable=(0,),
        smooth=lambda rng: [(rng.uniform(0.5, 2, size=(2, 3)),)],
        gradient_tolerance=64,
        errors=(
            ErrorInput(
                lambda: tw.power_norm(tw.ones(2, dtype=tw.int32), 3.0),
                TypeError,
                "power_norm: needs a floating-point input, got int32",
            ),
            ErrorInput(
                lambda: tw.power_norm(tw.ones(2), 3.0, axis=1), IndexError, "power_norm: axis 1"
            ),
        ),
    ),
    OpCase(
        "unit_vectors",
        tw.unit_vectors,
        unit_vectors,
        vectors,
        TOLERANCE,
        same,
        variants=({}, {"ord": 3.0, "axis": -1}, {"axis": 0, "eps": 0.5}),
        special=odd_sizes,
        differentiable=(0,),
        smooth=lambda rng: [(rng.normal(size=(2, 3)),)],
        gradient_tolerance=64,
        errors=(
            ErrorInput(
                lambda: tw.unit_vectors(tw.ones((2, 3)), axis=2),
                IndexError,
                "unit_vectors: axis 2",
            ),
        ),
    ),
)
