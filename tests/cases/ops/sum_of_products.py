"""The record of sum_of_products. Errors are measured against the sum of magnitudes."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from cases.generators import same, values
from cases.record import Arrays, ErrorInput, OpCase


def products_reference(x: np.ndarray, y: np.ndarray, **options: Any) -> np.ndarray:
    return np.sum(x * y, **options)


def pairs(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    """Of one shape, that broadcast, and that lie otherwise than each other."""
    shapes = (
        ((67,), (67,)), ((3, 5, 4), (3, 5, 4)), ((129, 3), (129, 3)), ((17, 33), (33,)),
        ((5, 1), (4, 5, 7)), ((1, 3), (4, 3)), ((1,), (3,)), ((4, 3), (1, 3)),
        ((0,), (0,)), ((4, 0), (4, 0)), ((2, 600), (2, 600)),
    )  # fmt: skip
    found = [tuple(values(rng, dtype, (-9, 9), shape) for shape in both) for both in shapes]
    x, y = (values(rng, dtype, (-9, 9), shape) for shape in ((19, 21), (21, 19)))
    return [*found, (x, y.T), (x.T, y), (x[::-1], x), (x[:, ::2], x[:, 1::2][:, :1])]


RECORDS: tuple[OpCase, ...] = (
    OpCase(
        "sum_of_products",
        tw.sum_of_products,
        products_reference,
        pairs,
        {"float16": 1.0, "bfloat16": 1.0, "float32": 8.0, "float64": 8.0},
        same,
        lambda x, y, **o: products_reference(np.abs(x), np.abs(y), **o),
        ({}, {"axis": 0}, {"axis": -1}, {"axis": ()}),
        None,
        signed_zero=False,
        differentiable=(0, 1),
        smooth=lambda rng: [
            tuple(rng.uniform(-4, 4, shape) for shape in both)
            for both in (((2, 3), (2, 3)), ((4, 1), (3,)), ((3,), (2, 3)))
        ],
        gradient_tolerance=2,
        errors=(
            ErrorInput(
                lambda: tw.sum_of_products(tw.ones(2), tw.ones(3)), ValueError, "sum_of_products"
            ),
            ErrorInput(
                lambda: tw.sum_of_products(tw.ones(2), tw.ones(2), axis=1),
                IndexError,
                "sum_of_products: axis 1",
            ),
            ErrorInput(
                lambda: tw.sum_of_products(tw.ones(2), tw.ones(2, dtype=tw.int32)),
                TypeError,
                "sum_of_products: needs a floating-point input, got int32",
            ),
        ),
    ),
)
