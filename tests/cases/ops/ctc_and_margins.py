"""Records of CTC, losses by margins and bilinear products, by sums over all paths in NumPy."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

import tilewright as tw
from cases.generators import same, values
from cases.ops.linear_and_losses import REDUCTIONS, reduced
from cases.ops.losses import NARROW
from cases.record import Arrays, ErrorInput, OpCase

# ---- ctc_loss ----


def spelt(path: tuple[int, ...], blank: int) -> tuple[int, ...]:
    kept = [a for i, a in enumerate(path) if i == 0 or path[i - 1] != a]
    return tuple(a for a in kept if a != blank)


def ctc(
    x: Any,
    targets: Any,
    inputs: Any,
    lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    **_: Any,
) -> Any:
    _, batch, classes = x.shape
    losses = []
    for n in range(batch):
        wanted = tuple(targets[n, : lengths[n]])
        total = sum(
            np.exp(sum(x[t, n, c] for t, c in enumerate(path)))
            for path in product(range(classes), repeat=int(inputs[n]))
            if spelt(path, blank) == wanted
        )
        losses.append(-np.log(total))
    losses = np.array(losses, x.dtype)
    if reduction == "mean":
        losses = losses / np.maximum(lengths, 1)
    return reduced(losses, reduction)


def log_probs(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    x = values(rng, dtype, (-3, -0.1), (5, 3, 3))
    return [(x, np.array([[1, 2], [2, 2], [1, 2]]), np.array([5, 4, 3]), np.array([2, 2, 1]))]


CTC = OpCase(
    "ctc_loss",
    tw.ctc_loss,
    ctc,
    log_probs,
    {**NARROW, "float32": 16.0, "float64": 16.0},
    same,
    None,
    REDUCTIONS,
    differentiable=(0,),
    smooth=lambda rng: [log_probs(rng, "float64")[0]],
    gradient_tolerance=32,
    errors=(
        ErrorInput(
            lambda: tw.ctc_loss(tw.ones((2,)), *[tw.asarray([1])] * 3),
            ValueError,
            "ctc_loss: log_probs must be",
        ),
    ),
)

# ---- margins ----


def multi_margin(
    x: Any, target: Any, p: int = 1, margin: float = 1.0, reduction: str = "mean"
) -> Any:
    right = np.take_along_axis(x, target[:, None], 1)
    lack = np.maximum(x - right + margin, 0) ** p
    np.put_along_axis(lack, target[:, None], 0, 1)
    return reduced(lack.sum(1) / x.shape[1], reduction)


def multilabel_margin(x: Any, target: Any, reduction: str = "mean") -> Any:
    losses = np.zeros(x.shape[0], x.dtype)
    for n, row in enumerate(target):
        end = int(np.argmax(row < 0)) if (row < 0).any() else len(row)
        labels = row[:end]
        others = [i for i in range(x.shape[1]) if i not in labels]
        losses[n] = sum(max(0, 1 - x[n, j] + x[n, i]) for j in labels for i in others)
    return reduced(losses / x.shape[1], reduction)


def soft_margin(x: Any, t: Any, reduction: str = "mean") -> Any:
    losses = (1 - t) * np.logaddexp(0, x) + t * np.logaddexp(0, -x)
    return reduced(losses.mean(-1), reduction)


def classes(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [(values(rng, dtype, (-3, 3), (6, 5)), rng.integers(0, 5, 6))]


def labels(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    target = np.array([[3, 0, -1, 1], [-1, 1, 2, 3], [0, 1, 2, 3], [2, 1, 3, -1]])
    return [(values(rng, dtype, (-3, 3), (4, 4)), target)]


def bools(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    x = values(rng, dtype, (-3, 3), (6, 5))
    return [(x, rng.integers(0, 2, x.shape).astype(x.dtype))]


def of_margins(
    name: str,
    reference: Any,
    arguments: Any,
    variants: Any,
    bad: Any,
    error: type[Exception],
    differentiable: tuple[int, ...] = (0,),
) -> OpCase:
    call = getattr(tw, name)
    return OpCase(
        name,
        call,
        reference,
        arguments,
        {**NARROW, "float32": 16.0, "float64": 16.0},
        same,
        lambda *args, **options: np.full(np.shape(reference(*args, **options)), 20.0),
        variants,
        signed_zero=False,
        differentiable=differentiable,
        smooth=lambda rng: [arguments(rng, "float64")[0]],
        gradient_tolerance=32,
        errors=(ErrorInput(lambda: call(*bad), error, f"{name}: "),),
    )


# ---- bilinear ----


def bilinear(a: Any, b: Any, weight: Any, bias: Any) -> Any:
    return np.einsum("...i,oij,...j->...o", a, weight, b) + bias


def products(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        tuple(
            values(rng, dtype, (-2, 2), shape)
            for shape in ((*lead, 3), (*lead, 4), (5, 3, 4), (5,))
        )
        for lead in ((6,), (2, 3))
    ]


RECORDS = (
    CTC,
    of_margins(
        "multi_margin_loss",
        multi_margin,
        classes,
        (*REDUCTIONS, {"p": 2, "margin": 0.5}),
        (tw.ones((2, 3)), tw.ones((3, 2))),
        ValueError,
    ),
    of_margins(
        "multilabel_margin_loss",
        multilabel_margin,
        labels,
        REDUCTIONS,
        (tw.ones((2, 3)), tw.ones((3, 2))),
        ValueError,
    ),
    of_margins(
        "multilabel_soft_margin_loss",
        soft_margin,
        bools,
        REDUCTIONS,
        (tw.ones((2, 3)), tw.ones((3, 2))),
        ValueError,
        (0, 1),
    ),
    OpCase(
        "bilinear",
        tw.bilinear,
        bilinear,
        products,
        {"float32": 16.0, "float64": 16.0},
        same,
        lambda a, b, weight, bias: np.full((*a.shape[:-1], weight.shape[0]), 40.0),
        differentiable=(0, 1, 2, 3),
        smooth=lambda rng: [products(rng, "float64")[0]],
        gradient_tolerance=32,
        errors=(
            ErrorInput(
                lambda: tw.bilinear(*[tw.ones((2, 3))] * 3), ValueError, "bilinear: weight must be"
            ),
        ),
    ),
)
