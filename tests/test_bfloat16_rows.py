"""Pointwise ops that read and write bfloat16 as it lies: every number, and every pair of a grid of
numbers, gives what NumPy's float32 gives, rounded once; signs of zeros and NaN included."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from cases import arrays

import tilewright as tw

EVERY = (np.arange(1 << 16, dtype=np.uint32) << 16).view(np.float32)
# Every eighth number of each sign and the neighbours of zero, one and infinity.
GRID = np.concatenate([EVERY[::131], EVERY[:3], EVERY[0x3F7F:0x3F82], EVERY[0x7F7E:0x7F82]])
GRID = np.concatenate([GRID, -GRID])
LENGTHS = (1, 2, 3, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 511, 513, 2049, 4100)

UNARY: dict[str, Callable[..., Any]] = {
    "negative": np.negative,
    "positive": np.positive,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.rint,
    "square": np.square,
    "sqrt": np.sqrt,
    "reciprocal": np.reciprocal,
    "relu": lambda x: np.maximum(x, 0) + 0,
    "relu6": lambda x: np.minimum(np.maximum(x, 0) + 0, 6),
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "signbit": np.signbit,
    "logical_not": np.logical_not,
}
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "copysign": np.copysign,
    "nextafter": np.nextafter,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}


def check(got: tw.Tensor, want: np.ndarray, signs: bool = True) -> None:
    if want.dtype == bool:
        assert got.dtype == tw.bool
    else:
        assert got.dtype == tw.bfloat16
        want = arrays.to_bfloat16(want)
        if signs:
            plain = ~np.isnan(want)
            np.testing.assert_array_equal(
                np.signbit(arrays.array(got))[plain], np.signbit(want)[plain]
            )
    np.testing.assert_array_equal(arrays.array(got), want)


def bfloat16(x: np.ndarray) -> tw.Tensor:
    return arrays.tensor(x, "bfloat16")


@pytest.mark.parametrize("name", UNARY)
@np.errstate(all="ignore")
def test_every_number(name: str, isa: str) -> None:
    # The sign of 0 is kept, but where 0 is added to it.
    check(getattr(tw, name)(bfloat16(EVERY)), UNARY[name](EVERY), signs=name not in ("sign",))


@pytest.mark.parametrize("name", BINARY)
@np.errstate(all="ignore")
def test_every_pair(name: str, isa: str) -> None:
    a, b = (np.ascontiguousarray(x) for x in np.broadcast_arrays(GRID[:, None], GRID))
    signs = name not in ("maximum", "minimum")  # of 0 and -0 either will do
    op, want = getattr(tw, name), BINARY[name](a, b)
    check(op(bfloat16(a), bfloat16(b)), want, signs)
    check(op(bfloat16(GRID[:, None]), bfloat16(GRID)), want, signs)
    check(op(bfloat16(np.ascontiguousarray(a.T)).T, bfloat16(b)), want, signs)


@pytest.mark.parametrize("n", LENGTHS)
@np.errstate(all="ignore")
def test_every_length_and_offset(n: int, isa: str, rng) -> None:
    a, b = (rng.choice(GRID, (3, n + 3)) for _ in range(2))
    c = rng.integers(0, 2, (3, n + 3)).astype(bool)
    x, y, chosen = bfloat16(a), bfloat16(b), tw.asarray(c)
    for start in (0, 1, 3):
        cut = np.s_[:, start : start + n]
        check(-x[cut], -a[cut])
        check(x[cut] * y[cut], a[cut] * b[cut])
        check(x[cut] < y[cut], a[cut] < b[cut])
        check(x[cut] + y[1, start : start + n], a[cut] + b[1, start : start + n])
        check(tw.copysign(x[cut], y[:, :1]), np.copysign(a[cut], b[:, :1]))
        check(tw.where(chosen[cut], x[cut], y[cut]), np.where(c[cut], a[cut], b[cut]))
        check(tw.where(chosen[:, :1], x[cut], y[1:2, :1]), np.where(c[:, :1], a[cut], b[1:2, :1]))


@np.errstate(all="ignore")
def test_numbers_and_other_types_beside_bfloat16(isa: str, rng) -> None:
    a = rng.choice(GRID, (5, 301))
    x = bfloat16(a)
    check(x * 3, a * np.float32(3))
    check(2 - x, np.float32(2) - a)
    check(tw.clip(x, -1.5, 2.0), np.clip(a, -1.5, 2.0), signs=False)
    check(tw.where(x > 0, x, 0.5), np.where(a > 0, a, np.float32(0.5)))
    whole = rng.integers(-100, 100, (5, 301)).astype(np.int8)
    check(x + tw.asarray(whole), a + whole.astype(np.float32))
    truths = rng.integers(0, 2, (5, 301)).astype(bool)
    check(x * tw.asarray(truths), a * truths.astype(np.float32))
    b = rng.normal(size=(5, 301)).astype(np.float32)
    np.testing.assert_array_equal(arrays.array(x + tw.asarray(b)), a + b)
    np.testing.assert_array_equal((x < tw.asarray(b)).numpy(), a < b)


def test_any_number_of_threads_and_results_beyond_the_caches(threads, rng) -> None:
    a = rng.normal(size=(4100, 4099)).astype(np.float32)
    x = bfloat16(a)
    for count in (1, 2, 3):
        tw.set_num_threads(count)
        check(-x, -arrays.to_bfloat16(a))


@np.errstate(all="ignore")
def test_in_place_and_gradients(isa: str, rng) -> None:
    a, b = rng.normal(size=(2, 3, 77)).astype(np.float32)
    a, b = arrays.to_bfloat16(a), arrays.to_bfloat16(b)
    x = bfloat16(a)
    x.mul_(bfloat16(b))
    check(x, a * b)
    x = bfloat16(a).requires_grad_()
    tw.maximum(x, bfloat16(b)).sum().backward()
    np.testing.assert_array_equal(arrays.array(x.grad), (a > b) + (a == b) / 2)


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("rows", [1, 3, 8, 21])
def test_extrema_and_sums_of_rows_and_columns(rows: int, n: int, isa: str, rng) -> None:
    whole = GRID[~np.isnan(GRID)]
    odd = np.concatenate([[np.nan, np.inf, -np.inf], rng.normal(size=5)]).astype(np.float32)
    ones = rng.integers(-1, 2, (rows, n)).astype(np.float32)
    few = np.where(rng.random((rows, n)) < 2 / n, np.float32(np.nan), rng.choice(whole, (rows, n)))
    negative = -few  # NaN of the other sign
    for given in (rng.choice(whole, (rows, n)), few, negative, rng.choice(odd, (rows, n)), ones):
        x = arrays.to_bfloat16(given)
        signs = rng.normal(size=x.shape)
        a = np.where(np.isnan(x), np.copysign(x, signs), x).astype(np.float32)
        lying = {"rows": bfloat16(a), "columns": bfloat16(np.ascontiguousarray(a.T)).T}
        lying["cut"] = bfloat16(np.pad(a, 1))[1:-1, 1:-1]
        for t in lying.values():
            for axis in (None, 0, 1):
                check(tw.max(t, axis=axis), a.max(axis=axis), signs=False)
                check(tw.min(t, axis=axis), a.min(axis=axis), signs=False)
                if given is ones:  # sums that are exact
                    check(tw.sum(t, axis=axis), a.sum(axis=axis), signs=False)
