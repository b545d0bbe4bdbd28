"""Records of embedding and embedding_bag."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS
from cases.generators import same, values
from cases.record import Arrays, ErrorInput, OpCase


def embedding(indices: np.ndarray, weight: np.ndarray, padding_idx: int | None = None) -> Any:
    return weight[indices]


def bag(indices: np.ndarray, weight: np.ndarray, mode: str = "mean", **options: Any) -> Any:
    padding = options.get("padding_idx")
    kept = [[i for i in row if i != padding] for row in indices]
    how = {"sum": np.sum, "mean": np.mean, "max": np.max}[mode]
    nothing = np.zeros(weight.shape[1], weight.dtype)
    return np.stack([how(weight[row], axis=0) if row else nothing for row in kept])


def bag_call(indices: tw.Tensor, weight: tw.Tensor, **options: Any) -> Any:
    return tw.embedding_bag(indices, weight, **options)


def arguments(rng: np.random.Generator, dtype: str, axes: int = 0) -> list[Arrays]:
    shapes = ((3, 5), (1, 1), (7, 2)) if axes else ((), (7,), (3, 5), (2, 2, 2), (0,))
    return [
        (rng.integers(0, rows, shape), values(rng, dtype, (-3, 3), (rows, width)))
        for shape in shapes
        for rows, width in ((5, 17), (40, 3), (9, 64))
    ]


def smooth(rng: np.random.Generator) -> list[Arrays]:
    return [(rng.integers(0, 4, (3, 2)), rng.normal(size=(4, 3)))]


def refused(op: Any, indices: Any, *rest: Any, **options: Any) -> Any:
    return lambda: op(tw.asarray(indices), tw.ones((4, 3)), *rest, **options)


RECORDS = (
    OpCase(
        "embedding",
        tw.embedding,
        embedding,
        arguments,
        dict.fromkeys(FLOATS, 0.0),
        same,
        differentiable=(1,),
        smooth=smooth,
        gradient_tolerance=4,
        errors=(
            ErrorInput(
                refused(tw.embedding, [0, 4]),
                IndexError,
                "4 is out of range for axis 0 with size 4",
            ),
            ErrorInput(refused(tw.embedding, [0.5]), TypeError, "embedding: indices must be int"),
            ErrorInput(
                refused(tw.embedding, [0], 4),
                ValueError,
                "embedding: padding_idx 4 is out of range",
            ),
            ErrorInput(
                lambda: tw.embedding(tw.asarray([0]), tw.ones((4,))),
                ValueError,
                "embedding: weight must be (rows, features), got (4,)",
            ),
        ),
    ),
    OpCase(
        "embedding_bag",
        bag_call,
        bag,
        lambda rng, dtype: arguments(rng, dtype, 2),
        dict.fromkeys(FLOATS[:2], 1.0) | {"float32": 4.0, "float64": 4.0},
        same,
        lambda indices, weight, **options: 3 * indices.shape[1],
        (
            {},
            {"mode": "sum"},
            {"mode": "max"},
            {"padding_idx": 1},
            {"mode": "max", "padding_idx": 1},
        ),
        signed_zero=False,
        differentiable=(1,),
        smooth=smooth,
        gradient_tolerance=4,
        errors=(
            ErrorInput(
                refused(tw.embedding_bag, [0]),
                ValueError,
                "indices must be (bags, length), got (1,)",
            ),
            ErrorInput(
                refused(tw.embedding_bag, [[0]], tw.ones((1, 1))),
                ValueError,
                "per_sample_weights are for mode='sum'",
            ),
            ErrorInput(
                refused(tw.embedding_bag, [[0]], tw.ones((1, 2)), mode="sum"),
                ValueError,
                "per_sample_weights (1, 2) must have the shape of the indices (1, 1)",
            ),
        ),
    ),
)
