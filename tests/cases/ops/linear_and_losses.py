"""Records of linear, addmm and the losses."""

from __future__ import annotations

from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import FLOATS
from cases.generators import same, values
from cases.ops.softmax import log_softmax
from cases.record import Arrays, ErrorInput, OpCase

REDUCTIONS = ({}, {"reduction": "sum"}, {"reduction": "none"}, {"reduction": "mean"})


def reduced(losses: np.ndarray, reduction: str = "mean") -> Any:
    return losses if reduction == "none" else getattr(np, reduction)(losses)


def mse(x: np.ndarray, y: np.ndarray, reduction: str = "mean") -> Any:
    return reduced((x - y) ** 2, reduction)


def mse_scale(x: np.ndarray, y: np.ndarray, reduction: str = "mean") -> Any:
    return reduced((np.abs(x) + np.abs(y)) ** 2, reduction)


def mse_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        (values(rng, dtype, (-3, 3), shape), values(rng, dtype, (-3, 3), shape))
        for shape in ((67,), (5, 33), (2, 3, 4))
    ]


def cross_entropy(
    x: np.ndarray, t: np.ndarray, reduction: str = "mean", ignore_index: int = -100
) -> Any:
    counted = t != ignore_index
    losses = np.where(counted, -log_softmax(x, 1)[np.arange(t.size), np.where(counted, t, 0)], 0)
    if reduction == "mean":
        return losses.sum() / counted.sum()
    return reduced(losses, reduction)


def cross_entropy_scale(x: np.ndarray, t: np.ndarray, **options: Any) -> Any:
    rows = np.abs(x).max(axis=1) + 1 + np.log(x.shape[1])
    return rows if options.get("reduction") == "none" else rows.sum()


def targets(rng: np.random.Generator, rows: int, classes: int) -> np.ndarray:
    t = rng.integers(0, classes, rows)
    t[-1] = 0  # so that ignore_index=3 below never ignores all rows
    return t


def cross_entropy_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        (values(rng, dtype, (-9, 9), shape), targets(rng, *shape))
        for shape in ((5, 10), (33, 4), (1, 5), (3, 67))
    ]


def cross_entropy_smooth(rng: np.random.Generator) -> list[Arrays]:
    return [(rng.normal(size=shape), targets(rng, *shape)) for shape in ((3, 4), (1, 5), (5, 4))]


def refused(
    call: Any, logits: tuple[int, ...], t: Any, expected: type[Exception], text: str
) -> ErrorInput:
    return ErrorInput(lambda: call(tw.ones(logits), tw.asarray(t)), expected, text)


def linear(x: np.ndarray, w: np.ndarray, b: np.ndarray, activation: str | None = None) -> Any:
    y = x @ w.T + b
    return y if activation is None else np.maximum(y, 0)


def linear_scale(x: np.ndarray, w: np.ndarray, b: np.ndarray, **options: Any) -> Any:
    return np.abs(x) @ np.abs(w.T) + np.abs(b)


def addmm(x: np.ndarray, a: np.ndarray, b: np.ndarray, beta: float = 1, alpha: float = 1) -> Any:
    return (0 if beta == 0 else beta * x) + alpha * (a @ b)


def addmm_scale(
    x: np.ndarray, a: np.ndarray, b: np.ndarray, beta: float = 1, alpha: float = 1
) -> Any:
    return addmm(np.abs(x), np.abs(a), np.abs(b), abs(beta), abs(alpha))


ADDMM_SHAPES = (
    ((5, 7), (5, 3), (3, 7)),
    ((7,), (5, 3), (3, 7)),
    ((5, 1), (5, 3), (3, 7)),
    ((1, 7), (5, 3), (3, 7)),
    ((1,), (5, 3), (3, 1)),
    ((1, 1), (5, 3), (3, 1)),
    ((1, 1), (1, 3), (3, 7)),
    ((), (1, 1), (1, 1)),
    ((4, 7), (4, 0), (0, 7)),
    ((0, 7), (0, 3), (3, 7)),
)


def addmm_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        tuple(values(rng, dtype, (-3, 3), s) for s in shapes)
        for shapes in (*ADDMM_SHAPES, ((33,), (65, 40), (40, 33)), ((65, 33), (65, 40), (40, 33)))
    ]


def addmm_smooth(rng: np.random.Generator) -> list[Arrays]:
    return [tuple(rng.normal(size=s) for s in shapes) for shapes in ADDMM_SHAPES[:7]]


LINEAR_SHAPES = (
    ((3, 7), (5, 7)),
    ((1, 1), (1, 1)),
    ((7,), (5, 7)),
    ((2, 3, 7), (5, 7)),
    ((0, 7), (5, 7)),
)


def linear_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        tuple(values(rng, dtype, (-3, 3), s) for s in (x, w, w[:1]))
        for x, w in (*LINEAR_SHAPES, ((17, 65), (33, 65)))
    ]


def linear_smooth(rng: np.random.Generator) -> list[Arrays]:
    return [tuple(rng.normal(size=s) for s in (x, w, w[:1])) for x, w in LINEAR_SHAPES[:4]]


RECORDS = (
    OpCase(
        "linear",
        tw.linear,
        linear,
        linear_arguments,
        {"float16": 1.6, "bfloat16": 1.6, "float32": 34.0, "float64": 34.0},
        same,
        linear_scale,
        variants=({}, {"activation": "relu"}),
        signed_zero=False,
        differentiable=(0, 1, 2),
        smooth=linear_smooth,
        gradient_tolerance=16,
        errors=(
            ErrorInput(
                lambda: tw.linear(tw.ones((3, 4)), tw.ones((5, 6))),
                ValueError,
                "linear: input (3, 4) does not fit weight (5, 6)",
            ),
            ErrorInput(
                lambda: tw.linear(tw.ones((3, 4)), tw.ones((5, 4)), tw.ones((4,))),
                ValueError,
                "linear: bias (4,) does not fit weight (5, 4)",
            ),
            ErrorInput(
                lambda: tw.linear(tw.ones((3, 4)), tw.ones((5, 4)), activation="tanh"),
                ValueError,
                "linear: activation must be None or 'relu', got 'tanh'",
            ),
        ),
    ),
    OpCase(
        "addmm",
        tw.addmm,
        addmm,
        addmm_arguments,
        {"float16": 2.6, "bfloat16": 2.6, "float32": 34.0, "float64": 34.0},
        same,
        addmm_scale,
        variants=({}, {"beta": 0.0}, {"alpha": -2.0}, {"beta": 0.5, "alpha": 0.25}),
        signed_zero=False,
        differentiable=(0, 1, 2),
        smooth=addmm_smooth,
        gradient_tolerance=16,
        errors=(
            ErrorInput(
                lambda: tw.addmm(tw.ones((3, 4)), tw.ones((3, 5)), tw.ones((6, 4))),
                ValueError,
                "addmm: needs two matrices whose inner sizes agree: (3, 5) @ (6, 4)",
            ),
            ErrorInput(
                lambda: tw.addmm(tw.ones((3,)), tw.ones((3, 5)), tw.ones((5, 4))),
                ValueError,
                "addmm: input (3,) does not fit the product (3, 4)",
            ),
            ErrorInput(
                lambda: tw.addmm(tw.ones((2, 3, 4)), tw.ones((3, 5)), tw.ones((5, 4))),
                ValueError,
                "addmm: input (2, 3, 4) does not fit the product (3, 4)",
            ),
            ErrorInput(
                lambda: tw.addmm(
                    tw.ones((2, 2), dtype=tw.int32),
                    tw.ones((2, 2), dtype=tw.int32),
                    tw.ones((2, 2), dtype=tw.int32),
                ),
                TypeError,
                "addmm: floating point only, got int32",
            ),
        ),
    ),
    OpCase(
        "mse_loss",
        tw.mse_loss,
        mse,
        mse_arguments,
        {"float16": 3.0, "bfloat16": 3.0, "float32": 16.0, "float64": 16.0},
        same,
        mse_scale,
        REDUCTIONS,
        differentiable=(0, 1),
        smooth=lambda rng: [(rng.normal(size=(2, 3)), rng.normal(size=(2, 3)))],
        gradient_tolerance=8,
        errors=(
            ErrorInput(
                lambda: tw.mse_loss(tw.ones((2,)), tw.ones((3,))),
                ValueError,
                "mse_loss: shapes differ: (2,) and (3,)",
            ),
            ErrorInput(
                lambda: tw.mse_loss(tw.ones((2,)), tw.ones((2,)), reduction="max"),
                ValueError,
                "mse_loss: reduction must be 'mean', 'sum' or 'none', got 'max'",
            ),
        ),
    ),
    OpCase(
        "cross_entropy",
        tw.cross_entropy,
        cross_entropy,
        cross_entropy_arguments,
        dict.fromkeys(FLOATS[:2], 1.0) | {"float32": 8.0, "float64": 8.0},
        same,
        cross_entropy_scale,
        (*REDUCTIONS, {"ignore_index": 3}, {"ignore_index": 3, "reduction": "none"}),
        signed_zero=False,
        differentiable=(0,),
        smooth=cross_entropy_smooth,
        gradient_tolerance=8,
        errors=(
            refused(
                tw.cross_entropy,
                (2, 3),
                [0, 3],
                IndexError,
                "cross_entropy: target 3 in row 1 is out of range for 3 classes",
            ),
            refused(
                tw.cross_entropy, (2, 3), [-1, 0], IndexError, "cross_entropy: target -1 in row 0"
            ),
            refused(
                tw.cross_entropy,
                (2, 3),
                [0],
                ValueError,
                "cross_entropy: expected logits (n, classes)",
            ),
            refused(tw.cross_entropy, (3,), [0], ValueError, "got (3,) and (1,)"),
            refused(
                tw.cross_entropy, (2, 3), [0.5, 1.0], TypeError, "targets must be class indices"
            ),
            ErrorInput(
                lambda: tw.cross_entropy(tw.ones((1, 2), dtype=tw.int32), tw.asarray([0])),
                TypeError,
                "cross_entropy: logits must be floating-point, got int32",
            ),
        ),
    ),
)
