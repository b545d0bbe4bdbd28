"""Reductions of integers and bools of every width, which are read as they are, and of flipped
arrays, against NumPy: all lengths around a vector's, edges of the types, several threads."""

from __future__ import annotations

import numpy as np
import pytest
from subcases import each

import tilewright as tw

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
LENGTHS = (1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257, 1000, 4096, 4097, 9001)
OPS = ("sum", "prod", "max", "min", "argmax", "argmin", "any", "all")


def check(x: tw.Tensor, array: np.ndarray, axis: int | None) -> None:
    for op in OPS:
        got = getattr(tw, op)(x, axis=axis).numpy()
        want = getattr(np, op)(array, axis=axis)
        np.testing.assert_array_equal(got, want, f"{op} of {array.dtype}{array.shape}, {axis=}")


@each("n", LENGTHS)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_at_the_edges_of_their_types(dtype: str, n: int, isa: str, rng) -> None:
    limits = np.iinfo(dtype)
    whole = rng.integers(limits.min, limits.max, (5, n), dtype=dtype, endpoint=True)
    few = (whole % 3).astype(dtype)  # with ties, whose first place counts
    most = np.full((5, n), limits.max, dtype)
    least = np.full((5, n), limits.min, dtype)
    for array in (whole, few, most, least):
        for axis in (None, 0, 1):
            check(tw.asarray(array), array, axis)
            check(tw.asarray(np.ascontiguousarray(array.T)).T, array, axis)


@pytest.mark.parametrize("n", LENGTHS)
def test_one_truth_among_many(n: int, isa: str, rng) -> None:
    for array in (np.zeros((3, n), bool), np.ones((3, n), bool)):
        for place in {0, n // 2, n - 1, int(rng.integers(n))}:
            mask = array.copy()
            mask[1, place] = not mask[1, place]
            for axis in (None, 0, 1):
                for op in ("sum", "any", "all", "max", "min", "count_nonzero"):
                    got = getattr(tw, op)(tw.asarray(mask), axis=axis).numpy()
                    want = getattr(np, op)(mask, axis=axis)
                    np.testing.assert_array_equal(got, want, f"{op}, {place=}, {axis=}")


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, "float32"])
def test_large_arrays_on_threads(dtype: str, threads, rng) -> None:
    array = rng.integers(0, 100, 1_500_001).astype(dtype)
    total = array.sum(dtype=np.int64)
    if dtype == "float32":
        total = np.float32(total)  # which our sum in double is rounded to once
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        x = tw.asarray(array)
        assert tw.max(x).item() == array.max()
        assert tw.argmax(x).item() == array.argmax()
        assert tw.argmin(x).item() == array.argmin()
        assert tw.sum(x).item() == total
        assert tw.any(x).item() == array.any()
        assert tw.all(x).item() == array.all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_places_of_extremes_with_nan(dtype: str, isa: str, rng) -> None:
    for n in (5, 64, 1000, 1024, 5000):
        array = rng.normal(size=n).astype(dtype)
        for place in (0, n // 2, n - 1):
            holed = array.copy()
            holed[place:] = np.where(rng.random(n - place) < 0.1, np.nan, holed[place:])
            holed[place] = np.nan
            for op in ("argmax", "argmin", "max", "min"):
                got = getattr(tw, op)(tw.asarray(holed)).numpy()
                np.testing.assert_array_equal(got, getattr(np, op)(holed), op)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
def test_flipped_arrays(axes: tuple[int, ...], isa: str, rng) -> None:
    array = rng.integers(-100, 100, (7, 33, 130)).astype(np.int32)
    x, want = tw.flip(tw.asarray(array), axes), np.flip(array, axes)
    np.testing.assert_array_equal(x.contiguous().numpy(), want)
    np.testing.assert_array_equal((-x.permute(2, 0, 1)).numpy(), -want.transpose(2, 0, 1))
    for axis in (None, 0, 1, 2):
        check(x, want, axis)
    for dtype in (np.int8, np.int16, np.float64, np.complex128):
        given = array.astype(dtype)
        got = tw.flip(tw.asarray(given), axes).contiguous().numpy()
        np.testing.assert_array_equal(got, np.flip(given, axes))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_products_of_rows_and_one_column(dtype: str, isa: str, rng) -> None:
    for m, k in ((1, 1), (1, 77), (5, 64), (3, 1000)):
        a, b = (rng.integers(0, 200, s).astype(dtype) for s in ((m, k), (k,)))
        with np.errstate(over="ignore"):
            want = (a.astype(np.uint64) @ b.astype(np.uint64)).astype(dtype)
        np.testing.assert_array_equal((tw.asarray(a) @ tw.asarray(b)).numpy(), want)
        every_second = tw.asarray(np.repeat(b, 2))[::2]
        np.testing.assert_array_equal((tw.asarray(a) @ every_second).numpy(), want)
