"""Record of matmul; test_matmul_kernels.py holds every rung against the reference in depth."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import INTEGERS
from cases.generators import WHOLE, same, values
from cases.record import Arrays, ErrorInput, OpCase

# Vectors, matrices, batches that broadcast, and no elements at all.
SHAPES = (
    ((7,), (7,)),
    ((3, 7), (7,)),
    ((7,), (7, 3)),
    ((3, 7), (7, 5)),
    ((1, 1), (1, 1)),
    ((4, 3, 7), (4, 7, 5)),
    ((4, 3, 7), (7, 5)),
    ((3, 7), (4, 7, 5)),
    ((2, 1, 3, 7), (4, 7, 5)),
    ((4, 3, 7), (7,)),
    ((7,), (4, 7, 5)),
    ((3, 0), (0, 5)),
    ((0, 7), (7, 5)),
    ((3, 7), (7, 0)),
    ((0, 3, 7), (7, 5)),
    ((0,), (0,)),
    ((33, 65), (65, 17)),
)


def arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    domain = (-(2.0**63), 2.0**63) if dtype in INTEGERS else (-3.0, 3.0)
    return [(values(rng, dtype, domain, a), values(rng, dtype, domain, b)) for a, b in SHAPES]


def magnitude(a: np.ndarray, b: np.ndarray) -> Any:
    return np.matmul(np.abs(a), np.abs(b))


def smooth(rng: np.random.Generator) -> list[Arrays]:
    shapes = SHAPES[:10]
    return [(rng.normal(size=a), rng.normal(size=b)) for a, b in shapes]


def refused(
    a: tuple[int, ...], b: tuple[int, ...], text: str, dtype: str = "float32"
) -> ErrorInput:
    chosen = getattr(tw, dtype)
    expected = TypeError if dtype == "bool" else ValueError
    return ErrorInput(
        lambda: tw.matmul(tw.ones(a, dtype=chosen), tw.ones(b, dtype=chosen)), expected, text
    )


RECORDS = (
    OpCase(
        "matmul",
        tw.matmul,
        np.matmul,
        arguments,
        # Of 65 terms; u per addition at worst, units of 2u.
        {
            "float16": 1.0,
            "bfloat16": 1.0,
            "float32": 33.0,
            "float64": 33.0,
            **WHOLE,
            "complex64": 80.0,
            "complex128": 80.0,
        },
        same,
        magnitude,
        differentiable=(0, 1),
        smooth=smooth,
        gradient_tolerance=16,
        signed_zero=False,
        errors=(
            refused((3, 4), (5, 6), "matmul: inner sizes differ: (3, 4) @ (5, 6)"),
            refused((3,), (4,), "matmul: inner sizes differ: (3,) @ (4,)"),
            refused((3, 4), (3,), "matmul: inner sizes differ: (3, 4) @ (3,)"),
            refused((2, 3, 4), (3, 4, 5), "matmul: "),
            refused((), (3,), "matmul: needs at least 1 dimension"),
            refused((2, 2), (2, 2), "matmul: no product of bool matrices", "bool"),
            ErrorInput(lambda: tw.ones((2, 2)) @ "a", TypeError, ""),
        ),
    ),
)
