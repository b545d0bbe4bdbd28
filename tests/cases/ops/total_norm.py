"""The record of total_norm: the norm of many tensors as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import rounded, smallest
from cases.generators import values
from cases.record import Arrays, ErrorInput, OpCase

SHAPES = (((67,), (5, 33)), ((), (3, 4, 5), (1, 1)), ((2, 0), (3,)), ((40_000,), (129, 3)))
ORDERS: tuple[dict[str, Any], ...] = ({}, {"ord": 1.0}, {"ord": float("inf")}, {"ord": 3.0})


def total_norm(*tensors: Any, ord: float = 2.0) -> Any:
    return tw.total_norm(tensors, ord=ord)


def reference(*arrays: np.ndarray, ord: float = 2.0) -> Any:
    flat = np.abs(np.concatenate([a.ravel() for a in arrays]))
    if np.isinf(ord):
        return flat.max()
    return (flat**ord).sum() ** (1 / flat.dtype.type(ord))


def arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [tuple(values(rng, dtype, (-9, 9), shape) for shape in shapes) for shapes in SHAPES]


def special(dtype: str) -> list[Arrays]:
    rows = []
    for odd in (np.inf, -np.inf, np.nan, -0.0, smallest(dtype)):
        x = np.ones(37)
        x[16] = odd
        rows.append((rounded(x, dtype), rounded(np.ones((2, 3)), dtype)))
    return rows


def smooth(rng: np.random.Generator) -> list[Arrays]:
    return [tuple(rng.normal(size=shape) for shape in ((2, 3), (4,)))]


RECORDS: tuple[OpCase, ...] = (
    OpCase(
        name="total_norm",
        call=total_norm,
        reference=reference,
        arguments=arguments,
        # The terms are added up in float64.
        tolerance={"float16": 1, "bfloat16": 1, "float32": 1, "float64": 8},
        result=lambda dtype: "float64" if dtype == "float64" else "float32",
        variants=ORDERS,
        special=special,
        differentiable=(0, 1),
        smooth=smooth,
        gradient_tolerance=16,
        errors=(
            ErrorInput(lambda: tw.total_norm([]), ValueError, "total_norm: no tensors"),
            ErrorInput(
                lambda: tw.total_norm([tw.ones((2,))], ord=-1.0), ValueError, "ord must be above 0"
            ),
            ErrorInput(
                lambda: tw.total_norm([tw.ones((2,), dtype=tw.int32)]), TypeError, "floating type"
            ),
        ),
    ),
)
