"""Reductions of views: short axes, gaps, repetitions and any order of axes, held against NumPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

EXTENTS = [1, 2, 3, 4, 5, 8, 9, 17, 33, 70]
TOLERANCE = {"float32": 2e-5, "float64": 1e-11, "bfloat16": 2e-2}


def view(rng: np.random.Generator, dtype: str) -> tuple[tw.Tensor, np.ndarray]:
    """A tensor and its like in NumPy."""
    shape = rng.choice(EXTENTS, rng.integers(1, 5))
    while np.prod(shape) > 20_000:
        shape = shape[:-1]
    values = rng.integers(-3, 4, tuple(2 * shape)).astype("float64")
    if dtype in TOLERANCE and rng.random() < 0.3:
        values.ravel()[rng.integers(0, values.size, 3)] = np.nan
    t = tw.asarray(values).astype(getattr(tw, dtype))
    a = values if dtype in TOLERANCE else arrays.array(t)
    cuts = [
        [slice(n), slice(0, 2 * n, 2), slice(1, n + 1), slice(None, None, -2), slice(n, None)]
        for n in map(int, shape)
    ]
    index = tuple(cut[rng.integers(0, 5)] for cut in cuts)
    t, a = t[index], a[index]
    if rng.random() < 0.3:
        axis = rng.integers(0, len(shape))
        first = tuple(slice(1) if i == axis else slice(None) for i in range(len(shape)))
        t, a = tw.broadcast_to(t[first], a.shape), np.broadcast_to(a[first], a.shape)
    order = tuple(map(int, rng.permutation(len(shape))))
    return tw.permute_dims(t, order), a.transpose(order)


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int32", "bool"])
def test_reductions_of_views(dtype: str, isa: str, rng: np.random.Generator) -> None:
    names = ["any", "all", "sum"] if dtype == "bool" else ["any", "all", "sum", "max", "min"]
    names += ["mean", "var"] if dtype in TOLERANCE else []
    for _ in range(150):
        t, a = view(rng, dtype)
        axes = tuple(map(int, np.flatnonzero(rng.random(a.ndim) < 0.5))) or tuple(range(a.ndim))
        for name in names:
            got = np.asarray(getattr(tw, name)(t, axis=axes).astype(tw.float64))
            with np.errstate(invalid="ignore"):
                want = getattr(np, name)(a, axis=axes)
            tolerance = TOLERANCE.get(dtype, 0) if name in ("sum", "mean", "var") else 0
            note = f"{name} of {a.shape} with strides {t.strides} over {axes}"
            np.testing.assert_allclose(got, want, tolerance, tolerance * a.size, err_msg=note)
        if dtype != "bool":
            np.testing.assert_array_equal(
                arrays.array(tw.argmax(t, axis=axes[0])), np.argmax(a, axis=axes[0])
            )


SHAPES = [(16_385, 4, 4), (4, 16_385, 4), (65_537, 3), (33_000, 2, 2, 2), (600, 16, 16, 2, 2)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bool"])
def test_small_panels_of_many_terms(
    shape: tuple[int, ...], dtype: str, rng: np.random.Generator
) -> None:
    """More terms than a thread takes at a time, of which a few lie together."""
    t = tw.asarray(rng.integers(-3, 4, shape)).astype(getattr(tw, dtype))
    a = arrays.array(t)
    axes = range(a.ndim)
    for reduced in (c for n in axes for c in itertools.combinations(axes, n + 1)):
        for order in (tuple(axes), tuple(reversed(axes))):
            for name in ("sum", "any", "all") if dtype == "bool" else ("sum", "max", "any"):
                got = getattr(tw, name)(tw.permute_dims(t, order), axis=reduced)
                want = getattr(np, name)(a.transpose(order), axis=reduced)
                np.testing.assert_array_equal(np.asarray(got), want, f"{name} {reduced} {order}")
