"""argmax and argmin of all elements where memory lies across the logical order: the first of
equals, and the first NaN, are those of the logical order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

DTYPES = ("bool", "int8", "uint16", "int32", "int64", "uint64", *arrays.FLOATS)
SHAPES = ((16, 3), (33, 65), (300, 17), (5, 40, 6), (2, 17, 3, 20))


def lying(x: np.ndarray, order: tuple[int, ...], dtype: str) -> tw.Tensor:
    """The same numbers, in memory along `order`."""
    return arrays.tensor(x.transpose(order), dtype).permute(*np.argsort(order).tolist())


def check(x: np.ndarray, order: tuple[int, ...], dtype: str) -> None:
    t = lying(x, order, dtype)
    for name in ("argmax", "argmin"):
        got = getattr(tw, name)(t)
        assert got.dtype == tw.int64
        assert got.item() == getattr(np, name)(x), (name, x.shape, order)
        assert getattr(tw, name)(t, keepdims=True).shape == (1,) * x.ndim
        flipped = tw.flip(t, (0,))
        assert getattr(tw, name)(flipped).item() == getattr(np, name)(x[::-1])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_equals(dtype: str, shape: tuple[int, ...], isa: str, rng) -> None:
    for order in itertools.permutations(range(len(shape))):
        if dtype == "bool":
            whole = rng.random(shape) < 0.01
            few = rng.random(shape) < 0.5
        elif dtype in arrays.FLOATS:
            whole = arrays.rounded(rng.normal(size=shape), dtype)
            few = arrays.rounded(rng.integers(-1, 2, shape), dtype)
        else:
            limits = np.iinfo(dtype)
            whole = rng.integers(limits.min, limits.max, shape, dtype=dtype, endpoint=True)
            few = rng.integers(0, 3, shape).astype(dtype)
        for x in (whole, few, np.ones_like(few)):
            check(x, order, dtype)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", arrays.FLOATS)
def test_the_first_nan_and_infinities(dtype: str, shape: tuple[int, ...], isa: str, rng) -> None:
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0]
    for order in itertools.permutations(range(len(shape))):
        x = arrays.rounded(rng.choice(values, shape), dtype)
        check(x, order, dtype)
        check(np.nan_to_num(x, nan=0.0, posinf=np.inf, neginf=-np.inf), order, dtype)
        one = arrays.rounded(rng.normal(size=shape), dtype)
        one[tuple(int(rng.integers(extent)) for extent in shape)] = np.nan
        check(one, order, dtype)


def test_large_and_on_threads(threads, rng) -> None:
    x = rng.integers(0, 50, (1100, 900)).astype(np.int32)
    wide = np.uint64(2**63) + x.astype(np.uint64)
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        check(x, (1, 0), "int32")
        check(wide, (1, 0), "uint64")
