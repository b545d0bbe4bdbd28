"""Records of scaled dot-product attention (masks are in test_attention.py) and rotary embedding."""

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


# ---- rotary position embedding ----


def rotary(
    x: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool = False
) -> np.ndarray:
    """Pairs as complex numbers, times cos + i sin."""
    half = cos.shape[-1]
    pairs = np.arange(2 * half).reshape((half, 2) if interleaved else (2, half))
    first, second = pairs.T if interleaved else pairs
    y = np.array(x)
    y[..., first] = x[..., first] * cos - x[..., second] * sin
    y[..., second] = x[..., first] * sin + x[..., second] * cos
    return y


def rotary_scale(
    x: np.ndarray, cos: np.ndarray, sin: np.ndarray, interleaved: bool = False
) -> np.ndarray:
    size = np.abs(rotary(np.abs(x), np.abs(cos), -np.abs(sin), interleaved))
    return np.asarray(np.maximum(size, np.abs(rotary(*map(np.abs, (x, cos, sin)), interleaved))))


# (x, cos, sin): a part of the width, angles that broadcast, tails of vectors, nothing at all.
ROTARY_SHAPES = (
    ((5, 8), (5, 4), (5, 4)),
    ((2, 3, 7, 66), (7, 33), (7, 33)),
    ((2, 3, 1, 40), (2, 1, 1, 17), (17,)),
    ((3, 4, 6), (3, 1, 3), (4, 3)),
    ((1, 5), (2,), (1, 2)),
    ((2, 3, 4), (3, 0), (0,)),
    ((0, 3, 4), (3, 2), (3, 2)),
)


def rotary_arguments(rng: np.random.Generator, dtype: str) -> list[Arrays]:
    return [tuple(values(rng, dtype, (-2, 2), s) for s in shapes) for shapes in ROTARY_SHAPES]


def rotary_smooth(rng: np.random.Generator) -> list[Arrays]:
    shapes = (((2, 3, 5), (3, 2), (2, 1, 2)), ((3, 4), (2,), (3, 2)))
    return [tuple(rng.normal(size=s) for s in case) for case in shapes]


def refused_rotary(*shapes: tuple[int, ...], dtype: tw.dtype = tw.float32) -> object:
    return lambda: tw.rotary_embedding(*(tw.ones(shape, dtype=dtype) for shape in shapes))


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
    OpCase(
        "rotary_embedding",
        tw.rotary_embedding,
        rotary,
        rotary_arguments,
        {"float16": 1.0, "bfloat16": 1.0, "float32": 1.5, "float64": 1.5},
        same,
        rotary_scale,
        ({}, {"interleaved": True}),
        signed_zero=False,
        differentiable=(0, 1, 2),
        smooth=rotary_smooth,
        gradient_tolerance=4,
        large=((8, 64, 128), (64, 64), (64, 64)),
        errors=(
            ErrorInput(
                refused_rotary((4,), (2,), (2,)),
                ValueError,
                "rotary_embedding: x must be (..., length, width), got (4,)",
            ),
            ErrorInput(
                refused_rotary((3, 4), (2, 2), (3, 2)),
                ValueError,
                "cos (2, 2) does not broadcast to the rows of x (3, 4)",
            ),
            ErrorInput(
                refused_rotary((3, 4), (3, 2), (3, 1)),
                ValueError,
                "cos (3, 2) and sin (3, 1) differ in their last extent",
            ),
            ErrorInput(
                refused_rotary((3, 4), (3, 3), (3, 3)),
                ValueError,
                "cos has 3 angles, which rotate 6 numbers, but a row of x has 4",
            ),
            ErrorInput(
                refused_rotary((3, 4), (3, 2), (3, 2), dtype=tw.int32),
                TypeError,
                "rotary_embedding: no kernel for int32",
            ),
        ),
    ),
)
