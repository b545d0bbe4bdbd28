"""Vectors at the end of an array touch nothing beyond it: the next page belongs to no one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import tilewright as tw
from tilewright.nn import functional

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


# Of a matrix; what needs windows takes its rows as channels.
CALLS: dict[str, Callable[[tw.Tensor], tw.Tensor]] = {
    "rows by rows": lambda x: x @ x.T,
    "columns by columns": lambda x: x.T @ x,
    "by a vector": lambda x: x @ x[0],
    "transposed": lambda x: tw.asarray(x.T, copy=True),
    "of all": lambda x: tw.max(x) + tw.sum(x),
    "down columns": lambda x: tw.sum(x, axis=0) + tw.max(x, axis=0),
    "positions": lambda x: tw.argmax(x, axis=1),
    "order": lambda x: tw.argsort(x, axis=1),
    "flipped": lambda x: tw.flip(x, axis=1),
    "joined": lambda x: tw.concat((x, x), axis=1),
    "picked": lambda x: tw.take(x, tw.asarray([x.shape[1] - 1, 0]), axis=1),
}
CALLS_OF_FLOATS: dict[str, Callable[[tw.Tensor], tw.Tensor]] = {
    "log_softmax": lambda x: functional.log_softmax(x, 1),
    "logsumexp": lambda x: tw.logsumexp(x, axis=0),
    "layer_norm": lambda x: functional.layer_norm(x, x.shape[1:]),
    "convolution": lambda x: functional.conv1d(x[None], tw.ones((4, x.shape[0], 1), dtype=x.dtype)),
    "its weights": lambda x: functional.conv1d(
        tw.ones((1, x.shape[1], 6), dtype=x.dtype), x[:, :, None]
    ),
    "pooling": lambda x: functional.max_pool1d(x[None], min(2, x.shape[1])),
    "attention": lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None]),
    "functions": lambda x: tw.exp(x) + tw.erf(x) * tw.tanh(x),
}


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (name, dtype)
        for name in CALLS | CALLS_OF_FLOATS
        for dtype in ("float32", "float64", "float16")
    ]
    + [(name, "int32") for name in CALLS],
)
def test_results_do_not_depend_on_what_lies_behind(
    call: str, dtype: str, isa: str, last_page: np.ndarray, rng: np.random.Generator
) -> None:
    kind = np.dtype(dtype)
    for rows, n in [(r, n) for r in (1, 2, 3, 7) for n in (1, 2, 3, 5, 8, 9, 15, 17, 31, 33, 65)]:
        place = last_page[PAGE - rows * n * kind.itemsize :].view(kind).reshape(rows, n)
        place[:] = rng.integers(-9, 9, (rows, n)).astype(kind)
        f = (CALLS | CALLS_OF_FLOATS)[call]
        got, want = f(tw.asarray(place)), f(tw.asarray(place.copy()))
        np.testing.assert_array_equal(np.asarray(got), np.asarray(want), err_msg=f"{rows} x {n}")
