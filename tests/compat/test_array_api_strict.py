"""Random calls of the standard's functions, against array-api-strict: its text, over NumPy.

Where that refuses a call nothing is asked of ours, which may allow more.
"""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tilewright as tw

strict = pytest.importorskip("array_api_strict")

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "complex64", "complex128")
DTYPES = ("bool", *INTEGERS, *FLOATS)
ENDS = (0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan, 0.5, -3.5, 1e30, -1e-40)
# Units in the last place, of the larger of both: what formulas of several roundings may differ.
UNITS = {"float32": 2e-7, "float64": 4e-16, "complex64": 4e-7, "complex128": 2e-15}

NAMES_OF_ONE = """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp floor imag isfinite
    isinf isnan log log1p log2 log10 logical_not negative positive real round sign signbit sin sinh
    square sqrt tan tanh trunc
"""
NAMES_OF_TWO = """
    add atan2 bitwise_and bitwise_or bitwise_xor copysign divide equal greater greater_equal hypot
    less less_equal logaddexp logical_and logical_or logical_xor maximum minimum multiply nextafter
    not_equal remainder subtract
"""

Call = tuple[str, list[Any], dict[str, Any]]


class Maker:
    """Random shapes, arrays and axes."""

    def __init__(self, seed: int) -> None:
        self.numbers, self.choices = np.random.default_rng(seed), random.Random(seed)

    def shape(self, ranks: int = 3) -> tuple[int, ...]:
        rank = self.choices.randint(0, ranks)
        return tuple(self.choices.choices((0, 1, 2, 3, 4), (1, 3, 4, 4, 2), k=rank))

    def array(self, dtype: str, shape: tuple[int, ...], plain: bool = False) -> np.ndarray:
        """`plain`: small finite numbers."""
        count = math.prod(shape)
        if dtype == "bool":
            return self.numbers.integers(0, 2, shape).astype(bool)
        if dtype in INTEGERS:
            ends = np.iinfo(dtype)
            x = self.numbers.integers(max(ends.min, -9), min(ends.max, 9) + 1, count).astype(dtype)
            if count and not plain:
                x[0] = self.choices.choice((ends.min, ends.max, 0))
            return x.reshape(shape)
        x = np.empty(count, dtype)
        for part in (x.real, x.imag) if x.dtype.kind == "c" else (x,):
            drawn = self.numbers.normal(size=count) * self.choices.choice((1, 10))
            if not plain:
                ends = self.numbers.random(count) < 0.25
                drawn[ends] = self.numbers.choice(ENDS, ends.sum())
            part[...] = np.clip(drawn, -50, 50) if plain else drawn
        return x.reshape(shape)

    def axis(self, rank: int, several: bool = True) -> int | tuple[int, ...] | None:
        if several and rank and self.choices.random() < 0.3:
            return tuple(self.choices.sample(range(rank), self.choices.randint(0, rank)))
        return self.choices.choice([None, *range(-rank, rank)])

    def two(self) -> tuple[np.ndarray, Any]:
        """Operands that broadcast."""
        whole = self.shape()
        part = tuple(1 if self.choices.random() < 0.3 else n for n in whole)
        dtype = self.choices.choice(DTYPES)
        other = dtype if self.choices.random() < 0.6 else self.choices.choice(DTYPES)
        if self.choices.random() < 0.2:
            return self.array(dtype, whole), self.choices.choice((2, -1, 0.5, True))
        pair = self.array(dtype, whole), self.array(other, part[self.choices.randint(0, 1) :])
        return pair if self.choices.random() < 0.5 else pair[::-1]


def elementwise(make: Maker) -> Iterator[Call]:
    for name in NAMES_OF_ONE.split():
        yield name, [make.array(make.choices.choice(DTYPES), make.shape())], {}
    for name in NAMES_OF_TWO.split():
        yield name, [*make.two()], {}
    x, y = make.two()
    if isinstance(y, np.ndarray):
        yield "where", [make.array("bool", x.shape), x, y], {}
    yield "clip", [x], {"min": make.choices.choice((None, 0)), "max": 3}


def along_axes(make: Maker) -> Iterator[Call]:
    shape = make.shape()
    rank, dtype = len(shape), make.choices.choice(DTYPES)
    x, plain = make.array(dtype, shape), make.array(dtype, shape, plain=True)
    for name in ("sum", "prod", "mean", "std", "var", "max", "min", "any", "all", "count_nonzero"):
        kept = make.choices.random() < 0.5
        yield name, [plain], {"axis": make.axis(rank), "keepdims": kept}
    for name in ("argmax", "argmin"):
        yield name, [x], {"axis": make.axis(rank, False), "keepdims": make.choices.random() < 0.5}
    yield "nonzero", [x], {}
    for name in ("unique_values", "unique_counts", "unique_inverse"):
        yield name, [plain], {}
    yield "flip", [x], {"axis": make.axis(rank)}
    yield "roll", [x, make.choices.randint(-5, 5)], {"axis": make.axis(rank, False)}
    yield "expand_dims", [x], {"axis": make.choices.randint(-rank - 1, rank)}
    yield "squeeze", [x], {"axis": tuple(i for i in range(rank) if shape[i] == 1)}
    if not rank:
        return
    axis = make.choices.randrange(-rank, rank)
    for name in ("cumulative_sum", "cumulative_prod"):
        yield name, [plain], {"axis": axis, "include_initial": make.choices.random() < 0.5}
    for name in ("sort", "argsort"):
        yield name, [plain], {"axis": axis, "descending": make.choices.random() < 0.5}
    yield "diff", [plain], {"axis": axis, "n": make.choices.randint(0, 3)}
    yield "unstack", [x], {"axis": axis}
    yield "repeat", [x, make.choices.randint(0, 3)], {"axis": make.axis(rank, False)}
    yield "tile", [x, tuple(make.choices.randint(0, 3) for _ in range(3))], {}
    yield "moveaxis", [x, axis, make.choices.randrange(-rank, rank)], {}
    yield "permute_dims", [x, tuple(make.choices.sample(range(rank), rank))], {}
    other = make.array(make.choices.choice(DTYPES), shape)
    yield "concat", [[x, other]], {"axis": axis}
    yield "stack", [[x, other]], {"axis": axis}
    if x.size:
        places = make.numbers.integers(0, shape[axis], 5).astype(make.choices.choice(INTEGERS))
        yield "take", [x, places], {"axis": axis}


def linear_algebra(make: Maker) -> Iterator[Call]:
    dtype = make.choices.choice((*INTEGERS, *FLOATS))
    m, k, n = (make.choices.randint(0, 4) for _ in range(3))
    batch = make.shape(2)
    a, b = make.array(dtype, (*batch, m, k), True), make.array(dtype, (*batch[1:], k, n), True)
    yield "matmul", [a, b], {}
    yield "vecdot", [a, make.array(dtype, a.shape, True)], {}
    yield "tensordot", [a, make.array(dtype, (k, n), True)], {"axes": 1}
    yield "matrix_transpose", [a], {}
    for name in ("tril", "triu"):
        yield name, [a], {"k": make.choices.randint(-3, 3)}
    dtype, size = make.choices.choice(FLOATS), make.choices.randint(1, 4)
    square = make.array(dtype, (*batch, size, size), True) + 60 * np.eye(size, dtype=dtype)
    for name in ("det", "inv", "slogdet", "matrix_norm", "svdvals", "trace", "diagonal"):
        yield f"linalg.{name}", [square], {}
    yield "linalg.solve", [square, make.array(dtype, (*batch, size, 2), True)], {}
    order = make.choices.choice((1, 2, 0, 3, math.inf, -math.inf))
    yield "linalg.vector_norm", [square], {"axis": make.axis(square.ndim), "ord": order}
    for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
        norm = make.choices.choice(("backward", "ortho", "forward"))
        yield f"fft.{name}", [square], {"n": make.choices.choice((None, 3, 6)), "norm": norm}


# Sums of products and decompositions: roundings add up, and what cancels is as large as its terms.
SUMS = """
    sum prod mean std var cumulative_sum cumulative_prod diff matmul vecdot tensordot
"""


def found(library: Any, name: str) -> Any:
    for part in name.split("."):
        library = getattr(library, part)
    return library


def given(library: Any, value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return library.asarray(value)
    return [given(library, each) for each in value] if isinstance(value, list) else value


def plain_array(x: Any) -> np.ndarray:
    return np.asarray(x._array) if hasattr(x, "_array") else x.numpy()


def check_same(got: Any, want: Any, name: str, told: str) -> None:
    if isinstance(want, tuple):
        assert len(got) == len(want), told
        for mine, other in zip(got, want, strict=True):
            check_same(mine, other, name, told)
        return
    mine, other = plain_array(got), plain_array(want)
    assert (mine.dtype, mine.shape) == (other.dtype, other.shape), told
    if other.dtype.kind not in "fc":
        np.testing.assert_array_equal(mine, other, told)
        return
    loose = 1e4 if "." in name else 1e3 if name in SUMS.split() else 8
    units = loose * UNITS[other.dtype.name]
    size = np.max(np.abs(other), initial=0, where=np.isfinite(other)) if loose > 8 else 1e-37

    def same(mine: np.ndarray, other: np.ndarray) -> np.ndarray:
        near = np.abs(mine - other) <= units * np.maximum(np.abs(other), size)
        return (mine == other) | (np.isnan(mine) & np.isnan(other)) | near

    fits = same(mine.real, other.real) & same(mine.imag, other.imag)
    # Of a complex number the error is measured by its length, where that is finite.
    near = np.abs(mine - other) <= units * np.abs(other)
    assert (fits | near & np.isfinite(other)).all(), told


@pytest.mark.parametrize("calls", [elementwise, along_axes, linear_algebra])
@pytest.mark.parametrize("seed", range(12))
def test_calls_are_the_standards(calls: Any, seed: int) -> None:
    tw.set_default_dtype(tw.float64)
    asked, compared = 0, 0
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            for name, arguments, options in calls(Maker(seed)):
                asked += 1
                try:
                    want = found(strict, name)(
                        *(given(strict, value) for value in arguments), **options
                    )
                except (TypeError, ValueError, IndexError, OverflowError, np.linalg.LinAlgError):
                    continue
                got = found(tw, name)(*(given(tw, value) for value in arguments), **options)
                check_same(got, want, name, f"{name} of {arguments} with {options}")
                compared += 1
    finally:
        tw.set_default_dtype(tw.float32)
    assert compared > asked / 4
