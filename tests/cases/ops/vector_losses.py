"""Records of distances, cross products, and losses of vectors and classes, by formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import tilewright as tw
from cases.arrays import rounded, smallest
from cases.generators import same, values
from cases.ops.linear_and_losses import REDUCTIONS, reduced
from cases.ops.losses import NARROW, halves, refused
from cases.record import Arrays, OpCase

# ---- vectors ----


def cosine(a: Any, b: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    lengths = [np.maximum(np.sqrt((x * x).sum(axis=axis)), eps) for x in (a, b)]
    return (a * b).sum(axis=axis) / lengths[0] / lengths[1]


def distance(a: Any, b: Any, p: float = 2.0, eps: float = 1e-6, keepdims: bool = False) -> Any:
    return np.linalg.norm(np.asarray(a - b + eps, np.float64), p, axis=-1, keepdims=keepdims)


def all_distances(a: Any, b: Any, p: float = 2.0) -> Any:
    a, b = np.expand_dims(a, -2), np.expand_dims(b, -3)
    return np.sign(np.abs(a - b)).sum(-1) if p == 0 else distance(a, b, p, eps=0.0)


def cosine_embedding(a: Any, b: Any, t: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    squares = ((a * a).sum(-1) + 1e-12) * ((b * b).sum(-1) + 1e-12)
    c = (a * b).sum(-1) / np.sqrt(squares)
    return reduced(np.where(t == 1, 1 - c, np.maximum(c - margin, 0)), reduction)


def triplet(
    a: Any,
    b: Any,
    c: Any,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
    **norm: Any,
) -> Any:
    far = distance(a, c, **norm)
    if swap:
        far = np.minimum(far, distance(b, c, **norm))
    return reduced(np.maximum(distance(a, b, **norm) - far + margin, 0), reduction)


def ones_like(reference: Callable[..., Any], size: float) -> Callable[..., Any]:
    return lambda *args, **options: np.full(
        np.shape(reference(*args, **options)), size if options.get("reduction") != "sum" else 20
    )


def vectors(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        tuple(values(rng, dtype, (-3, 3), shape) for _ in range(2))
        for shape in ((5, 7), (2, 3, 33), (1, 1))
    ]


def matrices(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    """Whole tiles and what is left of them, few rows beside many, more than one block of terms."""
    shapes = (
        ((5, 7), (4, 7)),
        ((2, 1, 13, 3), (3, 70, 3)),
        ((40, 130), (3, 130)),
        ((7, 65), (67, 65)),
        ((1, 1), (1, 1)),
        ((3, 0), (2, 0)),
        ((0, 3), (2, 3)),
    )
    return [tuple(values(rng, dtype, (-3, 3), shape) for shape in pair) for pair in shapes]


def special_matrices(dtype: str) -> list[Arrays]:
    x = np.array([[0.0, 1, 2], [np.inf, 1, 2], [-0.0, -np.inf, 2], [0, np.nan, 2]])
    x[0, 0] = smallest(dtype)
    return [(rounded(x, dtype), rounded(x[::-1], dtype))]


def threes(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    shapes = (((67, 3), (67, 3)), ((3,), (2, 4, 3)), ((0, 3), (3,)))
    return [tuple(values(rng, dtype, (-3, 3), shape) for shape in pair) for pair in shapes]


def special_threes(dtype: str) -> list[Arrays]:
    odd = (np.inf, -np.inf, np.nan, 0.0, -0.0, smallest(dtype))
    x = np.array([[a, b, 1] for a in odd for b in odd])
    return [(rounded(x, dtype), rounded(x[::-1], dtype))]


def triples(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        tuple(values(rng, dtype, (-3, 3), shape) for _ in range(3))
        for shape in ((5, 7), (2, 3, 4), (6,))
    ]


def signed_pairs(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    made = []
    for shape in ((5, 7), (3, 33), (6,)):
        a, b = (values(rng, dtype, (-3, 3), shape) for _ in range(2))
        made.append((a, b, halves(rng, shape[:-1]).astype(a.dtype)))
    return made


# ---- classes ----


def picked(x: np.ndarray, t: np.ndarray, ignore_index: int) -> Any:
    """-x[target] with classes along axis 1, and which count."""
    counts = t != ignore_index
    at = np.expand_dims(np.where(counts, t, 0), 1)
    return np.where(counts, -np.take_along_axis(x, at, 1)[:, 0], 0), counts


def nll(
    x: np.ndarray,
    t: np.ndarray,
    w: np.ndarray,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Any:
    losses, counts = picked(x, t, ignore_index)
    weights = np.where(counts, w[np.where(counts, t, 0)], 0)
    if reduction == "mean":
        return (losses * weights).sum() / weights.sum()
    return reduced(losses * weights, reduction)


def nll_scale(x: Any, t: Any, w: Any, **options: Any) -> Any:
    return nll(-np.abs(x), t, w, **options)


def classes(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    made = []
    for shape in ((5, 10), (33, 4), (2, 5, 3, 4)):
        t = rng.integers(0, shape[1], (shape[0], *shape[2:]))
        t.reshape(-1)[0] = 0  # so that ignore_index=3 below never ignores all
        made.append(
            (values(rng, dtype, (-9, -1), shape), t, values(rng, dtype, (0.5, 2), shape[1:2]))
        )
    return made


def smooth_classes(rng: np.random.Generator) -> list[Arrays]:
    return [
        (
            rng.normal(size=shape),
            np.arange(shape[0] * math.prod(shape[2:])).reshape(shape[0], *shape[2:]) % shape[1],
            rng.uniform(0.5, 2, shape[1]),
        )
        for shape in ((3, 4), (2, 5, 2))
    ]


WEIGHTED = (*REDUCTIONS, {"ignore_index": 3}, {"ignore_index": 3, "reduction": "none"})
x23, t2 = tw.ones((2, 3)), tw.asarray([0, 1])

RECORDS = (
    OpCase(
        "cdist",
        tw.cdist,
        all_distances,
        matrices,
        {**NARROW, "float32": 16.0, "float64": 16.0},
        same,
        lambda a, b, **options: np.maximum(all_distances(a, b, **options), 1),
        ({}, {"p": 0.0}, {"p": 1.0}, {"p": math.inf}, {"p": 3.0}, {"p": 1.5}),
        special_matrices,
        signed_zero=False,
        differentiable=(0, 1),
        smooth=lambda rng: [
            (rng.normal(size=(3, 4)), rng.normal(size=(2, 4))),
            (rng.normal(size=(2, 1, 2, 3)), rng.normal(size=(3, 2, 3))),
        ],
        gradient_tolerance=64,
        errors=(
            refused(
                lambda: tw.cdist(x23, tw.ones((2, 4))), ValueError, "cdist: rows of 3 and of 4"
            ),
            refused(lambda: tw.cdist(x23, x23, p=-1.0), ValueError, "cdist: p is at least 0"),
            refused(lambda: tw.cdist(x23, t2), ValueError, "cdist: needs at least 2 dimensions"),
            refused(
                lambda: tw.cdist(*[tw.ones((2, 3), dtype=tw.int32)] * 2), TypeError, "cdist: no"
            ),
        ),
    ),
    OpCase(
        "cross",
        tw.cross,
        np.cross,
        threes,
        {
            **dict.fromkeys(("float16", "bfloat16"), 2.0),
            **dict.fromkeys(("float32", "float64", "complex64", "complex128"), 4.0),
            **dict.fromkeys(("int32", "int64"), 0.0),
        },
        same,
        lambda a, b, **options: np.full(np.shape(np.cross(a, b)), 18.0),
        special=special_threes,
        signed_zero=False,
        differentiable=(0, 1),
        smooth=lambda rng: [(rng.normal(size=(2, 3)), rng.normal(size=(4, 2, 3)))],
        gradient_tolerance=32,
        errors=(
            refused(lambda: tw.cross(tw.ones(4), tw.ones(4)), ValueError, "cross: axis -1 must"),
            refused(
                lambda: tw.cross(tw.ones((3, 3)), tw.ones((3, 3, 3)), axis=0),
                ValueError,
                "cross: axis 0 lies differently",
            ),
            refused(lambda: tw.cross(x23, x23, axis=5), IndexError, "cross: axis 5"),
        ),
    ),
    OpCase(
        "cosine_similarity",
        tw.cosine_similarity,
        cosine,
        vectors,
        NARROW,
        same,
        ones_like(cosine, 1),
        ({}, {"axis": -1}, {"axis": 0}, {"eps": 0.5}),
        signed_zero=False,
        differentiable=(0, 1),
        smooth=lambda rng: [(rng.normal(size=(2, 3)), rng.normal(size=(2, 3)))],
        gradient_tolerance=32,
        errors=(
            refused(
                lambda: tw.cosine_similarity(x23, x23, axis=2),
                IndexError,
                "cosine_similarity: axis 2",
            ),
            refused(
                lambda: tw.cosine_similarity(x23, tw.ones((4,))), ValueError, "(2, 3) and (4,)"
            ),
        ),
    ),
    OpCase(
        "pairwise_distance",
        tw.pairwise_distance,
        distance,
        vectors,
        NARROW,
        same,
        lambda a, b, **options: distance(np.abs(a), -np.abs(b), **options),
        ({}, {"p": 1.0}, {"p": 3.0, "keepdims": True}, {"p": math.inf}),
        signed_zero=False,
        differentiable=(0, 1),
        smooth=lambda rng: [(rng.normal(size=(2, 3)), rng.normal(size=(2, 3)))],
        gradient_tolerance=32,
        errors=(
            refused(
                lambda: tw.pairwise_distance(tw.ones(()), x23),
                ValueError,
                "pairwise_distance: expected vectors, got () and (2, 3)",
            ),
        ),
    ),
    OpCase(
        "cosine_embedding_loss",
        tw.cosine_embedding_loss,
        cosine_embedding,
        signed_pairs,
        NARROW,
        same,
        ones_like(cosine_embedding, 2),
        (*REDUCTIONS, {"margin": 0.25}),
        signed_zero=False,
        differentiable=(0, 1),
        smooth=lambda rng: [
            (rng.normal(size=(2, 3)), rng.normal(size=(2, 3)), np.array([1.0, -1.0]))
        ],
        gradient_tolerance=32,
        errors=(
            refused(
                lambda: tw.cosine_embedding_loss(x23, x23, x23),
                ValueError,
                "cosine_embedding_loss: expected inputs (n, d) and target (n,), or (d,) and (), "
                "got (2, 3), (2, 3) and (2, 3)",
            ),
        ),
    ),
    OpCase(
        "triplet_margin_loss",
        tw.triplet_margin_loss,
        triplet,
        triples,
        NARROW,
        same,
        lambda a, b, c, margin=1.0, swap=False, reduction="mean", **norm: reduced(
            distance(np.abs(a), -np.abs(b), **norm)
            + distance(np.abs(a), -np.abs(c), **norm)
            + margin,
            reduction,
        ),
        (*REDUCTIONS, {"swap": True}, {"margin": 0.5, "p": 1.0}, {"p": 3.0}),
        signed_zero=False,
        differentiable=(0, 1, 2),
        smooth=lambda rng: [tuple(rng.normal(size=(2, 3)) for _ in range(3))],
        gradient_tolerance=32,
        errors=(
            refused(
                lambda: tw.triplet_margin_loss(x23, x23, tw.ones((3,))),
                ValueError,
                "triplet_margin_loss: expected vectors with as many axes, got (2, 3), (2, 3) and "
                "(3,)",
            ),
        ),
    ),
    OpCase(
        "nll_loss",
        tw.nll_loss,
        nll,
        classes,
        NARROW,
        same,
        nll_scale,
        WEIGHTED,
        signed_zero=False,
        differentiable=(0, 2),
        smooth=smooth_classes,
        gradient_tolerance=8,
        errors=(
            refused(
                lambda: tw.nll_loss(x23, tw.asarray([0, 3])),
                IndexError,
                "nll_loss: target 3 is out of range for 3 classes",
            ),
            refused(
                lambda: tw.nll_loss(x23, tw.asarray([0, -1])),
                IndexError,
                "nll_loss: target -1 is out of range for 3 classes",
            ),
            refused(
                lambda: tw.nll_loss(x23, tw.asarray([0])),
                ValueError,
                "nll_loss: expected input (n, classes) and target (n,)",
            ),
            refused(
                lambda: tw.nll_loss(x23, tw.ones((2,))),
                TypeError,
                "nll_loss: targets must be class indices (integers), got float32",
            ),
            refused(
                lambda: tw.nll_loss(tw.astype(x23, tw.int32), t2),
                TypeError,
                "nll_loss: input must be floating-point, got int32",
            ),
            refused(
                lambda: tw.nll_loss(x23, t2, tw.ones((2,))),
                ValueError,
                "nll_loss: weight (2,) does not fit 3 classes",
            ),
        ),
    ),
)
