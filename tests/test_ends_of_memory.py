"""Vectors at the end of an array touch nothing beyond it: the next page belongs to no one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator

import numpy as np
import pytest

import tilewright as tw

PAGE = mmap.PAGESIZE
DTYPES = ("bool", "uint8", "int16", "int32", "int64", "float32", "float64", "float16")


@pytest.fixture
def last_page() -> Iterator[np.ndarray]:
    """A page of bytes before one that may not be touched."""
    memory = mmap.mmap(-1, 2 * PAGE)
    place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    libc = ctypes.CDLL(None, use_errno=True)
    beyond = ctypes.c_void_p(place + PAGE)
    assert libc.mprotect(beyond, PAGE, 0) == 0
    yield np.frombuffer(memory, np.uint8, PAGE)
    assert libc.mprotect(beyond, PAGE, mmap.PROT_READ | mmap.PROT_WRITE) == 0


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_last_elements_of_a_page(
    dtype: str, isa: str, last_page: np.ndarray, rng: np.random.Generator
) -> None:
    kind = np.dtype(dtype)
    for rows, n in [(1, n) for n in range(1, 68)] + [(3, n) for n in (1, 2, 3, 5, 7, 9, 13, 33)]:
        place = last_page[PAGE - rows * n * kind.itemsize :].view(kind).reshape(rows, n)
        place[:] = values = rng.integers(0, 2, (rows, n)).astype(kind)
        x = tw.asarray(place)
        np.testing.assert_array_equal(np.asarray(tw.sum(x, axis=1)), values.sum(1, dtype=np.int64))
        np.testing.assert_array_equal(np.asarray(tw.max(x, axis=1)), values.max(1))
        np.testing.assert_array_equal(np.asarray(tw.sort(x, axis=1)), np.sort(values, 1))
        np.testing.assert_array_equal(np.asarray(tw.where(x == 0, x, x)), values)
        if dtype == "bool":
            continue
        np.testing.assert_array_equal(np.asarray(tw.prod(x, axis=1)), values.prod(1))
        np.testing.assert_array_equal(np.asarray(x.to(tw.float32)), values.astype(np.float32))
        np.testing.assert_array_equal(
            np.asarray(tw.cumulative_sum(x, axis=1)), np.cumsum(values, 1)
        )
        if kind.kind == "f":
            want = np.exp(values.astype(np.float64))
            want /= want.sum(1, keepdims=True)
            np.testing.assert_allclose(np.asarray(tw.softmax(x, 1)), want, rtol=2e-3)
        x += 1  # in that memory
        np.testing.assert_array_equal(place, values + kind.type(1))
