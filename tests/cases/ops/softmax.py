"""Records of softmax and log_softmax."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import largest, rounded, smallest
from cases.generators import floating, values
from cases.record import Arrays, ErrorInput, OpCase

SHAPES = ((67,), (5, 33), (3, 4, 5), (1, 1), (129, 3), (2, 3, 2, 17), (0, 3), (3, 0), (2, 0, 3))
AXES = ({}, {"axis": 0}, {"axis": -1})


def log_softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    if x.size == 0:
        return x
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    if x.size == 0:
        return x
    terms = np.exp(x - x.max(axis=axis, keepdims=True))
    return terms / terms.sum(axis=axis, keepdims=True)


def spread(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """The exponents' size: rounding x - max is what limits both."""
    if x.size == 0:
        return x
    finite = np.where(np.isfinite(x), np.abs(x), 0)
    return finite.max(axis=axis, keepdims=True) + 1 + np.abs(log_softmax(x, axis))


def relative_spread(x: np.ndarray, axis: int = -1) -> np.ndarray:
    return softmax(x, axis) * spread(x, axis)


def arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(values(rng, dtype, (-9, 9), shape),) for shape in SHAPES] + [
        (values(rng, dtype, (60, 90), (4, 33)),)
    ]


def special(dtype: str) -> list[Arrays]:
    rows = []
    for odd in (np.inf, -np.inf, np.nan, -0.0, smallest(dtype), largest(dtype)):
        for at in (0, 16, 36):
            x = np.ones(37)
            x[at] = odd
            rows.append(x)
    return [(rounded(np.array(rows), dtype),), (rounded(np.full((2, 20), -largest(dtype)), dtype),)]


def smooth(rng: np.random.Generator) -> list[Arrays]:
    return [(rng.normal(size=shape),) for shape in ((2, 3), (3, 1), (2, 3, 2))]


def errors(name: str) -> tuple[ErrorInput, ...]:
    call = getattr(tw, name)
    return (
        ErrorInput(lambda: call(tw.ones((2, 3)), axis=2), IndexError, f"{name}: axis 2"),
        ErrorInput(lambda: call(tw.ones((2, 3)), axis=-3), IndexError, f"{name}: axis -3"),
        ErrorInput(
            lambda: call(tw.ones((2,), dtype=tw.complex64)),
            TypeError,
            f"{name}: no kernel for complex64",
        ),
    )


def record(name: str, reference: Any, scale: Any) -> OpCase:
    return OpCase(
        name,
        getattr(tw, name),
        reference,
        arguments,
        {
            "float16": 1.0,
            "bfloat16": 1.0,
            "float32": 3.0,
            "float64": 3.0,
            "int32": 3.0,
            "uint8": 3.0,
        },
        floating,
        scale,
        AXES,
        special,
        signed_zero=False,
        differentiable=(0,),
        smooth=smooth,
        gradient_tolerance=8,
        errors=errors(name),
    )


RECORDS = (
    record("softmax", softmax, relative_spread),
    record("log_softmax", log_softmax, spread),
)
