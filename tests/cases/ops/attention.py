"""The record of scaled dot-product attention; masks are in test_attention.py."""

from __future__ import annotations

import numpy as np

import tilewright as tw
from cases.arrays import rounded
from cases.generators import same, values
from cases.record import Arrays, ErrorInput, OpCase

# (batch..., queries, keys, size, value size): fewer queries than a block, more, and odd tails.
SHAPES = (
    ((), 5, 7, 4, 6),
    ((2, 3), 9, 5, 8, 8),
    ((2,), 70, 67, 16, 33),
    ((1, 2), 1, 37, 32, 16),
    ((2,), 4, 0, 3, 2),
    ((0, 2), 3, 4, 5, 6),
)


def scores(q: np.ndarray, k: np.ndarray, is_causal: bool, scale: float | None) -> np.ndarray:
    factor = 1 / np.sqrt(q.shape[-1]) if scale is None else scale
    s = (q * factor) @ np.swapaxes(k, -1, -2)
    if is_causal:
        s = np.where(np.tri(*s.shape[-2:], dtype=bool), s, -np.inf)
    return s


def weights(s: np.ndarray) -> np.ndarray:
    """Softmax along the last axis; rows without a finite score are 0."""
    if s.shape[-1] == 0:
        return s
    top = s.max(axis=-1, keepdims=True)
    terms = np.exp(s - np.where(top == -np.inf, 0, top))
    total = terms.sum(axis=-1, keepdims=True)
    return np.asarray(terms / np.where(total == 0, 1, total))


def attention(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    is_causal: bool = False,
    scale: float | None = None,
) -> np.ndarray:
    return np.asarray(weights(scores(q, k, is_causal, scale)) @ v)


def attention_scale(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    is_causal: bool = False,
    scale: float | None = None,
) -> np.ndarray:
    """Rounding of the scores, of which each weight takes e to the power."""
    size = np.abs(scores(np.abs(q), np.abs(k), False, scale)).max(axis=-1, keepdims=True, initial=0)
    return np.asarray((size + 1) * attention(q, k, np.abs(v), is_causal, scale))


def arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [
        (
            values(rng, dtype, (-2, 2), (*batch, queries, size)),
            values(rng, dtype, (-2, 2), (*batch, keys, size)),
            values(rng, dtype, (-9, 9), (*batch, keys, value_size)),
        )
        for batch, queries, keys, size, value_size in SHAPES
    ]


def special(dtype: str) -> list[Arrays]:
    """A NaN in one query reaches its row alone; large scores do not overflow."""
    q, k, v = np.ones((2, 6, 4)), np.ones((2, 5, 4)), np.ones((2, 5, 3))
    q[1, 2, 1] = np.nan
    q[0] *= 40
    v[0] = np.arange(15).reshape(5, 3)
    return [tuple(rounded(x, dtype) for x in (q, k, v))]


def smooth(rng: np.random.Generator) -> list[Arrays]:
    return [
        tuple(rng.normal(size=(*batch, *matrix)) for matrix in ((q, e), (k, e), (k, v)))
        for batch, q, k, e, v in (((2,), 3, 4, 2, 3), ((), 5, 3, 3, 1), ((2, 1), 2, 2, 1, 2))
    ]


def call(*shapes: tuple[int, ...], **options: object) -> object:
    return tw.scaled_dot_product_attention(*(tw.ones(shape) for shape in shapes), **options)


NAME = "scaled_dot_product_attention"
ERRORS = (
    ErrorInput(lambda: call((3,), (3,), (3,)), ValueError, f"{NAME}: query, key and value have"),
    ErrorInput(lambda: call((2, 3), (2, 4), (2, 4)), ValueError, "differ in their last extent"),
    ErrorInput(lambda: call((2, 3), (2, 3), (5, 4)), ValueError, "differ in their number of rows"),
    ErrorInput(
        lambda: call((2, 2, 3), (3, 2, 3), (3, 2, 3)), ValueError, "do not broadcast: (2,) and (3,)"
    ),
    ErrorInput(lambda: call((2, 3), (4, 3), (4, 3), (2, 5)), ValueError, "(2, 5)"),
    ErrorInput(
        lambda: call((2, 3), (4, 3), (4, 3), (2, 4), is_causal=True),
        ValueError,
        "attn_mask and is_causal exclude each other",
    ),
    ErrorInput(lambda: call((2, 3), (4, 3), (4, 3), dropout_p=1.5), ValueError, "dropout_p = 1.5"),
    ErrorInput(
        lambda: call((3, 2, 3), (2, 4, 3), (2, 4, 3), enable_gqa=True),
        ValueError,
        "the 3 heads of query are no multiple of those of key (2, 4, 3)",
    ),
    ErrorInput(
        lambda: tw.scaled_dot_product_attention(
            tw.ones((2, 3)), tw.ones((2, 3), dtype=tw.float64), tw.ones((2, 3))
        ),
        TypeError,
        "one floating-point type, got float32, float64 and float32",
    ),
    ErrorInput(
        lambda: tw.scaled_dot_product_attention(
            tw.ones((2, 3)), tw.ones((2, 3)), tw.ones((2, 3)), tw.ones((2, 2), dtype=tw.int64)
        ),
        TypeError,
        "attn_mask is bool or floating-point, got int64",
    ),
)

RECORDS = (
    OpCase(
        NAME,
        tw.scaled_dot_product_attention,
        attention,
        arguments,
        {"float16": 1.0, "bfloat16": 1.0, "float32": 3.0, "float64": 3.0},
        same,
        attention_scale,
        ({}, {"is_causal": True}, {"scale": 0.3}),
        special,
        signed_zero=False,
        differentiable=(0, 1, 2),
        smooth=smooth,
        gradient_tolerance=16,
        errors=ERRORS,
    ),
)
